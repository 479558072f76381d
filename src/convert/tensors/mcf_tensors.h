/* The MCF model that a set of tensors was opened from. */
#ifndef COFFER_CONVERT_MCF_TENSORS_H
#define COFFER_CONVERT_MCF_TENSORS_H

#include "coffer/mcf.h"
#include "convert/tensors/tensors.h"

/* NULL when the set is of another kind. Lives as long as the set. */
const coffer_mcf *coffer__mcf_model_of(const coffer_tensors *set);

#endif
