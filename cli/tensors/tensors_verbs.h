/* Verbs for models of any program: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_TENSORS_VERBS_H
#define COFFER_CLI_TENSORS_VERBS_H

#include "cli.h"

/* The kinds of files that contain tensors. */
#define TENSORS_KINDS "mcf, safetensors, gguf, npz, npy"

/* The kind of a model that cli_repair_model repairs, "safetensors" or "gguf"; NULL for other files. */
const char *cli_repairable_model(const char *path);
int cli_repair_model(const cli_args *args, const char *kind);

extern const cli_format_verb cli_tensors_get;
extern const cli_format_verb cli_tensors_stats;

#endif
