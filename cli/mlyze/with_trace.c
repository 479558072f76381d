#include "base/fail.h"
#include "base/memory.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_names.h"

#include <inttypes.h>
#include <string.h>

static bool ends_in(const char *path, const char *ending)
{
    size_t len = strlen(path), tail = strlen(ending);
    return len > tail && strcmp(path + len - tail, ending) == 0;
}

/* Standard input has no path for an index, and a compressed file has none of its own. */
static char *index_path_of(const char *path)
{
    static const char ending[] = ".idx";
    size_t len = strlen(path);
    if (strcmp(path, "-") == 0 || ends_in(path, ".gz") || ends_in(path, ".zst"))
        return NULL;
    char *index = coffer__malloc(len + sizeof ending);
    if (index) {
        memcpy(index, path, len);
        memcpy(index + len, ending, sizeof ending);
    }
    return index;
}

static coffer_mlyze_order order_of(const cli_args *args)
{
    if (!cli_has(args, "stack-order"))
        return COFFER_MLYZE_ORDER_AUTO;
    return cli_choice(args, "stack-order", 0) == 0 ? COFFER_MLYZE_ORDER_OUTERMOST_FIRST
                                                   : COFFER_MLYZE_ORDER_INNERMOST_FIRST;
}

/* A truncated recording is read as far as it goes, with a message and, at the end, the exit status 1. */
static int open_profile(coffer_mlyze **out, const cli_args *args, const char *path, const char *kind,
                        coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_profile_opts opts = COFFER_MLYZE_PROFILE_OPTS_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    term_progress bar;
    if (!cli_number(&opts.max_events, args, "max-events", COFFER_MLYZE_MAX_EVENTS, 1, UINT64_MAX) ||
        !cli_size(&limits.unpacked_bytes, args, "max-unpacked", limits.unpacked_bytes))
        return CLI_USAGE;
    opts.kind = kind;
    opts.merge = true;
    opts.limits = &limits;
    opts.stack_order = order_of(args);
    opts.progress = &bar.progress;
    term_progress_start(&bar, "reading", NULL);
    bar.amount = coffer_source_size(src);
    coffer_status status = coffer_mlyze_open_profile(out, src, &opts, &err);
    if (status == COFFER_E_TRUNCATED) {
        opts.partial = true;
        status = coffer_mlyze_open_profile(out, src, &opts, NULL);
        term_progress_end(&bar);
        int result = cli_fail(path, &err, status ? NULL : "the events before this place are used");
        return status ? result : CLI_FINDINGS;
    }
    term_progress_end(&bar);
    if (!status)
        return CLI_OK;
    return cli_fail(path, &err,
                    status == COFFER_E_LIMIT ? "--max-unpacked SIZE and --max-events N raise the limits"
                                             : "");
}

int mlyze_open_trace(coffer_mlyze **out, char **index, const cli_args *args, const char *path,
                     coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    const char *kind = NULL;
    *index = NULL;
    if (coffer_convert_kind(&kind, src, &err) == COFFER_OK && strcmp(kind, "mlyze") != 0)
        return open_profile(out, args, path, kind, src);
    opts.index_path = *index = index_path_of(path);
    opts.stack_order = order_of(args);
    if (coffer_mlyze_open(out, src, &opts, &err) == COFFER_OK)
        return CLI_OK;
    coffer__free(*index);
    *index = NULL;
    return cli_fail(path, &err, NULL);
}

#define SEE_CHECK \
    "the numbers above are of the events that could be read; 'coffer check %' lists all that is wrong"

int mlyze_tell_damage(const char *path, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    int result = CLI_OK;
    coffer_mlyze_lost(&blocks, &events, trace);
    if (coffer_mlyze_damage(trace, &err))
        result = cli_fail(path, &err, SEE_CHECK);
    if (blocks > 0) {
        coffer__fail(&err, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                     "%" PRIu64 " event%s in %" PRIu64 " damaged block%s are lost", events,
                     term_plural(events), blocks, term_plural(blocks));
        result = cli_fail(path, &err, SEE_CHECK);
    }
    bool known;
    coffer_mlyze_stack_order(trace, &known);
    if (!known)
        trace_tell_note(
            path, "the order of frames is not known; frames are read outermost first, but a plain trace of "
                  "Coffer 0.1 lists the innermost first: --stack-order innermost-first");
    if (coffer_mlyze_repaired(trace, &err))
        result = cli_fail(path, &err, "the numbers above are of the events that were kept");
    return result == CLI_OK ? CLI_OK : CLI_FINDINGS;
}

int mlyze_with_trace(const cli_args *args, coffer_source *src,
                     int (*work)(const cli_args *args, const coffer_mlyze *trace))
{
    const char *path = cli_operand(args, 0);
    coffer_mlyze *trace = NULL;
    char *index = NULL;
    int opened = mlyze_open_trace(&trace, &index, args, path, src);
    if (!trace)
        return opened;
    int result = work(args, trace);
    if (result <= CLI_FINDINGS)
        result = cli_worse(result, opened);
    if (result == CLI_OK || result == CLI_FINDINGS)
        result = cli_worse(result, mlyze_tell_damage(path, trace));
    coffer_mlyze_close(trace);
    coffer__free(index);
    return result;
}
