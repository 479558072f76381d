/* What the verbs mean for each format: the second table of the command. */
#include "mscan/mscan_verbs.h"
#include "verbs.h"

#include <string.h>

const cli_format_verb *const cli_format_verbs[] = {
    &cli_mscan_get, &cli_mscan_append, &cli_mscan_stats, &cli_mscan_heatmap, &cli_mscan_replay, NULL,
};

const cli_format_verb *cli_find_format_verb(const char *verb, const char *format)
{
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (strcmp(cli_format_verbs[i]->verb, verb) == 0 && strcmp(cli_format_verbs[i]->format, format) == 0)
            return cli_format_verbs[i];
    return NULL;
}
