/* Sets of tensors for the verbs that accept any file. */
#ifndef COFFER_CLI_TENSOR_SETS_H
#define COFFER_CLI_TENSOR_SETS_H

#include "cli.h"

/* By path, since a model may consist of several files; src : the spooled standard input when path is "-". */
coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err);

#endif
