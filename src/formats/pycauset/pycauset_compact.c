/* Drops what nothing refers to: a new file of header, payload and the metadata of the states that are kept.
 */
#include "formats/pycauset/pycauset_blocks.h"
#include "formats/pycauset/pycauset_scan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/sink.h"
#include "io/source_private.h"

#include <inttypes.h>

typedef struct job {
    int fd; /* of the old file, with its lock */
    char *path;
    char *folder; /* of the children, if it is a block matrix */
    const coffer_compact_opts *opts;
    coffer_source *source;
    coffer_pycauset *matrix;
    coffer_pycauset_history *history;
    size_t states;        /* in the old file */
    size_t first;         /* index of the oldest state that is kept */
    size_t newest;        /* index of the active one */
    coffer__buffer block; /* its metadata with checksums, when it has none; else empty */
    uint64_t new_size;
    coffer_report *damage; /* of the payload, which the caller accepts */
} job;

/* The states to keep: the newest committed ones. Values that a later state changed are found in its record,
 * so only the states after the oldest one kept have to be there to go back to it. */
static void choose_states(job *work)
{
    uint64_t left = work->opts->keep > 0 ? work->opts->keep : 1;
    work->states = coffer_pycauset_history_count(work->history);
    for (size_t i = work->states; i-- > 0 && left > 0;) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(work->history, i);
        if (!state->committed || state->generation > work->matrix->info.generation)
            continue;
        work->first = i;
        if (state->active)
            work->newest = i;
        left--;
    }
}

/* Every byte of the new file has a checksum. */
static coffer_status add_checksums(job *work, coffer_error *err)
{
    coffer__pycauset_patches none = { .items = NULL };
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer__buffer sums = COFFER__BUFFER_INIT;
    coffer_pycauset_changes *own = NULL;
    const coffer_pycauset_value *root = work->matrix->metadata.root;
    if (work->matrix->info.type == COFFER_PYCAUSET_UNKNOWN ||
        coffer__pycauset_get_key(root, COFFER__PYCAUSET_CHECKSUMS_KEY))
        return COFFER_OK;
    coffer_status status =
        coffer__pycauset_sum_payload(&sums, work->source, &work->matrix->info, root, &none, false, err);
    if (!status)
        status = coffer__pycauset_system_changes_new(&own, err);
    if (!status)
        status = coffer_pycauset_changes_set_checksums(own, err);
    if (!status)
        status = coffer__pycauset_apply(&root, &memory, root, own, &sums, err);
    if (!status)
        status = coffer__pycauset_encode_block(&work->block, root, err);
    coffer_pycauset_changes_free(own);
    coffer__buffer_free(&sums);
    coffer__arena_free(&memory);
    return status;
}

static uint64_t length_of(const job *work, size_t index)
{
    return index == work->newest && work->block.len > 0
               ? work->block.len
               : coffer_pycauset_history_at(work->history, index)->length;
}

static coffer_status open_old(job *work, const char *path, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset_history_opts history_opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    uint64_t size = 0;
    opts.limits = history_opts.limits = work->opts->limits;
    coffer_status status = coffer__file_resolve(&work->path, path, err);
    if (!status)
        status = coffer__lock_open(&work->fd, work->path, err);
    if (!status)
        status = coffer__journal_roll_back(NULL, work->fd, work->path, err);
    if (!status)
        status = coffer__file_size(&size, work->fd, NULL, err);
    if (!status)
        status = coffer__source_over_fd(&work->source, work->fd, false, size, work->path, NULL, err);
    if (!status && !(opts.blocks_folder = work->folder = coffer__pycauset_blocks_folder(work->path)))
        status = coffer__fail_no_memory(err, 0);
    if (!status)
        status = coffer_pycauset_open(&work->matrix, work->source, &opts, err);
    if (!status)
        status = coffer_pycauset_history_open(&work->history, work->source, &history_opts, err);
    if (status)
        return status;
    if (work->matrix->info.newer_lost)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                            "slot %c is damaged, and a newer state may be lost: repair the file first",
                            work->matrix->info.damaged_slot);
    choose_states(work);
    /* A copy of damaged values would look as if somebody had looked at them. With allow_damaged they keep
     * their old checksums, which do not match. */
    coffer_error damage = COFFER_ERROR_INIT;
    status = coffer_pycauset_verify(work->matrix, &damage);
    if (status == COFFER_E_BAD_CHECKSUM && work->opts->allow_damaged) {
        coffer__report_add_error(work->damage, COFFER_ERROR, &damage);
        return COFFER_OK;
    }
    return status ? coffer__fail_copy(err, &damage) : add_checksums(work, err);
}

static bool is_kept(const job *work, size_t index)
{
    const coffer_pycauset_generation *state = coffer_pycauset_history_at(work->history, index);
    return index >= work->first && state->committed && state->generation <= work->matrix->info.generation;
}

/* The header of the new file. The payload goes where every writer puts it. Generations do not change, so that
 * one number never means two states of the same matrix. */
