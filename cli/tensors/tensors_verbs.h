/* Verbs for models of any program: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_TENSORS_VERBS_H
#define COFFER_CLI_TENSORS_VERBS_H

#include "cli.h"

#include <stdint.h>

/* The kinds of files that contain tensors. */
#define TENSORS_KINDS "mcf, safetensors, gguf, npz, npy"

/* The kind of a model that cli_repair_model repairs, "safetensors" or "gguf"; NULL for other files. */
const char *cli_repairable_model(const char *path);
int cli_repair_model(const cli_args *args, const char *kind);

extern const cli_format_verb cli_tensors_get;
extern const cli_format_verb cli_tensors_stats;
extern const cli_format_verb cli_tensors_heatmap;

/* A histogram in sixteen characters. */
enum { SPARK_BINS = 64, SPARK_COLUMNS = 16 };
typedef char spark_text[3 * SPARK_COLUMNS + 1];

/* Heights are relative to the fullest column; a column with anything in it is never empty. */
const char *spark_draw(spark_text out, const uint64_t histogram[SPARK_BINS]);

/* Sets of tensors for the verbs that accept any file. */

/* By path, since a model may consist of several files; src : the spooled standard input when path is "-". */
coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err);

#endif
