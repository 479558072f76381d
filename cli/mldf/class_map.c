#include "mldf/class_map.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

static size_t field_of(const coffer_mldf *set, const char *name, uint16_t type)
{
    size_t field = coffer_mldf_find_field(set, name);
    return field != SIZE_MAX && coffer_mldf_field_at(set, field)->type == type ? field : SIZE_MAX;
}

/* FNV-1a, 32 bits. */
static uint32_t hash(const char *name, size_t len)
{
    uint32_t value = 2166136261U;
    for (size_t i = 0; i < len; i++)
        value = (value ^ (uint8_t)name[i]) * 16777619U;
    return value;
}

/* The slot of the name, or the free one where it belongs. */
static class_entry *find(class_entry *slots, size_t capacity, const char *name, size_t len)
{
    size_t at = hash(name, len) & (capacity - 1);
    while (slots[at].name && (slots[at].len != len || memcmp(slots[at].name, name, len) != 0))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(class_map *map)
{
    size_t capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY;
    class_entry *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].name)
            *find(slots, capacity, map->slots[i].name, map->slots[i].len) = map->slots[i];
    coffer__free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

/* The label of a name; one that is new gets the label given. */
static coffer_status look_up(int64_t *label, class_map *map, const char *name, size_t len, coffer_error *err)
{
    if (2 * map->count >= map->capacity && !grow(map))
        return coffer__fail_no_memory(err, 2 * map->capacity * sizeof *map->slots);
    class_entry *entry = find(map->slots, map->capacity, name, len);
    if (!entry->name) {
        entry->name = coffer__strndup(name, len);
        if (!entry->name)
            return coffer__fail_no_memory(err, len);
        entry->len = len;
        entry->label = *label;
        map->count++;
        if (*label >= map->next && *label < INT64_MAX)
            map->next = *label + 1;
    }
    *label = entry->label;
    return COFFER_OK;
}

static coffer_status read_classes(class_map *map, const coffer_mldf *old, size_t class_field,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint64_t last = 0; /* equal names that follow each other are mostly one payload */
    for (uint64_t i = 0; i < coffer_mldf_sample_count(old) && !status; i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        int64_t label;
        status = coffer_mldf_entry_at(&entry, old, i, class_field, err);
        if (status || !entry.present || entry.offset == last)
            continue;
        last = entry.offset;
        status = coffer_mldf_get_text(&map->bytes, old, i, class_field, err);
        if (!status)
            status = coffer_mldf_get_int(&label, old, i, map->label, err);
        if (!status)
            status = look_up(&label, map, (const char *)map->bytes.data, map->bytes.size, err);
    }
    return status;
}

coffer_status class_map_new(class_map *out, const coffer_mldf *old, const coffer_mldf *from,
                            coffer_error *err)
{
    class_map map = { .from = from, .bytes = COFFER_BYTES_INIT };
    size_t class_field = field_of(old, "class", COFFER_MLDF_TEXT);
    map.label = field_of(old, "label", COFFER_MLDF_INT);
    map.from_class = field_of(from, "class", COFFER_MLDF_TEXT);
    map.is_used = class_field != SIZE_MAX && map.label != SIZE_MAX && map.from_class != SIZE_MAX;
    coffer_status status = map.is_used ? read_classes(&map, old, class_field, err) : COFFER_OK;
    if (!status)
        *out = map;
    else
        class_map_free(&map);
    return status;
}

void class_map_free(class_map *map)
{
    for (size_t i = 0; i < map->capacity; i++)
        coffer__free(map->slots[i].name);
    coffer__free(map->slots);
    coffer_free(map->bytes.data);
}

coffer_status class_map_label(int64_t *label, class_map *map, uint64_t sample, size_t field,
                              coffer_error *err)
{
    if (!map->is_used || field != map->label)
        return COFFER_OK;
    coffer_status status = coffer_mldf_get_text(&map->bytes, map->from, sample, map->from_class, err);
    if (status)
        return status == COFFER_E_MISSING ? COFFER_OK : status;
    *label = map->next;
    return look_up(label, map, (const char *)map->bytes.data, map->bytes.size, err);
}
