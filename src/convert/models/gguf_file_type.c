/* The numbers of general.file_type, which llama.cpp shows as the type of a model. */
#include "convert/models/gguf_model_info.h"

/* Several mixtures have the same main type; the first row of a type is the one that is written. */
static const struct {
    uint8_t file_type, type;
} file_types[] = {
    { 0, 0 },   { 1, 1 },   { 2, 2 },   { 3, 3 },   { 4, 3 },   { 7, 8 },   { 8, 6 },
    { 9, 7 },   { 10, 10 }, { 11, 11 }, { 12, 11 }, { 13, 11 }, { 14, 12 }, { 15, 12 },
    { 16, 13 }, { 17, 13 }, { 18, 14 }, { 19, 16 }, { 20, 17 }, { 21, 10 }, { 22, 21 },
    { 23, 18 }, { 24, 19 }, { 25, 20 }, { 26, 21 }, { 27, 21 }, { 28, 17 }, { 29, 22 },
    { 30, 23 }, { 31, 29 }, { 32, 30 }, { 36, 34 }, { 37, 35 }, { 38, 39 },
};

#define FILE_TYPE_COUNT (sizeof file_types / sizeof *file_types)

void coffer__gguf_count_type(coffer__gguf_type_totals *totals, const coffer__gguf_type *type, uint32_t rank,
                             uint64_t elements)
{
    if (rank < 2 || type->id >= sizeof totals->elements / sizeof *totals->elements)
        return;
    totals->elements[type->id] += elements;
    if (!totals->largest || totals->elements[type->id] > totals->elements[totals->largest->id])
        totals->largest = type;
}

bool coffer__gguf_file_type_fits(uint32_t file_type, const coffer__gguf_type *type)
{
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (file_types[i].file_type == file_type)
            return file_types[i].type == type->id;
    }
    return true;
}

bool coffer__gguf_file_type_of(uint32_t *out, const coffer__gguf_type *type)
{
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (file_types[i].type == type->id) {
            *out = file_types[i].file_type;
            return true;
        }
    }
    return false;
}
