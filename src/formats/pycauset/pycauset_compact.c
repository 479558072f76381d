/* Drops what nothing refers to: a new file of header, payload and the active metadata. */
#include "formats/pycauset/pycauset_scan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/report.h"
#include "io/file.h"
#include "io/lock.h"
#include "io/sink.h"
#include "io/source_private.h"

typedef struct job {
    int fd; /* of the old file, with its lock */
    char *path;
    const coffer_compact_opts *opts;
    coffer_source *source;
    coffer_pycauset *matrix;
    size_t blocks;
    uint64_t new_size;
} job;

static coffer_status open_old(job *work, const char *path, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_limits limits = coffer__limits(work->opts->limits);
    coffer__pycauset_scan scan = { .items = NULL };
    uint64_t size = 0;
    coffer_status status;
    opts.limits = work->opts->limits;
    status = coffer__file_resolve(&work->path, path, err);
    if (!status)
        status = coffer__lock_open(&work->fd, work->path, err);
    if (!status)
        status = coffer__file_size(&size, work->fd, NULL, err);
    if (!status)
        status = coffer__source_over_fd(&work->source, work->fd, false, size, work->path, NULL, err);
    if (!status)
        status = coffer_pycauset_open(&work->matrix, work->source, &opts, err);
    if (status)
        return status;
    status = coffer__pycauset_scan_blocks(&scan, work->source, &work->matrix->header, &limits, err);
    work->blocks = scan.count;
    coffer__pycauset_scan_free(&scan);
    return status;
}

/* The payload goes where every writer puts it. The generation does not change, so that one number never means
 * two states of the same matrix. */
static coffer_status write_new(coffer__sink *sink, const job *work, coffer_error *err)
{
    const coffer_pycauset_info *info = &work->matrix->info;
    coffer__pycauset_slot slot = { .generation = info->generation,
                                   .payload_offset = COFFER__PYCAUSET_HEADER_SIZE,
                                   .payload_length = info->payload_needed,
                                   .metadata_length = work->matrix->metadata_length };
    uint8_t header[COFFER__PYCAUSET_HEADER_SIZE];
    uint64_t end = slot.payload_offset + slot.payload_length;
    coffer_status status;
    if (!coffer__align_up(&slot.metadata_offset, end, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the payload is too large");
    coffer__pycauset_store_fresh_header(header, &slot);
    status = coffer__sink_write(sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_copy_source(sink, work->source, info->payload_offset, info->payload_needed,
                                          work->opts->progress, err);
    if (!status)
        status = coffer__sink_fill(sink, 0, slot.metadata_offset - end, err);
    if (status)
        return status;
    return coffer__sink_copy_source(sink, work->source, work->matrix->metadata_offset,
                                    work->matrix->metadata_length, NULL, err);
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

coffer_status coffer__pycauset_compact(coffer_node *out, const char *path, const char *out_path,
                                       const coffer_compact_opts *opts, coffer_error *err)
{
    job work = { .fd = -1, .opts = opts };
    coffer_status status = open_old(&work, path, err);
    if (!status && out_path && work.matrix->info.type == COFFER_PYCAUSET_BLOCK)
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "a block matrix finds its children by its name; compact it in place");
    if (!status)
        status = write_output(&work, out_path, err);
    if (!status) {
        coffer_node_add_u64(out, "size_before", coffer_source_size(work.source), COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "size_after", work.new_size, COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "blocks_dropped", work.blocks > 0 ? work.blocks - 1 : 0, COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "generation", work.matrix->info.generation, COFFER_UNIT_NONE);
        status = coffer_node_status(out, err);
    }
    coffer_pycauset_close(work.matrix);
    coffer_source_close(work.source);
    coffer__file_close(work.fd);
    coffer__free(work.path);
    return status;
}
