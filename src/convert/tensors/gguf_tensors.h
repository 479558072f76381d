/* The GGUF or MCF handle of a set of tensors. */
#ifndef COFFER_CONVERT_GGUF_TENSORS_H
#define COFFER_CONVERT_GGUF_TENSORS_H

#include "convert/tensors/tensors.h"
#include "outside/models/gguf.h"

/* NULL when the set is of another kind. Lives as long as the set. */
const coffer__gguf *coffer__gguf_of(const coffer_tensors *set);

#endif
