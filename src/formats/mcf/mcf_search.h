/* Finding the parts of a model whose directory is lost, by what they look like. */
#ifndef COFFER_FORMATS_MCF_SEARCH_H
#define COFFER_FORMATS_MCF_SEARCH_H

#include "formats/mcf/mcf_private.h"

/* Looks through the beginning and the end of a file for a TensorIndex (8-aligned, every entry makes sense).
 * found->size is 0 when there is none. Time is bounded: each byte is looked at once. */
coffer_status coffer__mcf_search_index(coffer_mcf_section *found, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err);
/* The same for a ModelInfo. */
coffer_status coffer__mcf_search_model_info(coffer_mcf_section *found, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err);

#endif
