/* The verbs that have code of their own, and lookups in the two tables. */
#ifndef COFFER_CLI_VERBS_H
#define COFFER_CLI_VERBS_H

#include "cli.h"

extern const cli_verb cli_verb_check;
extern const cli_verb cli_verb_compact;
extern const cli_verb cli_verb_completion;
extern const cli_verb cli_verb_compress;
extern const cli_verb cli_verb_convert;
extern const cli_verb cli_verb_diff;
extern const cli_verb cli_verb_formats;
extern const cli_verb cli_verb_generate;
extern const cli_verb cli_verb_help;
extern const cli_verb cli_verb_info;
extern const cli_verb cli_verb_ls;
extern const cli_verb cli_verb_put;
extern const cli_verb cli_verb_quantize;
extern const cli_verb cli_verb_record;
extern const cli_verb cli_verb_repair;
extern const cli_verb cli_verb_report;
extern const cli_verb cli_verb_view;
extern const cli_verb cli_verb_version;

/* Whether pages can be made; prints what is missing. */
bool cli_page_is_available(void);
/* Opens the operands, one or two files. CLI_OK, or after a message; close the files in both cases. */
int cli_open_pair(coffer_file *files[2], const cli_args *args);
/* --max-read, --threads and the names of the files. False after an error was printed. */
bool cli_page_options(coffer_chunks_opts *opts, const cli_args *args);

const cli_verb *cli_find_verb(const char *name); /* NULL: no verb has this name */
/* The verb that a common word for it means ("verify": "check"), or NULL. */
const char *cli_find_synonym(const char *word);
const cli_format_verb *cli_find_format_verb(const char *verb, const char *format);
bool cli_row_is_for(const cli_format_verb *row, const char *format);

/* diff of any two files as a tree of nodes, for rows of the format table that add something to it. group_by :
 * as in coffer_diff_opts. */
int cli_diff_nodes(const cli_args *args, const char *group_by);

/* The options of 'convert': those of the verb itself, and those of all conversions of the library. */

/* The table, built on the first call; it lives until the process ends. */
const cli_option *cli_convert_options(void);
/* Whether the option is one of a conversion. */
bool cli_is_convert_setting(const cli_option *option);

/* convert --list [KIND]: a table of all conversions, or those of a kind with their options. Returns the exit
 * status. */
int cli_convert_list(const cli_args *args);

#endif
