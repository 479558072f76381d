/* Finds duplicate keys of an object in linear time. */
#ifndef COFFER_BASE_JSON_DUPLICATES_H
#define COFFER_BASE_JSON_DUPLICATES_H

#include "base/json.h"

COFFER_BEGIN_DECLS

/* Memory kept from one object to the next; all zero to begin. */
typedef struct coffer__json_key_table {
    uint64_t *slots;
    size_t capacity;
} coffer__json_key_table;

/* COFFER_OK, COFFER_E_NO_MEMORY, or COFFER_E_DUPLICATE with *second, the first value with a repeated key. */
coffer_status coffer__json_check_keys(const coffer__json_value **second, coffer__json_key_table *table,
                                      const coffer__json_value *object);
void coffer__json_key_table_free(coffer__json_key_table *table);

COFFER_END_DECLS

#endif
