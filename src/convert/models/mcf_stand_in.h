/* Types that MCF lacks are stored as others of the same bytes, and a key of ModelInfo names the true one:
 * "safetensors.dtype.NAME" = "F8_E4M3". A complex number is stored as a pair, in a last dimension of two. */
#ifndef COFFER_CONVERT_MCF_STAND_IN_H
#define COFFER_CONVERT_MCF_STAND_IN_H

#include "coffer/mcf.h"
#include "convert/tensors/tensors.h"

#define COFFER__MCF_DTYPE_KEY "safetensors.dtype."
/* The metadata of a safetensors file is a key for each of its own. That of most models, {"format": "pt"}, is
 * not written down but taken for granted; then a file without any has COFFER__MCF_NO_METADATA_KEY. */
#define COFFER__MCF_METADATA_KEY "safetensors.metadata."
#define COFFER__MCF_NO_METADATA_KEY "safetensors.metadata"
#define COFFER__MCF_USUAL_KEY "format"
#define COFFER__MCF_USUAL_TEXT "pt"

typedef struct coffer__mcf_stand_in {
    const char *name;    /* "F8_E4M3" */
    coffer_dtype dtype;  /* the true type; COFFER_DTYPE_NONE when it is only bytes to us */
    coffer_dtype stored; /* the one in the file */
    bool pair;
} coffer__mcf_stand_in;

/* For a type by its number, or by its name where it has none. NULL when MCF cannot hold it. */
const coffer__mcf_stand_in *coffer__mcf_stand_in_for(coffer_dtype dtype, const char *type_name);
/* The true types of a model's tensors, as many as it has (coffer__free); NULL for those that are what they
 * seem to be. *out is NULL when all are. Keys that contradict the index are passed over. */
coffer_status coffer__mcf_stand_ins(const coffer__mcf_stand_in ***out, const coffer_mcf *model,
                                    coffer_error *err);

#endif
