#include "args.h"

#include "io/sink.h"
#include "term.h"

#include <string.h>
#include <sys/stat.h>

/* Text of a file on a terminal keeps its lines and nothing that could do more than show. */
static int show(const char *text, size_t len)
{
    term_put_safe(stdout, text, len);
    if (len > 0 && text[len - 1] != '\n')
        putchar('\n');
    return CLI_OK;
}

int cli_write_out(const char *path, bool replace, const void *bytes, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !replace };
    const char *output = path ? path : "-";
    if (strcmp(output, "-") == 0 && term_is_terminal(stdout))
        return show(bytes, len);
    coffer_status status = coffer__sink_create(&sink, output, &opts, &err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, bytes, len, &err);
    if (status == COFFER_OK)
        status = coffer__sink_commit(sink, &err);
    else
        coffer__sink_discard(sink);
    return status == COFFER_OK ? CLI_OK
                               : cli_fail(strcmp(output, "-") == 0 ? "standard output" : output, &err, NULL);
}

bool cli_is_stream(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static bool overwrites;

bool cli_overwrites(void)
{
    return overwrites;
}

static const char *operand_written(const cli_args *args)
{
    size_t count = cli_operand_count(args);
    if (count < 2 || args->verb->writes == CLI_WRITES_NONE)
        return NULL;
    return cli_operand(args, args->verb->writes == CLI_WRITES_FIRST ? 0 : count - 1);
}

static bool has_option(const cli_verb *verb, const char *name)
{
    cli_tables tables;
    cli_tables_of(&tables, verb, NULL);
    return cli_tables_find(&tables, name, strlen(name)) != NULL;
}

static int check_same(const cli_args *args, const char *output)
{
    for (size_t i = 0; output && i < cli_operand_count(args); i++) {
        const char *input = cli_operand(args, i);
        if (input == output || strcmp(output, "-") == 0)
            continue;
        if (cli_same_file(output, strcmp(input, "-") == 0 ? "/dev/stdin" : input))
            return cli_usage(args, "input and output are the same file: %s%s", output,
                             has_option(args->verb, "in-place")
                                 ? "; --in-place replaces it and keeps the original"
                                 : "");
    }
    return CLI_OK;
}

int cli_check_files(const cli_args *args)
{
    const char *output = cli_value(args, "output");
    struct stat st;
    overwrites = cli_has(args, "force");
    if (check_same(args, output) || check_same(args, operand_written(args)))
        return CLI_USAGE;
    if (overwrites || !output || stat(output, &st) != 0 || !S_ISREG(st.st_mode))
        return CLI_OK;
    const coffer_error err = { .status = COFFER_E_EXISTS,
                               .subject = COFFER_SUBJECT_OUTPUT,
                               .offset = COFFER_OFFSET_NONE,
                               .text = "already exists" };
    return cli_fail(output, &err, NULL);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}
