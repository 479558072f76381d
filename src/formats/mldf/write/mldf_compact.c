/* A set without the bytes that updates left behind. */
#include "base/report.h"
#include "formats/mldf/write/mldf_write.h"

static coffer_status describe(coffer_node *out, const coffer_mldf *set, const char *out_path,
                              coffer_error *err)
{
    uint64_t before = set->file_size, after;
    coffer_source *written = NULL;
    coffer_status status = coffer_source_open(&written, out_path, NULL, err);
    if (status)
        return status;
    after = coffer_source_size(written);
    coffer__node_u64(out, "size_before", before, COFFER_UNIT_BYTES);
    coffer__node_u64(out, "size_after", after, COFFER_UNIT_BYTES);
    coffer__node_i64(out, "dropped", (int64_t)before - (int64_t)after, COFFER_UNIT_BYTES);
    coffer__node_u64(out, "samples", set->header.samples, COFFER_UNIT_NONE);
    coffer_source_close(written);
    return coffer__node_status(out, err);
}

coffer_status coffer__mldf_compact(coffer_node *out, const char *path, const char *out_path,
                                   const coffer_compact_opts *opts, coffer_error *err)
{
    const char *target = out_path ? out_path : path;
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mldf *set = NULL;
    coffer_status status;
    open_options.limits = opts->limits;
    /* The lock keeps writers out until the new file has the name. */
    if ((status = coffer__update_open(&update, path, NULL, err)) ||
        (status = coffer_mldf_open(&set, coffer__update_source(update), &open_options, err)) ||
        (status = coffer__mldf_rewrite(target, set, opts->overwrite, opts->limits, opts->progress, err)))
        goto out;
    status = describe(out, set, target, err);
out:
    coffer_mldf_close(set);
    coffer__update_close(update);
    return status;
}
