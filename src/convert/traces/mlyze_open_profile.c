/* Opens files of other profilers as traces: they are converted into a temporary file. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/kinds.h"
#include "convert/traces/mlyze_import.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/temporary.h"
#include "outside/archives/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef coffer_status (*import_function)(const coffer__convert_job *job, coffer_error *err);

static import_function find_import(const char *kind)
{
    static const struct {
        const char *kind;
        import_function run;
    } imports[] = {
        { "heaptrack", coffer__mlyze_from_heaptrack }, { "massif", coffer__mlyze_from_massif },
        { "dhat", coffer__mlyze_from_dhat },           { "pprof", coffer__mlyze_from_pprof },
        { "collapsed", coffer__mlyze_from_collapsed },
    };
    for (size_t i = 0; i < sizeof imports / sizeof *imports; i++) {
        if (strcmp(imports[i].kind, kind) == 0)
            return imports[i].run;
    }
    return NULL;
}

/* Only its owner may read it: names of functions and files can be secret. */
static coffer_status make_temporary(char **path, coffer_error *err)
{
    const char *folder = getenv("TMPDIR");
    char wanted[4096];
    int fd = -1;
    if (!folder || !*folder)
        folder = "/tmp";
    if ((size_t)snprintf(wanted, sizeof wanted, "%s/coffer.mlyze", folder) >= sizeof wanted)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "TMPDIR is too long");
    coffer_status status = coffer__fail_other(err, coffer__temporary_create(&fd, path, wanted, err), folder);
    if (status)
        return status;
    if (coffer__os_chmod(fd, 0600) != 0)
        status = coffer__fail_errno(err, "cannot protect a temporary file", errno);
    coffer__file_close(fd);
    return status;
}

/* A trace inside a gzip or zstd stream. */
static coffer_status unpack_to(const char *path, coffer_source *src, const coffer_mlyze_profile_opts *opts,
                               coffer_error *err)
{
    coffer_limits limits = coffer__limits(opts->limits);
    coffer__sink_opts sink_opts = { .no_sync = true };
    coffer_source *plain = NULL;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__unpack_to_source(&plain, src, &limits, err);
    if (!status)
        status = coffer__sink_create(&sink, path, &sink_opts, err);
    if (!status) {
        status = coffer__sink_copy_source(sink, plain, 0, coffer_source_size(plain), opts->progress, err);
        if (!status)
            status = coffer__sink_commit(sink, err);
        else
            coffer__sink_discard(sink);
    }
    coffer_source_close(plain);
    return status;
}

static coffer_status import_to(const char *path, const char *kind, coffer_source *src,
                               const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    char max[24];
    coffer_setting settings[4] = { { "no-index", "" }, { "max-events", max } };
    size_t count = 2;
    snprintf(max, sizeof max, "%" PRIu64, opts->max_events);
    if (opts->partial)
        settings[count++] = (coffer_setting){ "partial", "" };
    if (opts->merge)
        settings[count++] = (coffer_setting){ "merge", "" };
    coffer__convert_job job = { .in = src,
                                .from = kind,
                                .to = "mlyze",
                                .out_path = path,
                                .overwrite = true,
                                .settings = settings,
                                .setting_count = count,
                                .limits = coffer__limits(opts->limits),
                                .progress = opts->progress };
    return find_import(kind)(&job, err);
}

/* The handle keeps the file open after its name is gone. */
static coffer_status open_imported(coffer_mlyze **out, const char *kind, coffer_source *src,
                                   const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    coffer_mlyze_open_opts open_opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    char *path = NULL;
    open_opts.limits = opts->limits;
    open_opts.stack_order = opts->stack_order;
    coffer_status status = make_temporary(&path, err);
    if (!status)
        status = strcmp(kind, "mlyze") == 0 ? unpack_to(path, src, opts, err)
                                            : import_to(path, kind, src, opts, err);
    if (!status)
        status = coffer_mlyze_open_path(out, path, &open_opts, err);
    if (path) {
        coffer__ignore(coffer__file_unlink(path, NULL));
        coffer__temporary_forget(path);
    }
    coffer__free(path);
    return status;
}

coffer_status coffer_mlyze_open_profile(coffer_mlyze **out, coffer_source *src,
                                        const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    coffer_mlyze_profile_opts options = COFFER_MLYZE_PROFILE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    const char *kind = options.kind;
    if (!status && !kind)
        status = coffer__kind_of(&kind, src, err);
    if (status)
        return status;
    if (strcmp(kind, "mlyze") == 0 && !coffer__kind_is_packed_format(kind, src)) {
        coffer_mlyze_open_opts open_opts = COFFER_MLYZE_OPEN_OPTS_INIT;
        open_opts.limits = options.limits;
        open_opts.stack_order = options.stack_order;
        return coffer_mlyze_open(out, src, &open_opts, err);
    }
    if (strcmp(kind, "mlyze") != 0 && !find_import(kind))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a %s file is not a memory profile", kind);
    return open_imported(out, kind, src, &options, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_profile_opts, COFFER_MLYZE_PROFILE_OPTS_INIT)
