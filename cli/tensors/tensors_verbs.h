/* What the verbs mean for models, whoever wrote them: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_TENSORS_VERBS_H
#define COFFER_CLI_TENSORS_VERBS_H

#include "cli.h"

/* The kinds of file that hold tensors. */
#define TENSORS_KINDS "mcf, safetensors, gguf, npz, npy"

extern const cli_format_verb cli_tensors_get;
extern const cli_format_verb cli_tensors_stats;

#endif
