/* Writes a repaired copy: all bytes keep their offsets, the header is corrected. */
#include "formats/pycauset/pycauset_blocks.h"
#include "formats/pycauset/pycauset_scan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "io/sink.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

typedef struct rescue {
    coffer_report *report;
    coffer_source *source;
    const coffer_repair_opts *opts;
    coffer_limits limits;
    coffer__pycauset_header header;
    coffer_error preamble;       /* what is wrong with it, where the slots show what it was */
    bool reserved_set;           /* in the preamble or after the slots */
    coffer__pycauset_slot state; /* what the copy will show */
    coffer__pycauset_slot other; /* and its second slot */
    int state_slot;
    bool changed;
    bool appends; /* the block of `state` is copied to the end, as a commit would write it */
} rescue;

/* ---- Looking at what there is ---- */

/* Whether a slot's metadata can be read and fits the payload. */
static coffer_status try_state(const rescue *work, const coffer__pycauset_slot *slot, coffer_error *err)
{
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_pycauset_info info;
    coffer_status status = coffer__pycauset_read_block(&tree, work->source, slot->metadata_offset,
                                                       slot->metadata_length, &work->limits, err);
    if (!status)
        status = coffer__pycauset_interpret(&info, tree.root, slot->metadata_offset, err);
    coffer__pycauset_tree_free(&tree);
    if (!status && info.payload_needed > slot->payload_length)
        status = coffer__fail(err, COFFER_E_SIZE_MISMATCH, slot->metadata_offset,
                              "the matrix needs a payload of %" PRIu64 " bytes, it has %" PRIu64,
                              info.payload_needed, slot->payload_length);
    return status;
}

static coffer_status read_header(rescue *work, coffer_error *err)
{
    uint8_t rest[COFFER__PYCAUSET_HEADER_SIZE - COFFER__PYCAUSET_SLOTS_END];
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__pycauset_read_header(&work->header, work->source, &found);
    work->reserved_set = status == COFFER_E_RESERVED_NOT_ZERO;
    /* A slot that is whole by its checksum was written in this byte order, into this header. */
    if (status == COFFER_E_BAD_VALUE && work->header.active >= 0)
        work->preamble = found;
    else if (status && !work->reserved_set)
        return coffer__fail_copy(err, &found);
    status = coffer_source_read_at(rest, work->source, COFFER__PYCAUSET_SLOTS_END, sizeof rest, err);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof rest; i++)
        work->reserved_set = work->reserved_set || rest[i] != 0;
    for (int i = 0; i < 2; i++) {
        coffer__pycauset_slot *slot = &work->header.slots[i];
        bool clear = slot->reserved_zero && slot->hot_offset == 0 && slot->hot_length == 0;
        work->reserved_set = work->reserved_set || (slot->crc_matches && !clear);
        slot->hot_offset = slot->hot_length = 0;
    }
    return COFFER_OK;
}

static void report_header(rescue *work)
{
    if (work->preamble.status) {
        work->changed = true;
        coffer__report_add(work->report, work->preamble.status, COFFER_WARNING, work->preamble.offset,
                           "preamble repaired: %s", work->preamble.text);
    }
    if (!work->reserved_set)
        return;
    work->changed = true;
    coffer__report_add(work->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, COFFER__PYCAUSET_RESERVED_AT,
                       "reserved bytes of the header were set to 0");
}

/* ---- One slot is good ---- */

/* The other slot names the same state, numbered as the generation before it; 1 where that would be below 0.
 */
static void restore_other_slot(rescue *work)
{
    work->other = work->state;
    work->other.generation = work->state.generation > 0 ? work->state.generation - 1 : 1;
    work->changed = true;
}

/* ---- None is, or not the one that counts ---- */

/* Where the payload is, for a block that no valid slot names: where a slot with a matching checksum says,
 * else where every writer puts it. */
