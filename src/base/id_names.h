/* Names with 16-bit ids, found by id and by name. */
#ifndef COFFER_BASE_ID_NAMES_H
#define COFFER_BASE_ID_NAMES_H

#include "base/table.h"

typedef struct coffer__id_name {
    const char *text; /* NULL: the id is free */
    size_t len;
    bool owned; /* false = borrowed */
} coffer__id_name;

typedef struct coffer__id_names {
    coffer__id_name *by_id; /* COFFER__ID_NAMES_MAX */
    coffer__table table;    /* ids by name */
    uint32_t next_free;     /* all ids below it are used */
    uint64_t added;         /* names that were copied */
} coffer__id_names;

#define COFFER__ID_NAMES_MAX 65536 /* ids */

coffer_status coffer__id_names_init(coffer__id_names *names, coffer_error *err);
void coffer__id_names_free(coffer__id_names *names);
/* The id of a name, or COFFER__ID_NAMES_MAX. */
uint32_t coffer__id_names_find(const coffer__id_names *names, const char *text, size_t len);
/* The smallest free id, or COFFER__ID_NAMES_MAX. */
uint32_t coffer__id_names_free_id(coffer__id_names *names);
/* Adds a name that outlives the table. The id must be free. */
void coffer__id_names_borrow(coffer__id_names *names, uint16_t id, const char *text, size_t len);
/* Copies the name. The id must be free. */
coffer_status coffer__id_names_add(coffer__id_names *names, uint16_t id, const char *text, size_t len,
                                   coffer_error *err);

#endif
