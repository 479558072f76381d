/* Shared by the public functions on tensors. */
#ifndef COFFER_QUANT_API_H
#define COFFER_QUANT_API_H

#include "coffer/quant.h"
#include "quant/quant.h"

/* Computes the layout of a caller's tensor and checks the size of its payload. */
coffer_status coffer__quant_take_payload(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                         coffer_error *err);

#endif
