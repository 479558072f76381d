#ifndef COFFER_FILE_H
#define COFFER_FILE_H

#include "coffer/format.h"
#include "coffer/tensors.h"

COFFER_BEGIN_DECLS

/* Any file that the library can read: a file of one of its formats, a model of another program (safetensors,
 * GGUF, npy, npz; also a folder or an index of shards), or one of the kinds hdf5, mtx, heaptrack, massif,
 * dhat, pprof. The kind is detected once, when the file is opened. */
typedef struct coffer_file coffer_file;

/* Opens a file or a folder; "-" is standard input. Succeeds also for a file that is not recognized: then
 * coffer_file_unknown has the reason, and only coffer_file_check has something to report.
 * out : owned by the caller, free with coffer_file_close(); untouched on failure. */
COFFER_API_STATUS coffer_file_open(coffer_file **out, const char *path, coffer_error *err);
COFFER_API void coffer_file_close(coffer_file *file);

/* The error of a file that is not recognized or cannot be opened as what it is; NULL for all others. */
COFFER_API const coffer_error *coffer_file_unknown(const coffer_file *file);
COFFER_API const char *coffer_file_kind(const coffer_file *file); /* "mscan", "gguf", "mtx"; NULL = unknown */
COFFER_API const char *coffer_file_title(const coffer_file *file);           /* "neural-network scan" */
COFFER_API uint64_t coffer_file_size(const coffer_file *file);               /* of all shards */
COFFER_API coffer_source *coffer_file_source(const coffer_file *file);       /* NULL for a folder */
COFFER_API const coffer_format *coffer_file_format(const coffer_file *file); /* NULL = not of the library */
COFFER_API const coffer_tensors *coffer_file_tensors(
    const coffer_file *file); /* of other programs, or NULL */

/* Whether files of a kind, of the library ("mcf") or of another program ("gguf"), support an operation:
 * describe, check, list, diff and the others of coffer_format_can. */
COFFER_API bool coffer_file_kind_can(const char *kind, coffer_capability what);

/* As coffer_describe, coffer_check and coffer_list. The structure of a file of another program is checked,
 * and its counts are reported; with `full`, every value is read. */
COFFER_API_STATUS coffer_file_describe(coffer_node *out, const coffer_file *file,
                                       const coffer_describe_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_file_check(coffer_report *out, const coffer_file *file,
                                    const coffer_check_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_file_list(coffer_node *out, const coffer_file *file, const coffer_list_opts *opts,
                                   coffer_error *err);
/* Compares two files of one format, or two sets of tensors in files of any kind. */
COFFER_API_STATUS coffer_file_diff(coffer_node *out, const coffer_file *a, const coffer_file *b,
                                   const coffer_diff_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