static bool place_payload(const rescue *work, coffer__pycauset_slot *state, uint64_t needed)
{
    uint64_t end;
    state->payload_offset = COFFER__PYCAUSET_HEADER_SIZE;
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &work->header.slots[i];
        if (slot->crc_matches && slot->payload_offset >= COFFER__PYCAUSET_HEADER_SIZE &&
            slot->payload_offset % COFFER__PYCAUSET_PAYLOAD_ALIGNMENT == 0)
            state->payload_offset = slot->payload_offset;
    }
    state->payload_length = needed;
    return coffer__add_u64(&end, state->payload_offset, needed) && end <= coffer_source_size(work->source) &&
           (state->metadata_offset >= end ||
            state->metadata_offset + state->metadata_length <= state->payload_offset);
}

static bool try_block(const rescue *work, coffer__pycauset_slot *out, const coffer__pycauset_found *block)
{
    coffer__pycauset_slot state = { .metadata_offset = block->offset, .metadata_length = block->length };
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_pycauset_info info;
    bool good = coffer__pycauset_read_block(&tree, work->source, block->offset, block->length, &work->limits,
                                            NULL) == COFFER_OK &&
                coffer__pycauset_interpret(&info, tree.root, block->offset, NULL) == COFFER_OK &&
                place_payload(work, &state, info.payload_needed);
    coffer__pycauset_tree_free(&tree);
    if (good)
        *out = state;
    return good;
}

/* The slot of the newest state is damaged, but its block is intact after that of the active one: the state is
 * not lost. */
static bool finish_newer(rescue *work, int which, const coffer_error *why)
{
    coffer__pycauset_scan scan = { .items = NULL };
    coffer__pycauset_slot active = work->state, newest = { .generation = 0 };
    uint64_t end = active.metadata_offset + active.metadata_length;
    if (work->header.slots[which].crc_matches || active.generation == UINT64_MAX ||
        coffer__pycauset_scan_range(&scan, work->source, end, UINT64_MAX, &work->limits, NULL) != COFFER_OK)
        scan.count = 0;
    bool found = scan.count > 0 && try_block(work, &newest, &scan.items[scan.count - 1]);
    coffer__pycauset_scan_free(&scan);
    if (!found)
        return false;
    newest.payload_offset = active.payload_offset;
    newest.payload_length = active.payload_length;
    newest.generation = active.generation + 1;
    if (try_state(work, &newest, NULL) != COFFER_OK)
        return false;
    work->other = active;
    work->state = newest;
    work->state_slot = which;
    work->changed = true;
    coffer__report_add(work->report, why->status, COFFER_WARNING, why->offset,
                       "slot %c restored from the newest metadata block, at %" PRIu64 ": generation %" PRIu64
                       " is complete (%s)",
                       "AB"[which], newest.metadata_offset, newest.generation, why->text);
    return true;
}

static coffer_status keep_active(rescue *work, coffer_error *err)
{
    int which = 1 - work->state_slot;
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__pycauset_explain_slot(&work->header, which, coffer_source_size(work->source), &why);
    if (!status)
        status = try_state(work, &work->header.slots[which], &why);
    work->other = work->header.slots[which];
    if (!status)
        return COFFER_OK;
    if (!coffer__is_about_file(status))
        return coffer__fail_copy(err, &why);
    if (finish_newer(work, which, &why))
        return COFFER_OK;
    restore_other_slot(work);
    coffer__report_add(work->report, status, COFFER_WARNING, why.offset,
                       "slot %c restored from slot %c, the state that it named is lost: %s", "AB"[which],
                       "AB"[work->state_slot], why.text);
    return COFFER_OK;
}

/* The newest intact block that is not after `last`. Its generation counts the blocks up to it. */
static coffer_status find_newest(rescue *work, uint64_t last, bool *found, coffer_error *err)
{
    coffer__pycauset_scan scan = { .items = NULL };
    coffer_status status = coffer__pycauset_scan_range(&scan, work->source, COFFER__PYCAUSET_HEADER_SIZE,
                                                       UINT64_MAX, &work->limits, err);
    *found = false;
    for (size_t i = scan.count; i-- > 0 && !status && !*found;) {
        if (scan.items[i].offset <= last && try_block(work, &work->state, &scan.items[i])) {
            work->state.generation = i + 1;
            *found = true;
        }
    }
    coffer__pycauset_scan_free(&scan);
    return status;
}

