/* Scales below the normal range of float16. They are valid, and exact where the weights are that small, but
 * the first program reads them as 0. */
#include "base/bytes.h"
#include "base/elements.h"
#include "convert/models/gguf_repack_blocks.h"
#include "convert/quantize/quantize.h"

#include <math.h>
#include <string.h>

/* The smallest normal number. */
#define LEAST_SCALE 0x1p-14f
#define LEAST_SCALE_BITS 0x0400
#define SUB_SCALE_ONE 32.0f
#define SUB_SCALE_MAX 63.0f

/* Codes of up to 32 numbers for a scale; past the end of the row they are 0. */
static void encode_block(uint8_t *out, const float *values, size_t count, float scale,
                         const coffer__quant_type *type)
{
    int8_t codes[COFFER__QUANT_BLOCK] = { 0 };
    float largest = (float)coffer__quant_largest_code(type);
    for (size_t i = 0; i < count && scale > 0.0f; i++)
        codes[i] = (int8_t)fmaxf(fminf(rintf(values[i] / scale), largest), -largest);
    coffer__repack_pack_codes(out, codes, type->bits, COFFER__QUANT_BLOCK);
}

/* A place in the band: a unit of one block, or of the eight of a super. */
typedef struct scale_unit {
    coffer__quantize_band *band;
    const coffer__quant_type *type;
    uint64_t row, first; /* the row, and the number of its first block */
    uint64_t blocks;
} scale_unit;

/* Gives a unit the smallest normal scale; the sub-scales of a k type take over the rest. */
static void raise_scale(const scale_unit *unit, uint8_t *scale)
{
    const coffer__quant_layout *layout = &unit->band->layout;
    bool supers = unit->type->family == COFFER__QUANT_SUPERS;
    float old = coffer__f16_to_f32(coffer__load_u16(scale));
    size_t block_bytes = (size_t)unit->type->bits * COFFER__QUANT_BLOCK / 8;
    for (uint64_t i = unit->first; i < unit->first + unit->blocks; i++) {
        uint64_t place = unit->row * layout->blocks_per_row + i, column = i * COFFER__QUANT_BLOCK;
        uint64_t left = layout->cols - column;
        uint8_t *sub = unit->band->payload + layout->regions[COFFER__QUANT_SUBS].offset + place;
        float block_scale = LEAST_SCALE;
        if (supers) {
            float wanted = rintf(old * (float)*sub / LEAST_SCALE);
            *sub = (uint8_t)fminf(wanted, SUB_SCALE_MAX);
            block_scale = LEAST_SCALE * ((float)*sub / SUB_SCALE_ONE);
        }
        encode_block(unit->band->payload + layout->regions[COFFER__QUANT_CODES].offset + place * block_bytes,
                     unit->band->values + unit->row * layout->cols + column,
                     left < COFFER__QUANT_BLOCK ? (size_t)left : COFFER__QUANT_BLOCK, block_scale,
                     unit->type);
    }
    coffer__store_u16(scale, LEAST_SCALE_BITS);
}

void coffer__quantize_treat_scales(coffer__quantize_band *band, const coffer__quantize_task *task)
{
    const coffer__quant_layout *layout = &band->layout;
    bool supers = task->type->family == COFFER__QUANT_SUPERS;
    uint64_t units = supers ? layout->supers_per_row : layout->blocks_per_row;
    uint64_t blocks = supers ? COFFER__QUANT_SUPER_BLOCKS : 1;
    for (uint64_t i = 0; task->type->family != COFFER__QUANT_WHOLE && i < band->rows * units; i++) {
        uint8_t *scale = band->payload + layout->regions[COFFER__QUANT_SCALES].offset + 2 * i;
        scale_unit unit = { band, task->type, i / units, i % units * blocks, blocks };
        if (!coffer__repack_scale_is_small(coffer__load_u16(scale)))
            continue;
        if (unit.blocks > layout->blocks_per_row - unit.first)
            unit.blocks = layout->blocks_per_row - unit.first;
        if (task->portable_scales)
            raise_scale(&unit, scale);
        else
            band->result.small_scales++;
    }
}
