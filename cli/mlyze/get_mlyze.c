/* get for traces: values of the metadata. */
#include "base/buffer.h"
#include "base/json.h"
#include "base/json_write.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_query.h"

#include <string.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "write to FILE instead of standard output" },
    { "json", 0, NULL, NULL, "print JSON, also for a text" },
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    TRACE_SOURCE_OPTIONS,
    TRACE_DAMAGED_OPTION,
    { 0 },
};

/* A text by itself, anything else as JSON; indented for people. */
static bool put_value(coffer__buffer *out, const char *json, size_t len, bool as_json, bool indented)
{
    const coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__json_writer writer;
    coffer__json *parsed = NULL;
    if (coffer__json_parse(&parsed, json, len, 0, &limits, NULL))
        return false;
    const coffer__json_value *value = coffer__json_root(parsed);
    if (value->kind == COFFER__JSON_STRING && !as_json) {
        coffer__buffer_append(out, value->as.string, value->string_len);
    } else {
        coffer__json_writer_init(&writer, out, indented ? 2 : 0);
        coffer__json_write_value(&writer, value);
    }
    coffer__buffer_append(out, "\n", 1);
    coffer__json_free(parsed);
    return !out->failed;
}

/* "metadata", "metadata.source.format"; the keys alone are understood too. */
static const char *path_of(const char *name)
{
    if (!name || strcmp(name, "metadata") == 0)
        return "";
    return strncmp(name, "metadata.", 9) == 0 ? name + 9 : name;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    const char *output = cli_value(args, "output"), *path = cli_operand(args, 0);
    char *json = NULL;
    size_t len = 0;
    bool indented = !output && term_is_terminal(stdout);
    coffer_status status =
        coffer_mlyze_metadata_json(&json, &len, trace, path_of(cli_operand(args, 1)), &err);
    if (status) {
        int result = cli_fail(path, &err, "'coffer get %' prints all metadata");
        return status == COFFER_E_NOT_FOUND ? CLI_FINDINGS : result;
    }
    int result = CLI_FAILED;
    if (put_value(&text, json, len, cli_has(args, "json"), indented))
        result = cli_write_out(output, cli_has(args, "force"), text.data, text.len);
    coffer_free(json);
    coffer__buffer_free(&text);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_get = {
    .format = TRACE_FORMATS,
    .verb = "get",
    .options = options,
    .examples = "  coffer get run.mlyze metadata.command             # one value of the metadata\n"
                "  coffer get run.mlyze metadata.stack_traces.7      # one stack\n"
                "  coffer get run.mlyze > metadata.json              # all of it\n",
    .run = run,
};
