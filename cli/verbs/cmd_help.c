#include "help.h"
#include "verbs.h"

static int run(const cli_args *args)
{
    const char *name = cli_operand(args, 0);
    if (!name) {
        cli_help_overview(stdout);
        return CLI_OK;
    }
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        return cli_unknown_verb(name);
    cli_help_verb(stdout, verb);
    return CLI_OK;
}

const cli_verb cli_verb_help = {
    .name = "help",
    .usage = "[VERB]",
    .summary = "tell what a verb does, with its options and examples",
    .description = "Without VERB, lists the verbs.",
    .examples = "  coffer help check\n",
    .max_operands = 1,
    .run = run,
};
