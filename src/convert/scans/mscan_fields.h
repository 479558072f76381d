/* The columns of a scan as other formats see them. */
#ifndef COFFER_CONVERT_MSCAN_FIELDS_H
#define COFFER_CONVERT_MSCAN_FIELDS_H

#include "coffer/mscan.h"

#define COFFER__MSCAN_IDS 65536 /* values of param_id */

typedef enum coffer__mscan_field {
    COFFER__MSCAN_TOKEN_IDX = 0,
    COFFER__MSCAN_PARAM_ID,
    COFFER__MSCAN_BLOCK_IDX,
    COFFER__MSCAN_ACTIVATION,
    COFFER__MSCAN_GRAD_NORM,
    COFFER__MSCAN_STORED_FIELDS, /* a record has the fields above; those below are derived */
    COFFER__MSCAN_PARAM_NAME = COFFER__MSCAN_STORED_FIELDS,
    COFFER__MSCAN_SEQUENCE,
    COFFER__MSCAN_FIELDS
} coffer__mscan_field;

/* "token_idx" … "sequence" */
extern const char *const coffer__mscan_field_names[COFFER__MSCAN_FIELDS];
/* COFFER__MSCAN_FIELDS when the name is unknown. */
coffer__mscan_field coffer__mscan_field_find(const char *name, size_t len);
static inline uint32_t coffer__mscan_field_value(const coffer_mscan_record *record, coffer__mscan_field field)
{
    switch (field) {
    case COFFER__MSCAN_TOKEN_IDX:
        return record->token_idx;
    case COFFER__MSCAN_PARAM_ID:
        return record->param_id;
    case COFFER__MSCAN_BLOCK_IDX:
        return record->block_idx;
    case COFFER__MSCAN_ACTIVATION:
        return record->activation;
    default:
        return record->grad_norm;
    }
}

#endif
