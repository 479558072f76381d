/* Both directions go through blocks of plain integers: a file is read block by block, never as a whole. */
#include "convert/models/gguf_repack.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/tensors/tensors.h"
#include "quant/quant.h"

#include <math.h>
#include <string.h>

#define BLOCKS_AT_ONCE ((uint64_t)1024)

/* ---- MCF to GGUF ---- */

/* Reads runs of the regions of an MCF payload: scales, sub-scales and codes of the same blocks. */
typedef struct payload_reader {
    const coffer_tensors *set;
    size_t index;
    coffer__quant_layout layout;
    size_t block_count;    /* of 32 elements in a block of GGUF: 1 or 8 */
    size_t code_bytes;     /* of a block of GGUF */
    uint64_t blocks;       /* of GGUF in the tensor */
    uint8_t *scales;       /* of BLOCKS_AT_ONCE blocks */
    uint8_t *subs, *codes; /* after them */
} payload_reader;

static void close_reader(payload_reader *reader)
{
    coffer__free(reader->scales);
}

static coffer_status open_reader(payload_reader *reader, const coffer_tensors *set, size_t index,
                                 coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    *reader = (payload_reader){ .set = set, .index = index };
    coffer_status status =
        coffer__quant_plan(&reader->layout, tensor->dtype, tensor->rank, tensor->dims, false, err);
    if (status)
        return status;
    reader->block_count = reader->layout.type->family == COFFER__QUANT_SUPERS ? 8 : 1;
    reader->code_bytes = (size_t)reader->layout.type->bits * 4 * reader->block_count;
    reader->blocks = tensor->elements / (COFFER__QUANT_BLOCK * reader->block_count);
    size_t size = (size_t)BLOCKS_AT_ONCE * (2 + reader->block_count + reader->code_bytes);
    reader->scales = coffer__malloc(size);
    if (!reader->scales)
        return coffer__fail_no_memory(err, size);
    reader->subs = reader->scales + 2 * BLOCKS_AT_ONCE;
    reader->codes = reader->subs + reader->block_count * BLOCKS_AT_ONCE;
    return COFFER_OK;
}

static coffer_status read_region(uint8_t *out, const payload_reader *reader, coffer__quant_part part,
                                 uint64_t first, uint64_t count, size_t item, coffer_error *err)
{
    return coffer_tensors_read(out, reader->set, reader->index,
                               reader->layout.regions[part].offset + first * item, (size_t)count * item, err);
}

static coffer_status read_scales(const payload_reader *reader, uint64_t first, uint64_t count,
                                 coffer_error *err)
{
    coffer_status status = read_region(reader->scales, reader, COFFER__QUANT_SCALES, first, count, 2, err);
    if (!status && reader->block_count > 1)
        status =
            read_region(reader->subs, reader, COFFER__QUANT_SUBS, first, count, reader->block_count, err);
    return status;
}

static coffer__repack_block load_block(const payload_reader *reader, uint64_t place, bool with_codes)
{
    coffer__repack_block block = { .scale = coffer__load_u16(reader->scales + 2 * place) };
    if (reader->block_count > 1)
        memcpy(block.subs, reader->subs + reader->block_count * place, reader->block_count);
    if (with_codes)
        coffer__repack_unpack_codes(block.codes, reader->codes + reader->code_bytes * place,
                                    reader->layout.type->bits, COFFER__QUANT_BLOCK * reader->block_count);
    return block;
}

/* Rows that are not whole super-blocks of GGUF: each block of 32 gets a scale of its own. */
static bool is_narrow(const coffer_tensor *tensor)
{
    const coffer__quant_type *type = coffer__quant_find_type(tensor->dtype);
    return type && type->family == COFFER__QUANT_SUPERS && tensor->dims[1] % COFFER__QUANT_SUPER != 0;
}

