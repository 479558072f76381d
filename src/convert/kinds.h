/* The kinds of file that conversions lead from and to: the library's own formats, and those of others. */
#ifndef COFFER_CONVERT_KINDS_H
#define COFFER_CONVERT_KINDS_H

#include "coffer/source.h"

/* "npy" for "scan.npy"; NULL when the name's extension belongs to no kind. */
const char *coffer__kind_by_name(const char *path);
/* By content: a format of the library, or an outside one with a magic; else by the source's name. */
coffer_status coffer__kind_of(const char **kind, coffer_source *src, coffer_error *err);
/* A checkpoint of PyTorch, which is recognized and refused: it contains Python code. */
#define COFFER__KIND_PYTORCH "pytorch"
#define COFFER__KIND_PYTORCH_TITLE "PyTorch checkpoint"
#define COFFER__KIND_PYTORCH_HINT             \
    "import torch, safetensors.torch as st; " \
    "st.save_file(torch.load(\"IN\", weights_only=True), \"OUT.safetensors\")"
/* The kind of that name as the table spells it, or NULL. */
const char *coffer__kind_find(const char *kind);

/* Whether the file is one of the library's formats inside a gzip or zstd stream. */
bool coffer__kind_is_packed_format(const char *kind, coffer_source *src);

#endif
