/* A file without the bytes that edits left behind. */
#include "base/fail.h"
#include "base/report.h"
#include "formats/mcf/mcf_rewrite.h"
#include "io/journal.h"

static coffer_status write_compact(const coffer_mcf *model, const char *out_path,
                                   const coffer_compact_opts *opts, coffer_error *err)
{
    coffer_mcf_writer_opts options = COFFER_MCF_WRITER_OPTS_INIT;
    coffer__mcf_rewrite from = { .model = model, .progress = opts->progress };
    coffer_mcf_writer *writer = NULL;
    coffer_status status;
    options.align = coffer__mcf_common_alignment(model);
    options.no_dedup = true;
    options.no_checksums = !coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS);
    options.flags = model->header.flags;
    options.overwrite = opts->overwrite;
    if ((status = coffer_mcf_writer_create(&writer, out_path, &options, err)))
        return status;
    if ((status = coffer__mcf_take_over(writer, &from, err))) {
        coffer_mcf_writer_discard(writer);
        return status;
    }
    return coffer_mcf_writer_commit(writer, err);
}

static coffer_status describe(coffer_node *out, const coffer_mcf *model, const char *out_path,
                              coffer_error *err)
{
    uint64_t before = coffer_source_size(model->source);
    coffer_source *written = NULL;
    coffer_status status = coffer_source_open(&written, out_path, NULL, err);
    if (status)
        return status;
    coffer__node_u64(out, "size_before", before, COFFER_UNIT_BYTES);
    coffer__node_u64(out, "size_after", coffer_source_size(written), COFFER_UNIT_BYTES);
    coffer__node_i64(out, "dropped", (int64_t)before - (int64_t)coffer_source_size(written),
                     COFFER_UNIT_BYTES);
    coffer__node_u64(out, "tensors", model->index.count, COFFER_UNIT_NONE);
    coffer_source_close(written);
    return coffer__node_status(out, err);
}

coffer_status coffer__mcf_compact(coffer_node *out, const char *path, const char *out_path,
                                  const coffer_compact_opts *opts, coffer_error *err)
{
    const char *target = out_path ? out_path : path;
    coffer_mcf_open_opts open_options = COFFER_MCF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mcf *model = NULL;
    coffer_status status;
    open_options.limits = opts->limits;
    /* The lock keeps editors out until the new file has the name. */
    if ((status = coffer__update_open(&update, path, NULL, err)) ||
        (status = coffer_mcf_open(&model, coffer__update_source(update), &open_options, err)) ||
        (status = write_compact(model, target, opts, err)))
        goto out;
    status = describe(out, model, target, err);
out:
    coffer_mcf_close(model);
    coffer__update_close(update);
    return status;
}