static uint32_t block_type_of(const coffer_tensor *tensor)
{
    uint64_t columns = tensor->rank == 2 ? tensor->dims[1] : 0;
    if (columns && columns % COFFER__QUANT_BLOCK == 0 && is_narrow(tensor))
        return tensor->dtype == COFFER_DTYPE_K6 ? COFFER__GGUF_Q8_0 : COFFER__GGUF_Q4_0;
    switch (tensor->dtype) {
    case COFFER_DTYPE_Q8:
        return columns % COFFER__QUANT_BLOCK == 0 ? COFFER__GGUF_Q8_0 : 0;
    case COFFER_DTYPE_Q4:
        return columns % COFFER__QUANT_BLOCK == 0 ? COFFER__GGUF_Q4_0 : 0;
    case COFFER_DTYPE_K6:
        return columns % COFFER__QUANT_SUPER == 0 ? COFFER__GGUF_Q6_K : 0;
    case COFFER_DTYPE_K4:
    case COFFER_DTYPE_K3:
    case COFFER_DTYPE_K2:
        return columns % COFFER__QUANT_SUPER == 0 ? COFFER__GGUF_Q4_K : 0;
    default:
        return 0;
    }
}

/* The scales of super-blocks are divided, which small ones do not survive. */
static coffer_status scales_fit(bool *out, bool *exact, const payload_reader *reader, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *out = true;
    for (uint64_t first = 0; !status && *out && first < reader->blocks; first += BLOCKS_AT_ONCE) {
        uint64_t count = reader->blocks - first < BLOCKS_AT_ONCE ? reader->blocks - first : BLOCKS_AT_ONCE;
        status = read_scales(reader, first, count, err);
        for (uint64_t i = 0; !status && *out && i < count; i++) {
            coffer__repack_block block = load_block(reader, i, false);
            *out = coffer__repack_super_fits(&block, exact);
        }
    }
    return status;
}

/* Reads one row of a tensor with narrow rows. */
static coffer_status read_narrow(const payload_reader *reader, uint64_t row, coffer_error *err)
{
    const coffer__quant_layout *layout = &reader->layout;
    uint64_t blocks = layout->blocks_per_row, supers = layout->supers_per_row;
    coffer_status status =
        read_region(reader->scales, reader, COFFER__QUANT_SCALES, row * supers, supers, 2, err);
    if (!status)
        status = read_region(reader->subs, reader, COFFER__QUANT_SUBS, row * blocks, blocks, 1, err);
    if (!status)
        status = read_region(reader->codes, reader, COFFER__QUANT_CODES, row * blocks, blocks,
                             (size_t)layout->type->bits * 4, err);
    return status;
}

/* A block of 32 codes whose scale is the product of both scales, rounded. False when it is not finite. */
static bool load_narrow(coffer__repack_block *out, const payload_reader *reader, uint64_t block)
{
    unsigned bits = reader->layout.type->bits;
    float super = coffer__f16_to_f32(coffer__load_u16(reader->scales + block / 8 * 2));
    out->scale = coffer__f16_from_f32(super * ((float)reader->subs[block] * 0.03125f));
    coffer__repack_unpack_codes(out->codes, reader->codes + block * bits * 4, bits, COFFER__QUANT_BLOCK);
    return isfinite(coffer__f16_to_f32(out->scale));
}

/* Memory for a row. */
static coffer_status open_narrow(payload_reader *reader, const coffer_tensors *set, size_t index,
                                 coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    size_t blocks;
    *reader = (payload_reader){ .set = set, .index = index };
    coffer_status status =
        coffer__quant_plan(&reader->layout, tensor->dtype, tensor->rank, tensor->dims, false, err);
    if (status)
        return status;
    size_t code_bytes = (size_t)reader->layout.type->bits * 4;
    if (!coffer__to_size(&blocks, reader->layout.blocks_per_row) || blocks > SIZE_MAX / (3 + code_bytes))
        return coffer__fail_no_memory(err, reader->layout.blocks_per_row);
    reader->scales = coffer__malloc(blocks * (3 + code_bytes));
    if (!reader->scales)
        return coffer__fail_no_memory(err, blocks * (3 + code_bytes));
    reader->subs = reader->scales + 2 * blocks;
    reader->codes = reader->subs + blocks;
    return COFFER_OK;
}

/* Each row of a tensor with narrow rows as blocks of that type. put : NULL = only finds out whether they fit.
 */
