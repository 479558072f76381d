#include "help.h"
#include "verbs.h"

/* Whether the verb has options for files of this kind. */
static bool has_row(const cli_verb *verb, const char *kind)
{
    return cli_find_format_verb(verb->name, kind) != NULL;
}

static int run(const cli_args *args)
{
    const char *name = cli_operand(args, 0), *kind = cli_operand(args, 1);
    if (!name) {
        cli_help_overview(stdout);
        return CLI_OK;
    }
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        return cli_unknown_verb(name);
    if (kind && !has_row(verb, kind))
        return cli_usage(args, "'coffer %s' has no options for %s files; 'coffer help %s' shows all", name,
                         kind, name);
    cli_help_verb(stdout, verb, kind);
    return CLI_OK;
}

const cli_verb cli_verb_help = {
    .name = "help",
    .usage = "[VERB [FORMAT]]",
    .summary = "explain a verb, its options and examples",
    .pages = true,
    .group = CLI_GROUP_HELP,
    .description = "Without VERB, lists the verbs. With FORMAT, shows only the options for that format.",
    .examples = "  coffer help check\n"
                "  coffer help get mcf                     # the options of one format\n",
    .max_operands = 2,
    .run = run,
};
