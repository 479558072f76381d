/* Every row of the two tables, one line each. */
#ifndef COFFER_CLI_VERBS_H
#define COFFER_CLI_VERBS_H

#include "cli.h"

extern const cli_verb cli_verb_append;
extern const cli_verb cli_verb_check;
extern const cli_verb cli_verb_compact;
extern const cli_verb cli_verb_compress;
extern const cli_verb cli_verb_concat;
extern const cli_verb cli_verb_convert;
extern const cli_verb cli_verb_delete;
extern const cli_verb cli_verb_diff;
extern const cli_verb cli_verb_flame;
extern const cli_verb cli_verb_formats;
extern const cli_verb cli_verb_generate;
extern const cli_verb cli_verb_get;
extern const cli_verb cli_verb_head;
extern const cli_verb cli_verb_heatmap;
extern const cli_verb cli_verb_help;
extern const cli_verb cli_verb_info;
extern const cli_verb cli_verb_leaks;
extern const cli_verb cli_verb_log;
extern const cli_verb cli_verb_ls;
extern const cli_verb cli_verb_order;
extern const cli_verb cli_verb_pack;
extern const cli_verb cli_verb_peak;
extern const cli_verb cli_verb_quantize;
extern const cli_verb cli_verb_repair;
extern const cli_verb cli_verb_replay;
extern const cli_verb cli_verb_set;
extern const cli_verb cli_verb_sheet;
extern const cli_verb cli_verb_split;
extern const cli_verb cli_verb_stats;
extern const cli_verb cli_verb_temporaries;
extern const cli_verb cli_verb_timeline;
extern const cli_verb cli_verb_version;

const cli_verb *cli_find_verb(const char *name); /* NULL if there is none */
const cli_format_verb *cli_find_format_verb(const char *verb, const char *format);
bool cli_row_is_for(const cli_format_verb *row, const char *format);

#endif