static coffer_status each_narrow(bool *fits, const coffer_tensors *set, size_t index,
                                 const coffer__gguf_type *type, coffer__tensors_stream *stream,
                                 coffer__tensors_put put, void *context, coffer_error *err)
{
    payload_reader reader;
    uint8_t *out = NULL;
    coffer_status status = open_narrow(&reader, set, index, err);
    uint64_t blocks = status ? 0 : reader.layout.blocks_per_row;
    if (!status) {
        out = coffer__alloc_array((size_t)blocks, type->bytes);
        status = out ? COFFER_OK : coffer__fail_no_memory(err, blocks * type->bytes);
    }
    *fits = true;
    for (uint64_t row = 0; !status && *fits && row < reader.layout.rows; row++) {
        status = read_narrow(&reader, row, err);
        for (uint64_t i = 0; !status && *fits && i < blocks; i++) {
            coffer__repack_block block;
            *fits = load_narrow(&block, &reader, i);
            coffer__repack_to_gguf(out + i * type->bytes, &block, type->id);
        }
        if (!status && put)
            status = put(context, out, (size_t)blocks * type->bytes, err);
        if (!status && put)
            status = coffer__tensors_stream_count(stream, blocks * type->bytes, err);
    }
    coffer__free(out);
    close_reader(&reader);
    return status;
}

coffer_status coffer__gguf_repack_type(const coffer__gguf_type **out, bool *exact, const coffer_tensors *set,
                                       size_t index, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    uint32_t type = block_type_of(tensor);
    payload_reader reader;
    bool fits = type != 0;
    coffer_status status = COFFER_OK;
    *exact = true;
    if (type && is_narrow(tensor)) {
        *exact = false;
        status = each_narrow(&fits, set, index, coffer__gguf_find_type(type), NULL, NULL, NULL, err);
    } else if (type == COFFER__GGUF_Q6_K || type == COFFER__GGUF_Q4_K) {
        status = open_reader(&reader, set, index, err);
        if (!status)
            status = scales_fit(&fits, exact, &reader, err);
        close_reader(&reader);
    }
    if (!status)
        *out = fits ? coffer__gguf_find_type(type) : NULL;
    return status;
}

static coffer_status put_blocks(const payload_reader *reader, const coffer__gguf_type *type, uint8_t *blocks,
                                coffer__tensors_stream *stream, coffer__tensors_put put, void *context,
                                coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t first = 0; !status && first < reader->blocks; first += BLOCKS_AT_ONCE) {
        uint64_t count = reader->blocks - first < BLOCKS_AT_ONCE ? reader->blocks - first : BLOCKS_AT_ONCE;
        status = read_scales(reader, first, count, err);
        if (!status)
            status = read_region(reader->codes, reader, COFFER__QUANT_CODES, first, count, reader->code_bytes,
                                 err);
        for (uint64_t i = 0; !status && i < count; i++) {
            coffer__repack_block block = load_block(reader, i, true);
            coffer__repack_to_gguf(blocks + i * type->bytes, &block, type->id);
        }
        if (!status)
            status = put(context, blocks, (size_t)count * type->bytes, err);
        if (!status)
            status = coffer__tensors_stream_count(stream, count * type->bytes, err);
    }
    return status;
}

coffer_status coffer__gguf_repack_out(const coffer__chosen_tensor *chosen, const coffer__gguf_type *type,
                                      coffer__tensors_stream *stream, coffer__tensors_put put, void *context,
                                      coffer_error *err)
{
    payload_reader reader;
    bool fits;
    if (is_narrow(chosen->tensor))
        return each_narrow(&fits, chosen->set, chosen->index, type, stream, put, context, err);
    uint8_t *blocks = coffer__malloc(BLOCKS_AT_ONCE * type->bytes);
    coffer_status status = open_reader(&reader, chosen->set, chosen->index, err);
    if (!status && !blocks)
        status = coffer__fail_no_memory(err, BLOCKS_AT_ONCE * type->bytes);
    if (!status)
        status = put_blocks(&reader, type, blocks, stream, put, context, err);
    close_reader(&reader);
    coffer__free(blocks);
    return status;
}

