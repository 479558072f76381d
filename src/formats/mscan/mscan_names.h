/* The parameters of a scan that is being written: by id, and by name. */
#ifndef COFFER_FORMATS_MSCAN_NAMES_H
#define COFFER_FORMATS_MSCAN_NAMES_H

#include "base/table.h"
#include "formats/mscan/mscan_metadata.h"

typedef struct coffer__mscan_name {
    const char *text; /* NULL: the id is free */
    size_t len;
    bool owned; /* else borrowed from the metadata it came from */
} coffer__mscan_name;

typedef struct coffer__mscan_names {
    coffer__mscan_name *by_id; /* 65536 */
    coffer__table table;       /* ids by name */
    uint32_t next_free;        /* no id below it is free */
    uint64_t added;            /* names that are not from the metadata */
} coffer__mscan_names;

/* Begins with the names of `base`, which must outlive the table. */
coffer_status coffer__mscan_names_init(coffer__mscan_names *names, const coffer__mscan_metadata *base,
                                       coffer_error *err);
void coffer__mscan_names_free(coffer__mscan_names *names);
/* The id of a name, or 65536. */
uint32_t coffer__mscan_names_find(const coffer__mscan_names *names, const char *text, size_t len);
/* The smallest id that is free, or 65536. */
uint32_t coffer__mscan_names_free_id(coffer__mscan_names *names);
/* Copies the name. The id must be free. */
coffer_status coffer__mscan_names_add(coffer__mscan_names *names, uint16_t id, const char *text, size_t len,
                                      coffer_error *err);

#endif
