#include "recorder.h"

#include "base/memory.h"

static size_t place_of(const record_map *map, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash ^ hash >> 32) & (map->capacity - 1);
}

/* The entry of the key, or the empty one where it belongs. */
static size_t find(const record_map *map, uint64_t key)
{
    size_t at = place_of(map, key);
    while (map->keys[at] != 0 && map->keys[at] != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

uint64_t *record_map_find(const record_map *map, uint64_t key)
{
    if (map->count == 0)
        return NULL;
    size_t at = find(map, key);
    return map->keys[at] == key ? &map->values[at] : NULL;
}

static bool grow(record_map *map)
{
    enum { FIRST = 256 };
    record_map larger = { .capacity = map->capacity ? 2 * map->capacity : FIRST };
    larger.keys = coffer__calloc(larger.capacity, sizeof *larger.keys);
    larger.values = coffer__calloc(larger.capacity, sizeof *larger.values);
    if (!larger.keys || !larger.values) {
        record_map_free(&larger);
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->keys[i] == 0)
            continue;
        size_t at = find(&larger, map->keys[i]);
        larger.keys[at] = map->keys[i];
        larger.values[at] = map->values[i];
    }
    larger.count = map->count;
    record_map_free(map);
    *map = larger;
    return true;
}

bool record_map_put(record_map *map, uint64_t key, uint64_t value)
{
    if (2 * (map->count + 1) > map->capacity && !grow(map))
        return false;
    size_t at = find(map, key);
    map->count += map->keys[at] == 0;
    map->keys[at] = key;
    map->values[at] = value;
    return true;
}

/* Moves later entries of the run back, so that no search ends too early. */
void record_map_remove(record_map *map, uint64_t key)
{
    if (map->count == 0)
        return;
    size_t hole = find(map, key), mask = map->capacity - 1;
    if (map->keys[hole] != key)
        return;
    for (size_t at = (hole + 1) & mask; map->keys[at] != 0; at = (at + 1) & mask) {
        if (((at - place_of(map, map->keys[at])) & mask) < ((at - hole) & mask))
            continue;
        map->keys[hole] = map->keys[at];
        map->values[hole] = map->values[at];
        hole = at;
    }
    map->keys[hole] = 0;
    map->count--;
}

void record_map_free(record_map *map)
{
    coffer__free(map->keys);
    coffer__free(map->values);
    *map = (record_map){ 0 };
}
