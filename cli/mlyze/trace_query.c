#include "trace_query.h"

#include "base/memory.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

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
    return !status ? CLI_OK : cli_fail(cli_operand(args, 0), &err, NULL);
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
