/* The file that a verb looks into: one of the library's formats, or a model of another program's, which is a
 * set of tensors. The verbs ask here and need not know which it is. */
#ifndef COFFER_CLI_ANY_FILE_H
#define COFFER_CLI_ANY_FILE_H

#include "cli.h"

typedef struct cli_file {
    const char *path;
    coffer_source *src;          /* NULL for a folder */
    const coffer_format *format; /* NULL: none of the library's */
    coffer_tensors *set;         /* of a file without a format; else NULL */
    const char *kind;            /* "mscan", "safetensors"; NULL when not recognized */
    coffer_error unknown;        /* why there is neither format nor set; else status 0 */
} cli_file;

/* Fails only when nothing can be read: what is not recognized is open all the same, and says so in `unknown`.
 * out is to be closed after a success. */
coffer_status cli_file_open(cli_file *out, const char *path, coffer_error *err);
/* The same for verbs that have nothing to say about a file that is not recognized: 0, or the exit status
 * after a message. */
int cli_file_open_known(cli_file *out, const char *path);
void cli_file_close(cli_file *file);

const char *cli_file_title(const cli_file *file); /* "neural-network scan", "safetensors file" */
/* For cli_fail: check and repair, which it would recommend, can do little for files of other programs. */
const char *cli_file_hint(const cli_file *file);
uint64_t cli_file_size(const cli_file *file);

/* As coffer_describe, coffer_check, coffer_list and coffer_diff. Two files that both hold tensors can be
 * compared, whatever they are. */
coffer_status cli_file_describe(coffer_node *out, const cli_file *file, const coffer_describe_opts *opts,
                                coffer_error *err);
coffer_status cli_file_check(coffer_report *out, const cli_file *file, const coffer_check_opts *opts,
                             coffer_error *err);
coffer_status cli_file_list(coffer_node *out, const cli_file *file, const coffer_list_opts *opts,
                            coffer_error *err);
coffer_status cli_file_diff(coffer_node *out, const cli_file *a, const cli_file *b,
                            const coffer_diff_opts *opts, coffer_error *err);

#endif
