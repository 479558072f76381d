/* The columns of a scan as other formats see them. */
#ifndef COFFER_CONVERT_MSCAN_FIELDS_H
#define COFFER_CONVERT_MSCAN_FIELDS_H

#include "formats/mscan/mscan_layout.h"

typedef enum coffer__mscan_field {
    COFFER__MSCAN_TOKEN_IDX = 0,
    COFFER__MSCAN_PARAM_ID,
    COFFER__MSCAN_BLOCK_IDX,
    COFFER__MSCAN_ACTIVATION,
    COFFER__MSCAN_GRAD_NORM,
    COFFER__MSCAN_STORED_FIELDS, /* those above stand in a record; those below are found from it */
    COFFER__MSCAN_PARAM_NAME = COFFER__MSCAN_STORED_FIELDS,
    COFFER__MSCAN_SEQUENCE,
    COFFER__MSCAN_FIELDS
} coffer__mscan_field;

/* "token_idx" … "sequence" */
extern const char *const coffer__mscan_field_names[COFFER__MSCAN_FIELDS];
/* COFFER__MSCAN_FIELDS when there is none of that name. */
coffer__mscan_field coffer__mscan_field_find(const char *name, size_t len);
static inline uint32_t coffer__mscan_field_value(const uint8_t *record, coffer__mscan_field field)
{
    switch (field) {
    case COFFER__MSCAN_TOKEN_IDX:
        return coffer__load_u32(record + COFFER__MSCAN_TOKEN_AT);
    case COFFER__MSCAN_PARAM_ID:
        return coffer__load_u16(record + COFFER__MSCAN_PARAM_AT);
    case COFFER__MSCAN_BLOCK_IDX:
        return coffer__load_u16(record + COFFER__MSCAN_BLOCK_AT);
    case COFFER__MSCAN_ACTIVATION:
        return coffer__load_u16(record + COFFER__MSCAN_ACTIVATION_AT);
    default:
        return coffer__load_u16(record + COFFER__MSCAN_GRAD_NORM_AT);
    }
}

#endif
