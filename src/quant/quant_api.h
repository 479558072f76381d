/* What the public calls on tensors share. */
#ifndef COFFER_QUANT_API_H
#define COFFER_QUANT_API_H

#include "coffer/quant.h"
#include "quant/quant.h"

/* Where everything lies in a tensor that a caller describes, and that its payload is as long as that. */
coffer_status coffer__quant_take_payload(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                         coffer_error *err);

#endif
