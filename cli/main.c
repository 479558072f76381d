/* How a command line finds its way to a verb, and a verb to the format of its file. */
#include "args.h"
#include "help.h"
#include "term.h"
#include "verbs.h"

#include <string.h>

static int no_such_row(const cli_args *args, const char *path, const coffer_format *format)
{
    char known[160] = "";
    size_t len = 0;
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (strcmp(cli_format_verbs[i]->verb, args->verb->name) == 0 && len < sizeof known)
            len += (size_t)snprintf(known + len, sizeof known - len, "%s %s",
                                    len > 0 ? "," : "; it works with", cli_format_verbs[i]->format);
    return cli_usage(args, "%s is a %s file, and there is no '%s' for those%s", path,
                     coffer_format_name(format), args->verb->name, known);
}

/* A verb that means something else for each format: the first operand's format decides. */
static int run_by_format(cli_args *args)
{
    const char *path = cli_operand(args, 0);
    const coffer_format *format = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    int status = cli_open(&src, path);
    if (status)
        return status;
    if (coffer_identify(&format, src, &err) != COFFER_OK) {
        status = cli_fail(path, &err, NULL);
        goto out;
    }
    const cli_format_verb *row = cli_find_format_verb(args->verb->name, coffer_format_name(format));
    if (!row) {
        status = no_such_row(args, path, format);
        goto out;
    }
    status = cli_bind(args, row);
    if (!status)
        status = row->run(args, src);
out:
    coffer_source_close(src);
    return status;
}

static int run_verb(const cli_verb *verb, int count, char *const *words)
{
    cli_args args;
    int status = cli_parse(&args, verb, count, words);
    if (status)
        goto out;
    if (cli_value(&args, "color"))
        term_set_color(cli_value(&args, "color"));
    term_set_quiet(cli_has(&args, "quiet"));
    if (cli_has(&args, "help")) {
        cli_help_verb(stdout, verb);
        goto out;
    }
    status = cli_check_operands(&args);
    if (!status)
        status = verb->run ? verb->run(&args) : run_by_format(&args);
out:
    cli_args_free(&args);
    return status;
}

int main(int argc, char **argv)
{
    cli_install_signals();
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        return cli_unknown_verb(name);
    return cli_finish(run_verb(verb, argc - 2, argv + 2));
}
