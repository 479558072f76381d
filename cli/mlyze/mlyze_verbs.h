/* The verbs for traces: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_MLYZE_VERBS_H
#define COFFER_CLI_MLYZE_VERBS_H

#include "cli.h"

/* Every verb for traces reads the recordings and profiles of other programs too. */
#define TRACE_FORMATS "mlyze, heaptrack, massif, dhat, pprof, memray, tracemalloc, collapsed"

extern const cli_format_verb cli_mlyze_get;
extern const cli_format_verb cli_mlyze_stats;
extern const cli_format_verb cli_mlyze_peak;
extern const cli_format_verb cli_mlyze_leaks;
extern const cli_format_verb cli_mlyze_temporaries;
extern const cli_format_verb cli_mlyze_heap;
extern const cli_format_verb cli_mlyze_flame;
extern const cli_format_verb cli_mlyze_timeline;
extern const cli_format_verb cli_mlyze_diff;

/* Opens the trace with its index, calls `work` and closes the trace. A truncated or damaged trace is used as
 * far as it can be read, with a warning and the exit status CLI_FINDINGS. */
int mlyze_with_trace(const cli_args *args, coffer_source *src,
                     int (*work)(const cli_args *args, const coffer_mlyze *trace));
/* Only opens it: 0, or the exit status after a message; CLI_FINDINGS with *out set when a truncated recording
 * is read as far as it goes. Files of other profilers are opened as traces. index : coffer__free() it after
 * closing. */
int mlyze_open_trace(coffer_mlyze **out, char **index, const cli_args *args, const char *path,
                     coffer_source *src);
/* CLI_FINDINGS after a warning when not all of the trace could be read, else 0. */
int mlyze_tell_damage(const char *path, const coffer_mlyze *trace);

#endif
