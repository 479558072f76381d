#include "base/id_names.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

static void insert(coffer__id_names *names, uint16_t id, coffer__id_name name)
{
    names->by_id[id] = name;
    /* It cannot fail: room for all ids was reserved. */
    (void)coffer__table_add(&names->table, coffer__hash(name.text, name.len), id, NULL);
}

coffer_status coffer__id_names_init(coffer__id_names *names, coffer_error *err)
{
    memset(names, 0, sizeof *names);
    names->by_id = coffer__calloc(COFFER__ID_NAMES_MAX, sizeof *names->by_id);
    if (!names->by_id)
        return coffer__fail_no_memory(err, COFFER__ID_NAMES_MAX * sizeof *names->by_id);
    coffer_status status = coffer__table_reserve(&names->table, COFFER__ID_NAMES_MAX, err);
    if (status) {
        coffer__id_names_free(names);
        return status;
    }
    return COFFER_OK;
}

void coffer__id_names_borrow(coffer__id_names *names, uint16_t id, const char *text, size_t len)
{
    insert(names, id, (coffer__id_name){ text, len, false });
}

void coffer__id_names_free(coffer__id_names *names)
{
    for (size_t id = 0; names->by_id && names->added > 0 && id < COFFER__ID_NAMES_MAX; id++) {
        if (names->by_id[id].owned)
            coffer__free(names->by_id[id].text);
    }
    coffer__free(names->by_id);
    coffer__table_free(&names->table);
    memset(names, 0, sizeof *names);
}

uint32_t coffer__id_names_find(const coffer__id_names *names, const char *text, size_t len)
{
    coffer__table_probe probe = coffer__table_begin(&names->table, coffer__hash(text, len));
    uint32_t id;
    while ((id = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        const coffer__id_name *name = &names->by_id[id];
        if (name->len == len && memcmp(name->text, text, len) == 0)
            return id; /* a name with two ids is found under the first */
    }
    return COFFER__ID_NAMES_MAX;
}

uint32_t coffer__id_names_free_id(coffer__id_names *names)
{
    while (names->next_free < COFFER__ID_NAMES_MAX && names->by_id[names->next_free].text)
        names->next_free++;
    return names->next_free;
}

coffer_status coffer__id_names_add(coffer__id_names *names, uint16_t id, const char *text, size_t len,
                                   coffer_error *err)
{
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return coffer__fail_no_memory(err, len + 1);
    insert(names, id, (coffer__id_name){ copy, len, true });
    names->added++;
    return COFFER_OK;
}
