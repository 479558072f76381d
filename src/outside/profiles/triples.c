#include "outside/profiles/triples.h"

#include "base/buffer.h"
#include "base/memory.h"

static bool equal(const coffer__triple *a, const coffer__triple *b)
{
    return a->a == b->a && a->b == b->b && a->c == b->c;
}

coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err)
{
    uint64_t hash = coffer__hash(&item, sizeof item);
    coffer__table_probe probe = coffer__table_begin(&triples->table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        if (equal(&triples->items[found], &item)) {
            *place = found;
            *is_new = false;
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__array_reserve_one(&triples->items, &triples->capacity, triples->count,
                                                     sizeof *triples->items, err);
    if (!status)
        status = coffer__table_add(&triples->table, hash, triples->count, err);
    if (status)
        return status;
    *place = triples->count;
    *is_new = true;
    triples->items[triples->count++] = item;
    return COFFER_OK;
}

void coffer__triples_free(coffer__triples *triples)
{
    coffer__free(triples->items);
    coffer__table_free(&triples->table);
}
