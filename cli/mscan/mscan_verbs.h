/* Verbs for scans, used in the table of cli/format_verbs.c. */
#ifndef COFFER_CLI_MSCAN_VERBS_H
#define COFFER_CLI_MSCAN_VERBS_H

#include "cli.h"
#include "coffer/mscan.h"

extern const cli_format_verb cli_mscan_append;
extern const cli_format_verb cli_mscan_get;
extern const cli_format_verb cli_mscan_stats;
extern const cli_format_verb cli_mscan_heatmap;
extern const cli_format_verb cli_mscan_replay;
extern const cli_format_verb cli_mscan_set;
extern const cli_format_verb cli_mscan_delete;
extern const cli_format_verb cli_mscan_concat;
extern const cli_format_verb cli_mscan_split;
extern const cli_format_verb cli_mscan_diff;

/* Opens the scan, calls `work` and closes it. Reports a scan that cannot be opened. */
int mscan_with_scan(const cli_args *args, coffer_source *src,
                    int (*work)(const cli_args *args, const coffer_mscan *scan));

/* How many parameters a pattern matches; NULL matches all. */
size_t mscan_params_matching(const coffer_mscan *scan, const char *glob);

/* Where a token is, in words. */

/* The sequence of a token; NULL for a token past the total (a damaged scan may have such records). */
const coffer_mscan_sequence *places_sequence_of(const coffer_mscan *scan, uint64_t token);

typedef char places_text[192];
/* The beginning of a sequence's source on one line, at most `characters` long; "" when it has none. */
const char *places_excerpt(places_text out, const coffer_mscan_sequence *sequence, size_t characters);

#endif