static coffer_status lay_out(uint8_t header[COFFER__PYCAUSET_HEADER_SIZE], const job *work, coffer_error *err)
{
    coffer__pycauset_slot slot = { .payload_offset = COFFER__PYCAUSET_HEADER_SIZE,
                                   .payload_length = work->matrix->info.payload_needed };
    coffer__pycauset_slot before = slot;
    uint64_t end = slot.payload_offset + slot.payload_length;
    size_t kept = 0;
    for (size_t i = 0; i < work->states; i++) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(work->history, i);
        if (!is_kept(work, i))
            continue;
        before = slot;
        if (!coffer__align_up(&slot.metadata_offset, end, COFFER__PYCAUSET_BLOCK_ALIGNMENT) ||
            !coffer__add_u64(&end, slot.metadata_offset, length_of(work, i)))
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the payload is too large");
        slot.metadata_length = length_of(work, i);
        slot.generation = state->generation;
        kept++;
    }
    if (kept == 1)
        coffer__pycauset_store_fresh_header(header, &slot);
    else
        coffer__pycauset_store_header(header, &slot, &before);
    return COFFER_OK;
}

static coffer_status write_new(coffer__sink *sink, const job *work, coffer_error *err)
{
    static const uint8_t zeros[COFFER__PYCAUSET_BLOCK_ALIGNMENT];
    const coffer_pycauset_info *info = &work->matrix->info;
    uint8_t header[COFFER__PYCAUSET_HEADER_SIZE];
    uint64_t at = sizeof header + info->payload_needed;
    coffer_status status = lay_out(header, work, err);
    if (!status)
        status = coffer__sink_write(sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_copy_source(sink, work->source, info->payload_offset, info->payload_needed,
                                          work->opts->progress, err);
    for (size_t i = 0; !status && i < work->states; i++) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(work->history, i);
        size_t padding = (size_t)(-at % COFFER__PYCAUSET_BLOCK_ALIGNMENT);
        if (!is_kept(work, i))
            continue;
        status = coffer__sink_write(sink, zeros, padding, err);
        if (!status && i == work->newest && work->block.len > 0)
            status = coffer__sink_write(sink, work->block.data, work->block.len, err);
        else if (!status)
            status = coffer__sink_copy_source(sink, work->source, state->offset, state->length, NULL, err);
        at += padding + length_of(work, i);
    }
    return status;
}

/* The new file is locked from its first moment: no writer can slip in between the old and the new. */
static coffer_status write_output(job *work, const char *out_path, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !work->opts->overwrite };
    coffer__sink *sink = NULL;
    int fd = -1;
    coffer_status status = coffer__sink_create(&sink, out_path ? out_path : work->path, &options, err);
    if (status)
        return status;
    if (!out_path)
        status = coffer__sink_lock(sink, err);
    if (!status)
        status = write_new(sink, work, err);
    if (!status && !out_path)
        status = coffer__lock_check(NULL, work->fd, work->path, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    work->new_size = coffer__sink_position(sink);
    if (out_path)
        return coffer__sink_commit(sink, err);
    status = coffer__sink_commit_open(sink, &fd, err);
    coffer__file_close(fd);
    return status;
}

static size_t states_dropped(const job *work)
{
    size_t dropped = 0;
    for (size_t i = 0; i < work->states; i++)
        dropped += !is_kept(work, i);
    return dropped;
}

coffer_status coffer__pycauset_compact(coffer_node *out, const char *path, const char *out_path,
                                       const coffer_compact_opts *opts, coffer_error *err)
{
    job work = { .fd = -1, .opts = opts, .block = COFFER__BUFFER_INIT };
    coffer_status status = coffer_report_new(&work.damage, 0, err);
    if (!status)
        status = open_old(&work, path, err);
    if (!status && out_path && work.matrix->info.type == COFFER_PYCAUSET_BLOCK)
        status = coffer__pycauset_copy_children(work.matrix, out_path, NULL, err);
    if (!status)
        status = write_output(&work, out_path, err);
    if (!status) {
        coffer_node_add_u64(out, "size_before", coffer_source_size(work.source), COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "size_after", work.new_size, COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "blocks_dropped", states_dropped(&work), COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "generation", work.matrix->info.generation, COFFER_UNIT_NONE);
        if (coffer_pycauset_history_damaged_bytes(work.history) > 0)
            coffer_node_add_printf(out, "damage", "%" PRIu64 " bytes of damaged older states were dropped",
                                   coffer_pycauset_history_damaged_bytes(work.history));
        status = coffer__source_describe_damage(out, work.damage, err);
    }
    coffer_report_free(work.damage);
    coffer_pycauset_history_close(work.history);
    coffer_pycauset_close(work.matrix);
    coffer_source_close(work.source);
    coffer__file_close(work.fd);
    coffer__buffer_free(&work.block);
    coffer__free(work.folder);
    coffer__free(work.path);
    return status;
}
