#include "formats/mscan/mscan_names.h"

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "formats/mscan/mscan_layout.h"

#include <string.h>

#define SLOTS (2 * COFFER__MSCAN_PARAM_IDS) /* never more than half full */

/* The slot that has the name, or the free one where it would go. */
static uint32_t *slot_of(const coffer__mscan_names *names, const char *text, size_t len)
{
    size_t at = coffer__hash(text, len) % SLOTS;
    while (names->slots[at]) {
        const coffer__mscan_name *name = &names->by_id[names->slots[at] - 1];
        if (name->len == len && memcmp(name->text, text, len) == 0)
            break;
        at = (at + 1) % SLOTS;
    }
    return &names->slots[at];
}

static void insert(coffer__mscan_names *names, uint16_t id, coffer__mscan_name name)
{
    uint32_t *slot = slot_of(names, name.text, name.len);
    names->by_id[id] = name;
    if (!*slot) /* a name that stands under two ids is found under the first */
        *slot = (uint32_t)id + 1;
}

coffer_status coffer__mscan_names_init(coffer__mscan_names *names, const coffer__mscan_metadata *base,
                                       coffer_error *err)
{
    memset(names, 0, sizeof *names);
    names->by_id = coffer__calloc(COFFER__MSCAN_PARAM_IDS, sizeof *names->by_id);
    names->slots = coffer__calloc(SLOTS, sizeof *names->slots);
    if (!names->by_id || !names->slots) {
        coffer__mscan_names_free(names);
        return coffer__fail_no_memory(err, COFFER__MSCAN_PARAM_IDS * sizeof *names->by_id);
    }
    for (size_t i = 0; i < base->param_count && base->params[i].id < COFFER__MSCAN_PARAM_IDS; i++)
        insert(names, (uint16_t)base->params[i].id,
               (coffer__mscan_name){ base->params[i].name, base->params[i].name_len, false });
    return COFFER_OK;
}

void coffer__mscan_names_free(coffer__mscan_names *names)
{
    for (size_t id = 0; names->by_id && names->added > 0 && id < COFFER__MSCAN_PARAM_IDS; id++) {
        if (names->by_id[id].owned)
            coffer__free(names->by_id[id].text);
    }
    coffer__free(names->by_id);
    coffer__free(names->slots);
    memset(names, 0, sizeof *names);
}

uint32_t coffer__mscan_names_find(const coffer__mscan_names *names, const char *text, size_t len)
{
    uint32_t found = *slot_of(names, text, len);
    return found ? found - 1 : COFFER__MSCAN_PARAM_IDS;
}

uint32_t coffer__mscan_names_free_id(coffer__mscan_names *names)
{
    while (names->next_free < COFFER__MSCAN_PARAM_IDS && names->by_id[names->next_free].text)
        names->next_free++;
    return names->next_free;
}

coffer_status coffer__mscan_names_add(coffer__mscan_names *names, uint16_t id, const char *text, size_t len,
                                      coffer_error *err)
{
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return coffer__fail_no_memory(err, len + 1);
    insert(names, id, (coffer__mscan_name){ copy, len, true });
    names->added++;
    return COFFER_OK;
}