static coffer_status search_blocks(rescue *work, uint64_t last, const coffer_error *why, coffer_error *err)
{
    uint64_t newest = 0;
    bool found;
    coffer_status status = find_newest(work, last, &found, err);
    if (status)
        return status;
    if (!found)
        return coffer__fail(
            err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
            "nothing in the file says what its payload is: no other intact metadata block (%s)", why->text);
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &work->header.slots[i];
        if (slot->crc_matches && slot->generation > newest)
            newest = slot->generation;
    }
    if (newest > work->state.generation)
        work->state.generation = newest;
    work->state_slot = 0;
    restore_other_slot(work);
    coffer__report_add(work->report, why->status, COFFER_WARNING, work->state.metadata_offset,
                       "both slots restored from the newest intact metadata block, at %" PRIu64
                       ", with the payload at "
                       "%" PRIu64 "; newer states are lost (%s)",
                       work->state.metadata_offset, work->state.payload_offset, why->text);
    return COFFER_OK;
}

/* The active slot is good, what it names is not. */
static coffer_status go_back(rescue *work, const coffer_error *why, coffer_error *err)
{
    int other = 1 - work->header.active;
    const coffer__pycauset_slot *damaged = &work->header.slots[work->header.active];
    coffer_error other_why = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__pycauset_explain_slot(&work->header, other, coffer_source_size(work->source), &other_why);
    if (!status)
        status = try_state(work, &work->header.slots[other], &other_why);
    if (status && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &other_why);
    if (status)
        return search_blocks(work, damaged->metadata_offset, why, err);
    work->state = work->header.slots[other];
    work->state_slot = other;
    restore_other_slot(work);
    coffer__report_add(work->report, why->status, COFFER_WARNING, why->offset,
                       "back to generation %" PRIu64 ", what generation %" PRIu64 " changed is lost: %s",
                       work->state.generation, damaged->generation, why->text);
    return COFFER_OK;
}

static coffer_status choose_state(rescue *work, coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status;
    if (work->header.active < 0) {
        coffer__pycauset_expect_active(&work->header, work->source, &why);
        if (why.status == COFFER_E_CHANGED)
            return coffer__fail_copy(err, &why);
        return search_blocks(work, UINT64_MAX, &why, err);
    }
    work->state_slot = work->header.active;
    work->state = work->header.slots[work->header.active];
    status = try_state(work, &work->state, &why);
    if (!status)
        return keep_active(work, err);
    if (!coffer__is_about_file(status))
        return coffer__fail_copy(err, &why);
    return go_back(work, &why, err);
}

/* ---- A requested state ---- */

/* The payload of the copy is the newest one; the old state must not speak of another. */
static coffer_status expect_same_payload(const rescue *work, const coffer__pycauset_slot *active,
                                         const coffer__pycauset_slot *wanted, uint64_t generation,
                                         coffer_error *err)
{
    coffer__pycauset_tree now = { .root = NULL }, then = { .root = NULL };
    bool known = !coffer__pycauset_read_block(&now, work->source, active->metadata_offset,
                                              active->metadata_length, &work->limits, NULL) &&
                 !coffer__pycauset_read_block(&then, work->source, wanted->metadata_offset,
                                              wanted->metadata_length, &work->limits, NULL);
    const coffer_pycauset_value *a = coffer__pycauset_get_key(now.root, "payload_uuid");
    const coffer_pycauset_value *b = coffer__pycauset_get_key(then.root, "payload_uuid");
    bool same = !known || (a && b && coffer__pycauset_equal(a, b));
    coffer__pycauset_tree_free(&now);
    coffer__pycauset_tree_free(&then);
    if (same)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "elements were changed after generation %" PRIu64
                        ": 'coffer revert' restores them with the metadata",
                        generation);
}

