/* Fields of a ModelInfo by name, for edits. */
#ifndef COFFER_FORMATS_MCF_MODEL_FIELDS_H
#define COFFER_FORMATS_MCF_MODEL_FIELDS_H

#include "base/buffer.h"
#include "coffer/mcf.h"

/* Encodes `info` with one field or key changed, as coffer_mcf_editor_set_model_info says; info itself may
 * change.
 */
coffer_status coffer__mcf_change_model_info(coffer__buffer *out, coffer_mcf_model_info *info,
                                            const char *field, const char *text, coffer_mcf_kv_type type,
                                            coffer_error *err);

#endif
