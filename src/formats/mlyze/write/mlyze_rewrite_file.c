/* compress: rewrites the trace at a path, in place or to another path. */
#include "formats/mlyze/mlyze_private.h"

#include "base/memory.h"
#include "base/report.h"
#include "io/file.h"
#include "io/os.h"

#include <string.h>

/* The index of the compressed trace does not match the plain one that replaced it. */
static void drop_index(const char *path)
{
    size_t len = strlen(path);
    char *name = coffer__malloc(len + sizeof ".idx");
    if (!name)
        return;
    memcpy(name, path, len);
    memcpy(name + len, ".idx", sizeof ".idx");
    coffer__os_unlink(name);
    coffer__free(name);
}

static coffer_status file_size(uint64_t *out, const char *path, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        *out = coffer_source_size(src);
    coffer_source_close(src);
    return status;
}

static coffer_status describe(coffer_node *out, const coffer_mlyze *trace, const char *written,
                              uint64_t dropped, coffer_error *err)
{
    uint64_t size = 0, events = 0;
    coffer_status status = coffer_mlyze_event_count(&events, trace, err);
    if (!status && strcmp(written, "-") != 0)
        status = file_size(&size, written, err);
    if (status)
        return status;
    coffer_node_add_u64(out, "size_before", coffer_source_size(trace->source), COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "size_after", size, COFFER_UNIT_BYTES);
    events -= dropped;
    coffer_node_add_u64(out, "events", events, COFFER_UNIT_NONE);
    if (dropped > 0)
        coffer_node_add_u64(out, "dropped_extension_events", dropped, COFFER_UNIT_NONE);
    if (size > 0 && events > 0)
        coffer_node_add_f64(out, "bytes_per_event", (double)size / (double)events, COFFER_UNIT_NONE);
    return coffer_node_status(out, err);
}

coffer_status coffer__mlyze_compress(coffer_node *out, const char *path, const char *out_path,
                                     const coffer_compress_opts *opts, coffer_error *err)
{
    coffer_mlyze_writer_opts options = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_mlyze_open_opts open_options = COFFER_MLYZE_OPEN_OPTS_INIT;
    const char *to = out_path ? out_path : path;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    uint64_t dropped = 0;
    int lock = -1;
    options.plain = opts->plain;
    options.level = opts->level;
    options.overwrite = opts->overwrite;
    options.drop_extensions = opts->drop_extensions;
    options.progress = opts->progress;
    options.limits = open_options.limits = opts->limits;
    coffer_status status = !out_path ? coffer__lock_open(&lock, path, err) : COFFER_OK;
    if (!status)
        status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mlyze_open(&trace, src, &open_options, err);
    if (!status)
        status = coffer__mlyze_rewrite(&dropped, trace, to, &options, err);
    if (status)
        goto out;
    if (opts->plain && !out_path)
        drop_index(path);
    status = describe(out, trace, to, dropped, err);
out:
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    coffer__file_close(lock);
    return status;
}
