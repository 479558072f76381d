/* Numbers of items by a hash of them: several items may have the same. */
#ifndef COFFER_FORMATS_MCF_TABLE_H
#define COFFER_FORMATS_MCF_TABLE_H

#include "coffer/error.h"

typedef struct coffer__mcf_slot {
    uint64_t hash;
    uint32_t item; /* 1 + the number, 0 = free */
} coffer__mcf_slot;

typedef struct coffer__mcf_table {
    coffer__mcf_slot *slots;
    size_t capacity, count; /* capacity : 0 or a power of two */
} coffer__mcf_table;

void coffer__mcf_table_free(coffer__mcf_table *table);
coffer_status coffer__mcf_table_add(coffer__mcf_table *table, uint64_t hash, uint32_t item,
                                    coffer_error *err);
/* The next item of that hash, UINT32_MAX when there is none left. *at : 0 to begin. */
uint32_t coffer__mcf_table_next(const coffer__mcf_table *table, uint64_t hash, size_t *at);

#endif