/* ---- GGUF to MCF ---- */

/* Called for each run of blocks of a tensor. */
typedef coffer_status (*take_run)(void *context, const uint8_t *blocks, size_t count, coffer_error *err);

static coffer_status each_run(const coffer_tensors *set, size_t index, const coffer__gguf_tensor *tensor,
                              take_run take, void *context, coffer_error *err)
{
    const coffer__gguf_type *type = tensor->type;
    uint8_t *memory = coffer__malloc(BLOCKS_AT_ONCE * type->bytes);
    coffer_status status = memory ? COFFER_OK : coffer__fail_no_memory(err, BLOCKS_AT_ONCE * type->bytes);
    uint64_t blocks = tensor->size / type->bytes;
    for (uint64_t first = 0; !status && first < blocks; first += BLOCKS_AT_ONCE) {
        uint64_t count = blocks - first < BLOCKS_AT_ONCE ? blocks - first : BLOCKS_AT_ONCE;
        status =
            coffer_tensors_read(memory, set, index, first * type->bytes, (size_t)count * type->bytes, err);
        if (!status)
            status = take(context, memory, (size_t)count, err);
    }
    coffer__free(memory);
    return status;
}

typedef struct block_survey {
    const coffer__gguf_type *type;
    bool fits;
    int smallest; /* code */
} block_survey;

static coffer_status survey_run(void *context, const uint8_t *blocks, size_t count, coffer_error *err)
{
    block_survey *survey = context;
    (void)err;
    for (size_t i = 0; survey->fits && i < count; i++) {
        coffer__repack_block block;
        survey->fits = coffer__repack_from_gguf(&block, blocks + i * survey->type->bytes, survey->type->id);
        for (size_t j = 0; survey->fits && j < survey->type->elements; j++)
            survey->smallest = block.codes[j] < survey->smallest ? block.codes[j] : survey->smallest;
    }
    return COFFER_OK;
}

/* The type for blocks whose smallest code is known. The most negative code of a type is never written. */
static coffer_dtype dtype_for(uint32_t type, int smallest)
{
    switch (type) {
    case COFFER__GGUF_Q6_K:
        return smallest > -32 ? COFFER_DTYPE_K6 : COFFER_DTYPE_NONE;
    case COFFER__GGUF_Q4_K:
        return smallest > -8 ? COFFER_DTYPE_K4 : COFFER_DTYPE_NONE;
    case COFFER__GGUF_Q4_0:
        return smallest > -8 ? COFFER_DTYPE_Q4 : COFFER_DTYPE_Q8;
    default:
        return smallest > -128 ? COFFER_DTYPE_Q8 : COFFER_DTYPE_NONE;
    }
}

coffer_status coffer__gguf_repack_dtype(coffer_dtype *out, const coffer_tensors *set, size_t index,
                                        coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(set);
    const coffer__gguf_tensor *tensor =
        gguf ? &gguf->tensors[coffer__tensors_entry_at(set, index)->index] : NULL;
    *out = COFFER_DTYPE_NONE;
    if (!tensor || tensor->rank != 2 || !tensor->size || !coffer__repack_knows(tensor->type->id))
        return COFFER_OK;
    block_survey survey = { .type = tensor->type, .fits = true };
    coffer_status status = each_run(set, index, tensor, survey_run, &survey, err);
    if (!status && survey.fits)
        *out = dtype_for(tensor->type->id, survey.smallest);
    return status;
}

/* Writes one region of the payload from all blocks. */
typedef struct region_writer {
    const coffer__gguf_type *type;
    const coffer__quant_type *target;
    coffer__quant_part part;
    coffer__tensors_stream *stream;
    coffer__tensors_put put;
    void *context;
    uint8_t *memory; /* of a run */
    uint64_t written, small_scales;
    float largest;
} region_writer;

static float largest_of(const coffer__repack_block *block, size_t elements)
{
    float scale = fabsf(coffer__f16_to_f32(block->scale)), largest = 0;
    for (size_t i = 0; i < elements; i++) {
        size_t sub = i / COFFER__QUANT_BLOCK;
        float factor = elements > COFFER__QUANT_BLOCK ? (float)block->subs[sub] / 32 : 1;
        float value = scale * factor * fabsf((float)block->codes[i]);
        largest = value > largest ? value : largest;
    }
    return largest;
}

