/* The verbs, in the order of the help: the first table of the command. */
#include "verbs.h"

#include <string.h>

const cli_verb *const cli_verbs[] = {
    &cli_verb_info,        &cli_verb_check,    &cli_verb_repair,
    &cli_verb_ls,          &cli_verb_head,     &cli_verb_get,
    &cli_verb_set,         &cli_verb_log,      &cli_verb_convert,
    &cli_verb_pack,        &cli_verb_quantize, &cli_verb_append,
    &cli_verb_delete,      &cli_verb_concat,   &cli_verb_split,
    &cli_verb_compact,     &cli_verb_compress, &cli_verb_diff,
    &cli_verb_stats,       &cli_verb_peak,     &cli_verb_leaks,
    &cli_verb_temporaries, &cli_verb_flame,    &cli_verb_timeline,
    &cli_verb_heatmap,     &cli_verb_sheet,    &cli_verb_replay,
    &cli_verb_order,       &cli_verb_formats,  &cli_verb_help,
    &cli_verb_version,     &cli_verb_generate, NULL,
};

const cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}
