/* What the verbs mean for traces: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_MLYZE_VERBS_H
#define COFFER_CLI_MLYZE_VERBS_H

#include "cli.h"

extern const cli_format_verb cli_mlyze_stats;
extern const cli_format_verb cli_mlyze_peak;
extern const cli_format_verb cli_mlyze_leaks;
extern const cli_format_verb cli_mlyze_temporaries;
extern const cli_format_verb cli_mlyze_flame;
extern const cli_format_verb cli_mlyze_timeline;
extern const cli_format_verb cli_mlyze_diff;

/* Opens the trace with the index beside it, works on it and closes it. A trace that is cut off or damaged is
 * worked on as far as it can be read; that is told, and the exit status is then CLI_FINDINGS. */
int mlyze_with_trace(const cli_args *args, coffer_source *src,
                     int (*work)(const cli_args *args, const coffer_mlyze *trace));
/* Opening alone: 0, or the exit status after a message. index : the caller's coffer__free, after closing. */
int mlyze_open_trace(coffer_mlyze **out, char **index, const char *path, coffer_source *src);
/* CLI_FINDINGS after a warning when not all of the trace could be read, else 0. */
int mlyze_tell_damage(const char *path, const coffer_mlyze *trace);

#endif