static coffer_status put_run(void *context, const uint8_t *blocks, size_t count, coffer_error *err)
{
    region_writer *writer = context;
    size_t elements = writer->type->elements, used = 0;
    for (size_t i = 0; i < count; i++) {
        coffer__repack_block block;
        if (!coffer__repack_from_gguf(&block, blocks + i * writer->type->bytes, writer->type->id))
            return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                                "the file changed while it was read");
        if (writer->part == COFFER__QUANT_SCALES) {
            float largest = largest_of(&block, elements);
            writer->largest = largest > writer->largest ? largest : writer->largest;
            writer->small_scales += coffer__repack_scale_is_small(block.scale);
            coffer__store_u16(writer->memory + used, block.scale);
            used += 2;
        } else if (writer->part == COFFER__QUANT_SUBS) {
            memcpy(writer->memory + used, block.subs, elements / COFFER__QUANT_BLOCK);
            used += elements / COFFER__QUANT_BLOCK;
        } else {
            coffer__repack_pack_codes(writer->memory + used, block.codes, writer->target->bits, elements);
            used += elements * writer->target->bits / 8;
        }
    }
    coffer_status status = writer->put(writer->context, writer->memory, used, err);
    writer->written += used;
    return status ? status : coffer__tensors_stream_count(writer->stream, used, err);
}

static coffer_status put_padding(region_writer *writer, uint64_t end, coffer_error *err)
{
    static const uint8_t zeros[COFFER__QUANT_REGION_ALIGN];
    size_t missing = (size_t)(end - writer->written);
    writer->written = end;
    return missing ? writer->put(writer->context, zeros, missing, err) : COFFER_OK;
}

coffer_status coffer__gguf_repack_in(float *largest, uint64_t *small_scales,
                                     const coffer__chosen_tensor *chosen, coffer__tensors_stream *stream,
                                     coffer__tensors_put put, void *context, coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(chosen->set);
    const coffer__gguf_tensor *tensor =
        &gguf->tensors[coffer__tensors_entry_at(chosen->set, chosen->index)->index];
    coffer__quant_layout layout;
    region_writer writer = { .type = tensor->type, .stream = stream, .put = put, .context = context };
    coffer_status status = coffer__quant_plan(&layout, chosen->dtype, 2, tensor->dims, false, err);
    if (status)
        return status;
    writer.target = layout.type;
    writer.memory = coffer__malloc(BLOCKS_AT_ONCE * tensor->type->elements);
    if (!writer.memory)
        return coffer__fail_no_memory(err, BLOCKS_AT_ONCE * tensor->type->elements);
    for (int part = 0; !status && part < COFFER__QUANT_PART_COUNT; part++) {
        if (!layout.regions[part].size)
            continue;
        writer.part = (coffer__quant_part)part;
        status = put_padding(&writer, layout.regions[part].offset, err);
        if (!status)
            status = each_run(chosen->set, chosen->index, tensor, put_run, &writer, err);
    }
    coffer__free(writer.memory);
    *largest = writer.largest;
    *small_scales += writer.small_scales;
    return status;
}

coffer_status coffer__selection_keep_blocks(coffer__selection *selection, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__chosen_tensor *chosen = &selection->items[i];
        coffer__quant_layout layout;
        coffer_dtype dtype = COFFER_DTYPE_NONE;
        if (!chosen->decoded)
            continue;
        status = coffer__gguf_repack_dtype(&dtype, chosen->set, chosen->index, err);
        if (status || dtype == COFFER_DTYPE_NONE)
            continue;
        status = coffer__quant_plan(&layout, dtype, 2, chosen->tensor->dims, false, err);
        if (status)
            break;
        selection->bytes = selection->bytes - chosen->size + layout.size;
        chosen->dtype = dtype;
        chosen->decoded = false;
        chosen->repack = true;
        chosen->size = layout.size;
    }
    return status;
}