static coffer_status choose_generation(rescue *work, uint64_t generation, coffer_error *err)
{
    coffer_status status = coffer__pycauset_expect_active(&work->header, work->source, err);
    if (status)
        return status;
    const coffer__pycauset_slot *active = &work->header.slots[work->header.active];
    coffer__pycauset_slot wanted = *active;
    if (generation == active->generation)
        return choose_state(work, err);
    status = coffer__pycauset_find_generation(&wanted.metadata_offset, &wanted.metadata_length, work->source,
                                              generation, &work->limits, err);
    if (!status)
        status = try_state(work, &wanted, err);
    if (!status)
        status = expect_same_payload(work, active, &wanted, generation, err);
    if (status)
        return status;
    if (active->generation == UINT64_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the file has no generation left");
    wanted.generation = active->generation + 1;
    work->state = wanted;
    work->state_slot = 1 - work->header.active;
    work->other = *active;
    work->appends = work->changed = true;
    coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_NOTE, wanted.metadata_offset,
                       "generation %" PRIu64 " is generation %" PRIu64
                       " again; later changes are undone, and stay in the history",
                       wanted.generation, generation);
    return COFFER_OK;
}

/* ---- Output ---- */

/* Verifies the payload and copies the children. A file that still cannot be opened has neither. */
static coffer_status check_state(rescue *work, const char *out_path, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_check_opts check = COFFER_CHECK_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.limits = &work->limits;
    check.limits = &work->limits;
    check.progress = work->opts->progress;
    /* The payload is copied as it is, with its old checksums: damage stays known. */
    if (coffer_pycauset_open(&matrix, work->source, &opts, NULL) != COFFER_OK)
        return COFFER_OK;
    coffer_status status = coffer__pycauset_verify_checksums(work->report, matrix, &check, err);
    if (!status && matrix->info.type == COFFER_PYCAUSET_BLOCK && !work->opts->in_place)
        status = coffer__pycauset_copy_children(matrix, out_path, work->report, err);
    coffer_pycauset_close(matrix);
    return status;
}

/* Copies the block of the state to the end, where a commit would put it. */
static coffer_status append_state(coffer__sink *sink, rescue *work, uint64_t from, coffer_error *err)
{
    static const uint8_t zeros[COFFER__PYCAUSET_BLOCK_ALIGNMENT];
    uint64_t end = coffer__sink_position(sink);
    coffer_status status = coffer__sink_write(sink, zeros, (size_t)(work->state.metadata_offset - end), err);
    if (!status)
        status = coffer__sink_copy_source(sink, work->source, from, work->state.metadata_length, NULL, err);
    return status;
}

static coffer_status write_all(coffer__sink *sink, rescue *work, coffer_error *err)
{
    uint8_t header[COFFER__PYCAUSET_HEADER_SIZE];
    uint64_t size = coffer_source_size(work->source), from = work->state.metadata_offset;
    coffer_status status;
    if (!work->changed)
        return coffer__sink_copy_source(sink, work->source, 0, size, work->opts->progress, err);
    if (work->appends &&
        !coffer__align_up(&work->state.metadata_offset, size, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
        return coffer__fail(err, COFFER_E_LIMIT, size, "the file cannot grow");
    const coffer__pycauset_slot *a = work->state_slot == 0 ? &work->state : &work->other;
    const coffer__pycauset_slot *b = work->state_slot == 0 ? &work->other : &work->state;
    coffer__pycauset_store_header(header, a, b);
    status = coffer__sink_write(sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_copy_source(sink, work->source, sizeof header, size - sizeof header,
                                          work->opts->progress, err);
    if (status)
        return status;
    return work->appends ? append_state(sink, work, from, err) : COFFER_OK;
}

static coffer_status write_output(rescue *work, const char *path, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !work->opts->overwrite };
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create(&sink, path, &options, err);
    if (status)
        return status;
    status = write_all(sink, work, err);
    if (!status && !coffer__source_settled(work->source))
        status = coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                              "changed during the repair: repair it again");
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    return coffer__sink_commit(sink, err);
}

coffer_status coffer__pycauset_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                      const coffer_repair_opts *opts, coffer_error *err)
{
    rescue work = { .report = out,
                    .source = src,
                    .opts = opts,
                    .limits = coffer__limits(opts->limits),
                    .preamble = COFFER_ERROR_INIT };
    coffer_status status = read_header(&work, err);
    if (status)
        return status;
    report_header(&work);
    status =
        opts->to_generation ? choose_generation(&work, opts->to_generation, err) : choose_state(&work, err);
    if (!status)
        status = check_state(&work, out_path, err);
    if (!status)
        status = write_output(&work, out_path, err);
    return status ? status : coffer__report_status(out, err);
}
