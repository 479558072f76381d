#include "page/page_model.h"

#include "base/fail.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, MOST_MAPS = 64 };
/* A row of more elements than this is not read at once. */
#define LONGEST_ROW ((uint64_t)1 << 22)

typedef struct ranked_tensor {
    uint64_t size;
    size_t tensor;
} ranked_tensor;

static int by_size(const void *a, const void *b)
{
    const ranked_tensor *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? 1 : -1;
    return (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

static bool can_be_drawn(const coffer_tensor *tensor)
{
    return tensor->rank >= 2 && tensor->dims[0] > 0 && tensor->elements > 0 &&
           tensor->elements / tensor->dims[0] <= LONGEST_ROW;
}

static coffer_status draw(coffer__page_map *map, const coffer_tensors *set, float *row, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, map->tensor);
    uint64_t rows = tensor->dims[0], columns = tensor->elements / rows;
    for (uint32_t y = 0; y < map->height; y++) {
        double sums[SIDE] = { 0 };
        uint64_t counts[SIDE] = { 0 };
        for (uint64_t i = rows * y / map->height; i < rows * (y + 1) / map->height; i++) {
            coffer_status status =
                coffer_tensors_read_as(row, COFFER_DTYPE_F32, set, map->tensor, i * columns, columns, err);
            if (status)
                return status;
            coffer__page_sum_row(sums, counts, row, columns, map->width);
        }
        for (uint32_t x = 0; x < map->width; x++)
            map->cells[y * map->width + x] = counts[x] ? (float)(sums[x] / (double)counts[x]) : NAN;
    }
    return COFFER_OK;
}

static coffer_status add_map(coffer__page_maps *maps, const coffer_tensors *set, size_t index,
                             coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    uint64_t columns = tensor->elements / tensor->dims[0];
    coffer__page_map *map = &maps->list[maps->count];
    coffer_error found = COFFER_ERROR_INIT;
    map->tensor = (uint32_t)index;
    map->height = tensor->dims[0] < SIDE ? (uint32_t)tensor->dims[0] : SIDE;
    map->width = columns < SIDE ? (uint32_t)columns : SIDE;
    map->cells = coffer__alloc_array((size_t)map->width * map->height, sizeof *map->cells);
    float *row = coffer__alloc_array((size_t)columns, sizeof *row);
    coffer_status status = map->cells && row ? draw(map, set, row, &found)
                                             : coffer__fail_no_memory(&found, columns * sizeof *row);
    coffer__free(row);
    if (!status) {
        maps->count++;
        return COFFER_OK;
    }
    coffer__free(map->cells);
    map->cells = NULL;
    maps->skipped++;
    return coffer__is_about_file(status) || status == COFFER_E_UNSUPPORTED ? COFFER_OK
                                                                           : coffer__fail_copy(err, &found);
}

coffer_status coffer__page_maps_new(coffer__page_maps *out, const coffer_tensors *set, coffer_error *err)
{
    size_t total = coffer_tensors_count(set), count = 0;
    ranked_tensor *ranked = coffer__alloc_array(total ? total : 1, sizeof *ranked);
    out->list = coffer__calloc(MOST_MAPS, sizeof *out->list);
    coffer_status status =
        ranked && out->list ? COFFER_OK : coffer__fail_no_memory(err, (uint64_t)total * sizeof *ranked);
    for (size_t i = 0; i < total && !status; i++) {
        if (can_be_drawn(coffer_tensors_at(set, i)))
            ranked[count++] = (ranked_tensor){ coffer_tensors_at(set, i)->size, i };
    }
    if (!status)
        qsort(ranked, count, sizeof *ranked, by_size);
    for (size_t i = 0; i < count && i < MOST_MAPS && !status; i++)
        status = add_map(out, set, ranked[i].tensor, err);
    out->skipped += count > MOST_MAPS ? count - MOST_MAPS : 0;
    coffer__free(ranked);
    return status;
}

void coffer__page_maps_free(coffer__page_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        coffer__free(maps->list[i].cells);
    coffer__free(maps->list);
    *maps = (coffer__page_maps){ 0 };
}

void coffer__page_add_maps(coffer_chunks *chunks, const coffer__page_maps *maps, size_t tensors,
                           uint32_t detail)
{
    size_t count = 0, cells = 0, most = MOST_MAPS / detail, next = 0, place = 0;
    for (size_t i = 0; i < maps->count && count < most; i++)
        if (maps->list[i].tensor < tensors) {
            count++;
            cells += (size_t)maps->list[i].width * maps->list[i].height;
        }
    uint32_t *tensor = coffer__chunks_u32(chunks, "maps.tensor", count);
    uint32_t *width = coffer__chunks_u32(chunks, "maps.width", count);
    uint32_t *height = coffer__chunks_u32(chunks, "maps.height", count);
    float *to = coffer__chunks_f32(chunks, "maps.cells", cells);
    for (size_t i = 0; to && i < maps->count && next < count; i++) {
        const coffer__page_map *map = &maps->list[i];
        size_t size = (size_t)map->width * map->height;
        if (map->tensor >= tensors)
            continue;
        tensor[next] = map->tensor;
        width[next] = map->width;
        height[next] = map->height;
        memcpy(to + place, map->cells, size * sizeof *to);
        place += size;
        next++;
    }
    if (maps->count + maps->skipped > count)
        coffer__chunks_note(chunks, "pictures of %zu of %zu tensors are in the page", count,
                            maps->count + maps->skipped);
}
