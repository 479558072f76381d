#include "trace_query.h"

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
#define SEE_KEEP "--damaged keep leaves the damaged parts out; 'coffer check %' lists all that is wrong"

static bool stopped; /* at damage, which is reported */

/* Prints what the trace does not have any more, each with the hint. */
static int report_damage(const char *path, const coffer_mlyze *trace, const char *hint)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    int result = CLI_OK;
    coffer_mlyze_lost(&blocks, &events, trace);
    if (coffer_mlyze_damage(trace, &err))
        result = cli_fail(path, &err, hint);
    if (blocks > 0) {
        coffer__fail(&err, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                     "%" PRIu64 " event%s in %" PRIu64 " damaged block%s are lost", events,
                     term_plural(events), blocks, term_plural(blocks));
        result = cli_fail(path, &err, hint);
    }
    return result;
}

int trace_stop_at_damage(const cli_args *args, const char *path, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (!cli_has(args, "damaged") || cli_choice(args, "damaged", 0) != 0)
        return CLI_OK;
    int result = report_damage(path, trace, SEE_KEEP);
    if (result == CLI_OK && coffer_mlyze_repaired(trace, &err))
        result = cli_fail(path, &err, SEE_KEEP);
    stopped = stopped || result != CLI_OK;
    return result == CLI_OK ? CLI_OK : CLI_FINDINGS;
}

bool trace_stopped(void)
{
    return stopped;
}

int mlyze_tell_damage(const char *path, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    int result = report_damage(path, trace, SEE_CHECK);
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
    int result = trace_stop_at_damage(args, path, trace);
    if (result == CLI_OK)
        result = work(args, trace);
    if (result <= CLI_FINDINGS)
        result = cli_worse(result, opened);
    if (result <= CLI_FINDINGS && !stopped)
        result = cli_worse(result, mlyze_tell_damage(path, trace));
    coffer_mlyze_close(trace);
    coffer__free(index);
    return result;
}

static int find_moment(uint64_t *event, const cli_args *args, const char *text, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mlyze_find_moment(event, trace, text, &err) == COFFER_OK)
        return CLI_OK;
    int status = cli_fail(cli_operand(args, 0), &err,
                          "a moment is a time (1.5s, 20ms), an event number or "
                          "the name of a marker");
    return err.status == COFFER_E_NOT_FOUND ? CLI_USAGE : status;
}

int trace_query_moment(uint64_t *event, const cli_args *args, const char *option, const coffer_mlyze *trace)
{
    const char *text = cli_value(args, option);
    return text ? find_moment(event, args, text, trace) : CLI_OK;
}

/* "A..B", "A..", "..B": names of markers may contain single dots, so the last ".." separates. */
static int read_window(coffer_mlyze_stats_opts *query, const cli_args *args, const coffer_mlyze *trace)
{
    const char *text = cli_value(args, "window"), *dots = NULL;
    int status = CLI_OK;
    for (const char *at = text; at && (at = strstr(at, "..")); at++)
        dots = at;
    if (!text)
        return CLI_OK;
    if (!dots)
        return cli_usage(args,
                         "--window must be two moments such as 1.5s..2s, load..train or 100..200, not '%s'",
                         text);
    char *begin = coffer__strndup(text, (size_t)(dots - text));
    if (!begin)
        return cli_usage(args, "out of memory");
    if (*begin)
        status = find_moment(&query->begin, args, begin, trace);
    if (status == CLI_OK && dots[2])
        status = find_moment(&query->end, args, dots + 2, trace);
    coffer__free(begin);
    if (status == CLI_OK && query->begin > query->end)
        status = cli_usage(args, "--window %s ends before it begins", text);
    return status;
}

const cli_old_spelling trace_what_old[] = {
    { "--measure", NULL }, { "-m", NULL }, { "live", "leaks" }, { "temporary", "temporaries" }, { 0 },
};

int trace_query_init(trace_query *out, const cli_args *args, const coffer_mlyze *trace)
{
    uint64_t threads;
    *out = (trace_query){ .query = COFFER_MLYZE_STATS_OPTS_INIT, .limits = COFFER_LIMITS_INIT };
    if (!cli_number(&threads, args, "threads", 0, 1, 1024) ||
        !cli_size(&out->limits.memory_bytes, args, "memory-limit", out->limits.memory_bytes))
        return CLI_USAGE;
    out->query.threads = (uint32_t)threads;
    return read_window(&out->query, args, trace);
}

int trace_query_run(trace_query *request, const cli_args *args, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    term_progress_start(&bar, "pairing", "events");
    request->query.limits = &request->limits;
    request->query.progress = &bar.progress;
    coffer_status status = coffer_mlyze_stats_new(&request->stats, trace, &request->query, &err);
    term_progress_end(&bar);
    return !status ? trace_stop_at_damage(args, cli_operand(args, 0), trace)
                   : cli_fail(cli_operand(args, 0), &err, NULL);
}

void trace_query_free(trace_query *request)
{
    coffer_mlyze_stats_free(request->stats);
    request->stats = NULL;
}

/* ---- Patterns ---- */

static int read_pattern_file(coffer_mlyze_suppressions *list, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    int result = cli_open(&src, path);
    if (result != CLI_OK)
        return result;
    coffer_status status = coffer_mlyze_suppressions_add_file(list, src, &err);
    coffer_source_close(src);
    return status ? cli_fail(path, &err, "") : CLI_OK;
}

int trace_read_patterns(coffer_mlyze_suppressions **out, const cli_args *args, const char *option,
                        const char *file_option)
{
    cli_word word;
    cli_place place = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    int result = CLI_OK;
    coffer_status status = coffer_mlyze_suppressions_new(out, &err);
    while (!status && result == CLI_OK && cli_next_word(&word, &place, args)) {
        if (word.option && file_option && strcmp(word.option, file_option) == 0)
            result = read_pattern_file(*out, word.value);
        else if (word.option && strcmp(word.option, option) == 0)
            status = coffer_mlyze_suppressions_add(*out, word.value, &err);
    }
    return status ? cli_fail(cli_operand(args, 0), &err, NULL) : result;
}

int trace_fail_over(const cli_args *args, const char *what, uint64_t bytes, uint64_t limit)
{
    const char *path = cli_operand(args, cli_operand_count(args) - 1);
    term_text found, allowed;
    if (bytes <= limit)
        return CLI_OK;
    fflush(stdout);
    fputs("coffer: ", stderr);
    term_print_text(stderr, path, strlen(path), 0);
    fprintf(stderr, ": %s (%" PRIu64 " bytes) %s, --fail-over allows %s (%" PRIu64 " bytes)\n",
            term_bytes(found, bytes), bytes, what, term_bytes(allowed, limit), limit);
    return CLI_FINDINGS;
}
