#include "convert/scans/mscan_input.h"

#include "base/fail.h"

#include <string.h>

const char *const coffer__mscan_field_names[COFFER__MSCAN_FIELDS] = {
    "token_idx", "param_id", "block_idx", "activation", "grad_norm", "param_name", "sequence",
};

coffer__mscan_field coffer__mscan_field_find(const char *name, size_t len)
{
    unsigned field = 0;
    while (field < COFFER__MSCAN_FIELDS && (strlen(coffer__mscan_field_names[field]) != len ||
                                            memcmp(coffer__mscan_field_names[field], name, len) != 0))
        field++;
    return (coffer__mscan_field)field;
}

coffer_status coffer__mscan_input_add(coffer__mscan_field *field, coffer__mscan_input *rows, const char *name,
                                      size_t len, coffer_error *err)
{
    *field = coffer__mscan_field_find(name, len);
    if (*field == COFFER__MSCAN_FIELDS)
        return coffer__fail(
            err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
            "a scan has no column \"%.*s\"; it has token_idx, param_id, block_idx, activation, "
            "grad_norm, param_name, sequence",
            (int)(len < 40 ? len : 40), name);
    if (rows->has[*field])
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "column %s appears twice",
                            coffer__mscan_field_names[*field]);
    rows->has[*field] = true;
    return COFFER_OK;
}

coffer_status coffer__mscan_input_complete(const coffer__mscan_input *rows, coffer_error *err)
{
    for (unsigned field = 0; field < COFFER__MSCAN_STORED_FIELDS; field++) {
        bool by_name = field == COFFER__MSCAN_PARAM_ID && rows->has[COFFER__MSCAN_PARAM_NAME];
        if (!rows->has[field] && !by_name)
            return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "column %s is missing%s",
                                coffer__mscan_field_names[field],
                                field == COFFER__MSCAN_PARAM_ID ? ", and so is param_name" : "");
    }
    return COFFER_OK;
}
