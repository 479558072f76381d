#include "convert/scans/mscan_fields.h"

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
