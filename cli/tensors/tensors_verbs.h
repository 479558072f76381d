/* Verbs for models of any program: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_TENSORS_VERBS_H
#define COFFER_CLI_TENSORS_VERBS_H

#include "cli.h"

/* The kinds of files that contain tensors. */
#define TENSORS_KINDS "mcf, safetensors, gguf, npz, npy"

extern const cli_format_verb cli_tensors_get;
extern const cli_format_verb cli_tensors_stats;

#endif
