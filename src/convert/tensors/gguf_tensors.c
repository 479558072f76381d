/* GGUF files as sets of tensors. */
#include "convert/tensors/tensors.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>

/* Bytes of blocks that are read at a time where the file is not mapped. */
#define PIECE ((size_t)1 << 16)
/* Arrays up to this length are described item by item. */
#define SHOWN_ITEMS 64 /* of an array that is shown in full */
#define FIRST_ITEMS 8  /* of a longer one */

static coffer_status open_file(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    coffer__gguf *gguf = NULL;
    coffer_status status = coffer__tensors_add_part(set, src, false, err);
    if (!status && set->salvage)
        status = coffer__gguf_salvage(&gguf, src, &set->limits, coffer__tensors_lose, set, err);
    else if (!status)
        status = coffer__gguf_open(&gguf, src, &set->limits, err);
    if (status)
        return status;
    set->state = gguf;
    for (size_t i = 0; !status && i < gguf->tensor_count; i++) {
        const coffer__gguf_tensor *from = &gguf->tensors[i];
        coffer_tensor tensor = {
            .name = from->name,
            .dtype = from->type->dtype,
            .type_name = from->type->name,
            .rank = from->rank,
            .dims = from->dims,
            .size = from->size,
            .offset = from->offset,
        };
        status = coffer__tensors_add(set, &tensor, from->name_len, i, err);
    }
    return status;
}

/* Through a small buffer, piece by piece. */
static coffer_status decode_pieces(float *out, const coffer__gguf *gguf, const coffer__gguf_type *type,
                                   uint64_t offset, size_t blocks, coffer_error *err)
{
    size_t at_once = PIECE / type->bytes;
    uint8_t *piece = coffer__malloc(at_once * type->bytes);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, PIECE);
    while (!status && blocks) {
        size_t now = blocks < at_once ? blocks : at_once, len = now * type->bytes;
        status = coffer_source_read_at(piece, gguf->src, offset, len, err);
        if (!status)
            type->decode(out, piece, now);
        out += now * type->elements;
        offset += len;
        blocks -= now;
    }
    coffer__free(piece);
    return status;
}

static coffer_status decode(float *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                            uint64_t first, uint64_t count, coffer_error *err)
{
    const coffer__gguf *gguf = set->state;
    const coffer__gguf_tensor *tensor = &gguf->tensors[entry->index];
    const coffer__gguf_type *type = tensor->type;
    if (!type->decode)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, tensor->offset,
                            "tensor \"%s\" is %s, which cannot be decoded: convert it with "
                            "llama-quantize --allow-requantize, or leave it out",
                            tensor->name, type->name);
    uint64_t offset = tensor->offset + first / type->elements * type->bytes;
    size_t blocks = (size_t)(count / type->elements);
    const uint8_t *view = coffer_source_view(gguf->src, offset, blocks * type->bytes);
    if (!view)
        return decode_pieces(out, gguf, type, offset, blocks, err);
    type->decode(out, view, blocks);
    return coffer_source_intact(gguf->src, err);
}

/* ---- Metadata ---- */

static void describe_number(coffer_node *out, const char *name, coffer__cursor *cursor, uint32_t type)
{
    coffer__number number = coffer__gguf_number(cursor, type);
    if (type == COFFER__GGUF_BOOL)
        coffer_node_add_bool(out, name, number.as.u64 != 0);
    else if (number.kind == COFFER__NUMBER_F64)
        coffer_node_add_f64(out, name, number.as.f64, COFFER_UNIT_NONE);
    else if (number.kind == COFFER__NUMBER_I64)
        coffer_node_add_i64(out, name, number.as.i64, COFFER_UNIT_NONE);
    else
        coffer_node_add_u64(out, name, number.as.u64, COFFER_UNIT_NONE);
}

/* Items of a type, nested arrays included; their depth was checked when the file was opened. */
static void describe_items(coffer_node *list, coffer__cursor *cursor, uint32_t type, uint64_t count)
{
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        if (type == COFFER__GGUF_ARRAY) {
            uint32_t item_type = coffer__cursor_u32(cursor);
            uint64_t item_count = coffer__cursor_u64(cursor);
            describe_items(coffer_node_add_list(list, NULL), cursor, item_type, item_count);
            continue;
        }
        if (type != COFFER__GGUF_STRING) {
            describe_number(list, NULL, cursor, type);
            continue;
        }
        size_t len = (size_t)coffer__cursor_u64(cursor);
        const char *text = (const char *)coffer__cursor_bytes(cursor, len);
        coffer_node_add_text_len(list, NULL, text ? text : "", text ? len : 0);
    }
}

/* Vocabularies are too long to show: size, checksum and the first items. */
static void describe_long(coffer_node *out, const char *name, const uint8_t *bytes, size_t len,
                          const coffer__gguf_key *key)
{
    coffer_node *map = coffer_node_add_map(out, name);
    coffer__cursor cursor = coffer__cursor_over(bytes, len, key->offset);
    coffer_node_add_text(map, "items", coffer__gguf_value_name(key->item_type));
    coffer_node_add_u64(map, "count", key->count, COFFER_UNIT_NONE);
    coffer_node_add_printf(map, "crc32", "%08" PRIx32, coffer__crc32(0, bytes, len));
    if (key->item_type != COFFER__GGUF_ARRAY)
        describe_items(coffer_node_add_list(map, "first"), &cursor, key->item_type,
                       key->count < FIRST_ITEMS ? key->count : FIRST_ITEMS);
}

/* whole : also a long array in full. */
static coffer_status describe_key(coffer_node *out, const coffer__gguf *gguf, const coffer__gguf_key *key,
                                  bool whole, coffer_error *err)
{
    uint8_t *bytes;
    size_t len;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, gguf, key, err);
    if (status)
        return status;
    coffer__cursor cursor = coffer__cursor_over(bytes, len, key->offset);
    if (key->type == COFFER__GGUF_STRING)
        coffer_node_add_text_len(out, key->name, (const char *)bytes, len);
    else if (key->type != COFFER__GGUF_ARRAY)
        describe_number(out, key->name, &cursor, key->type);
    else if (!whole && (key->count > SHOWN_ITEMS || key->item_type == COFFER__GGUF_ARRAY))
        describe_long(out, key->name, bytes, len, key);
    else
        describe_items(coffer_node_add_list(out, key->name), &cursor, key->item_type, key->count);
    coffer__free(bytes);
    return COFFER_OK;
}

static coffer_status describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    const coffer__gguf *gguf = set->state;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < gguf->key_count; i++)
        status = describe_key(out, gguf, &gguf->keys[i], false, err);
    return status;
}

static coffer_status describe_value(coffer_node *out, const coffer_tensors *set, const char *name,
                                    coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(set->state, name);
    return key ? describe_key(out, set->state, key, true, err) : COFFER_E_NOT_FOUND;
}

static void close_file(void *state)
{
    coffer__gguf_close(state);
}

static coffer_status check(coffer_report *out, const coffer_tensors *set, bool full, coffer_error *err)
{
    (void)full;
    return coffer__gguf_check(out, set->state, err);
}

const coffer__tensors_reader coffer__tensors_gguf = {
    .kind = "gguf",
    .decodes_others = true,
    .shown_kind = "gguf",
    .title = "GGUF model",
    .repairs = true,
    .open = open_file,
    .check = check,
    .decode = decode,
    .describe = describe,
    .describe_value = describe_value,
    .close = close_file,
};

const coffer__gguf *coffer__gguf_of(const coffer_tensors *set)
{
    return set->reader == &coffer__tensors_gguf ? set->state : NULL;
}
