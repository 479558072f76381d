/* The verbs of training sets: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_MLDF_VERBS_H
#define COFFER_CLI_MLDF_VERBS_H

#include "cli.h"
#include "files.h"

extern const cli_format_verb cli_mldf_append;
extern const cli_format_verb cli_mldf_concat;
extern const cli_format_verb cli_mldf_delete;
extern const cli_format_verb cli_mldf_get;
extern const cli_format_verb cli_mldf_head;
extern const cli_format_verb cli_mldf_order;
extern const cli_format_verb cli_mldf_pack;
extern const cli_format_verb cli_mldf_rename;
extern const cli_format_verb cli_mldf_set;
extern const cli_format_verb cli_mldf_sheet;
extern const cli_format_verb cli_mldf_split;
extern const cli_format_verb cli_mldf_stats;

/* Opens the set with the key of the command line or the environment, and closes it after the work. */
int mldf_with_set(const cli_args *args, coffer_source *src,
                  int (*work)(const cli_args *args, const coffer_mldf *set, const cli_key *key));
/* cli_fail for a set: a value that cannot be decrypted gets a hint about the key. */
int mldf_fail(const char *path, const coffer_error *err);
/* The same for a verb that reads one file and writes another (cli_fail_between). */
int mldf_fail_between(const char *input, const char *output, const coffer_error *err);
/* Old spellings of --max. */
extern const cli_old_spelling mldf_max_old[];
#define MLDF_PAGE_SIZES "4K|16K|64K|256K|1M|2M|4M|8M"
/* Puts together what --page-size, --dedup and the like say. like : a set whose page size is taken when none
 * is given; NULL = the usual one. 0, or CLI_USAGE after a message. */
int mldf_write_opts(coffer_mldf_writer_opts *out, const cli_args *args, const cli_key *key,
                    const coffer_mldf *like);
/* A file is changed where it is: 0, or CLI_USAGE when it is standard input. */
int mldf_expect_file(const cli_args *args);

/* Reports a new set, as a line or as JSON. */

/* "train.mldf: samples: 60,000, fields: 2, 47.1 MiB", or file, format, size, samples, fields. */
int mldf_report_set(const char *path, bool json);
/* The line alone. */
void mldf_print_set(const coffer_node *described);

/* set --add-field, set --field. */
int mldf_add_field(const cli_args *args, const coffer_mldf *set, const cli_key *key);
int mldf_set_field(const cli_args *args, const coffer_mldf *set, const cli_key *key);

#endif
