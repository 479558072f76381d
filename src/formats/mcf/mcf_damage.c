/* The Damage section: bytes that were known to be damaged when the file was written. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>

enum { MOST_SHARED = 64 };

COFFER__INIT_FUNCTION(coffer_mcf_damage, COFFER_MCF_DAMAGE_INIT)

void coffer__mcf_damages_free(coffer__mcf_damages *damages)
{
    coffer__free(damages->items);
    coffer__free(damages->names);
    *damages = (coffer__mcf_damages){ 0 };
}

/* ---- The section ---- */

coffer_status coffer__mcf_damages_encode(coffer__buffer *out, const coffer_mcf_damage *items, size_t count,
                                         coffer_error *err)
{
    uint8_t bytes[COFFER__MCF_DAMAGE_RECORD] = { 0 };
    size_t first = out->len;
    uint32_t name_at = 0;
    coffer__buffer_append(out, bytes, COFFER__MCF_DAMAGE_HEADER);
    for (size_t i = 0; i < count; i++) {
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_NAME_AT, name_at);
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_NAME_LEN_AT, (uint32_t)items[i].name_len);
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_TYPE_AT, items[i].section);
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_REASON_AT, (uint32_t)items[i].reason);
        coffer__store_u64(bytes + COFFER__MCF_DAMAGE_BEGIN_AT, items[i].begin);
        coffer__store_u64(bytes + COFFER__MCF_DAMAGE_SIZE_AT, items[i].size);
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_EXPECTED_AT, items[i].expected);
        coffer__store_u32(bytes + COFFER__MCF_DAMAGE_FOUND_AT, items[i].found);
        coffer__buffer_append(out, bytes, sizeof bytes);
        name_at += (uint32_t)items[i].name_len;
    }
    for (size_t i = 0; i < count; i++)
        coffer__buffer_append(out, items[i].name, items[i].name_len);
    if (out->failed)
        return coffer__fail_no_memory(err, count * sizeof bytes);
    coffer__store_u32(out->data + first + COFFER__MCF_DAMAGE_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(out->data + first + COFFER__MCF_DAMAGE_COUNT_AT, (uint32_t)count);
    coffer__store_u32(out->data + first + COFFER__MCF_DAMAGE_STRINGS_SIZE_AT, name_at);
    return COFFER_OK;
}

static coffer_status decode_record(coffer_mcf_damage *out, char **next_name, const uint8_t *record,
                                   const uint8_t *strings, uint64_t strings_size, uint64_t place,
                                   coffer_error *err)
{
    uint32_t name_at = coffer__load_u32(record + COFFER__MCF_DAMAGE_NAME_AT);
    uint32_t reason = coffer__load_u32(record + COFFER__MCF_DAMAGE_REASON_AT);
    coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
    damage.name_len = coffer__load_u32(record + COFFER__MCF_DAMAGE_NAME_LEN_AT);
    if (!coffer__range_fits(name_at, damage.name_len, strings_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place, "Damage: a name is outside of the section");
    if (reason < COFFER_MCF_DAMAGE_CHECKSUM || reason > COFFER_MCF_DAMAGE_LOST)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + COFFER__MCF_DAMAGE_REASON_AT,
                            "Damage: unknown reason %" PRIu32, reason);
    damage.reason = (coffer_mcf_damage_reason)reason;
    damage.section = coffer__load_u32(record + COFFER__MCF_DAMAGE_TYPE_AT);
    damage.begin = coffer__load_u64(record + COFFER__MCF_DAMAGE_BEGIN_AT);
    damage.size = coffer__load_u64(record + COFFER__MCF_DAMAGE_SIZE_AT);
    damage.expected = coffer__load_u32(record + COFFER__MCF_DAMAGE_EXPECTED_AT);
    damage.found = coffer__load_u32(record + COFFER__MCF_DAMAGE_FOUND_AT);
    damage.name = *next_name;
    if (damage.name_len > 0)
        memcpy(*next_name, strings + name_at, damage.name_len);
    (*next_name)[damage.name_len] = 0;
    *next_name += damage.name_len + 1;
    *out = damage;
    return COFFER_OK;
}

/* Names may share bytes of the strings, so their total is counted first. */
static bool total_of_names(size_t *out, const uint8_t *records, size_t count, uint64_t max)
{
    uint64_t total = count;
    for (size_t i = 0; i < count; i++)
        total += coffer__load_u32(records + i * COFFER__MCF_DAMAGE_RECORD + COFFER__MCF_DAMAGE_NAME_LEN_AT);
    return total <= max && coffer__to_size(out, total);
}

static coffer_status decode(coffer__mcf_damages *out, const uint8_t *bytes, size_t len, uint64_t base,
                            const coffer_limits *limits, coffer_error *err)
{
    size_t names = 0;
    if (len < COFFER__MCF_DAMAGE_HEADER ||
        coffer__load_u32(bytes + COFFER__MCF_DAMAGE_VERSION_AT) != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_BAD_VALUE, base, "Damage has %zu bytes and an unknown version",
                            len);
    size_t count = coffer__load_u32(bytes + COFFER__MCF_DAMAGE_COUNT_AT);
    uint64_t strings = coffer__load_u32(bytes + COFFER__MCF_DAMAGE_STRINGS_SIZE_AT);
    const uint8_t *records = bytes + COFFER__MCF_DAMAGE_HEADER;
    if (count > (len - COFFER__MCF_DAMAGE_HEADER) / COFFER__MCF_DAMAGE_RECORD ||
        strings != len - COFFER__MCF_DAMAGE_HEADER - count * COFFER__MCF_DAMAGE_RECORD)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, base,
                            "Damage has %zu bytes, which is not the size of %zu records and %" PRIu64
                            " bytes of names",
                            len, count, strings);
    if (!total_of_names(&names, records, count, limits->memory_bytes))
        return coffer__fail(err, COFFER_E_LIMIT, base, "Damage: its names are too long");
    out->items = coffer__alloc_array(count, sizeof *out->items);
    out->names = coffer__malloc(names);
    if (!out->items || !out->names)
        return coffer__fail_no_memory(err, names);
    char *next = out->names;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        const uint8_t *record = records + i * COFFER__MCF_DAMAGE_RECORD;
        status = decode_record(&out->items[i], &next, record, records + count * COFFER__MCF_DAMAGE_RECORD,
                               strings, base + (uint64_t)(record - bytes), err);
        out->count += !status;
    }
    return status;
}

/* Each record is read again whenever the file is checked or rewritten. Records of one tensor do not overlap;
 * only tensors that share their bytes are counted more than once. */
static coffer_status check_total(const coffer__mcf_damages *damages, uint64_t file_size, uint64_t base,
                                 coffer_error *err)
{
    uint64_t total = 0, most;
    if (!coffer__mul_u64(&most, file_size, MOST_SHARED))
        most = UINT64_MAX;
    for (size_t i = 0; i < damages->count; i++) {
        uint64_t size = damages->items[i].size < file_size ? damages->items[i].size : file_size;
        total += size;
        if (total > most)
            return coffer__fail(err, COFFER_E_LIMIT, base,
                                "Damage lists more than %" PRIu64 " bytes, %d times those of the file", most,
                                MOST_SHARED);
    }
    return COFFER_OK;
}

coffer_status coffer__mcf_damages_load(coffer__mcf_damages *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer__mcf_damages damages = { 0 };
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = coffer__mcf_load_section(&bytes, &len, src, section, limits->memory_bytes, err);
    if (!status)
        status = decode(&damages, bytes, len, section->offset, limits, err);
    if (!status)
        status = check_total(&damages, coffer_source_size(src), section->offset, err);
    coffer__free(bytes);
    if (status)
        coffer__mcf_damages_free(&damages);
    else
        *out = damages;
    return status;
}

/* ---- Damage of a model ---- */

coffer_status coffer__mcf_load_damage(coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_DAMAGE);
    if (!section)
        return COFFER_OK;
    coffer_status status =
        coffer__mcf_damages_load(&model->damages, model->source, section, &model->limits, err);
    if (status || model->damages.count == 0)
        return status;
    size_t count = model->damages.count;
    model->damage_of = coffer__calloc(model->index.count ? model->index.count : 1, sizeof *model->damage_of);
    model->damage_next = coffer__calloc(count, sizeof *model->damage_next);
    if (!model->damage_of || !model->damage_next)
        return coffer__fail_no_memory(err, (model->index.count + count) * sizeof *model->damage_of);
    for (size_t i = count; i-- > 0;) { /* so that each list is in the order of the section */
        const coffer_mcf_damage *damage = &model->damages.items[i];
        size_t tensor = damage->section || damage->reason == COFFER_MCF_DAMAGE_LOST
                            ? COFFER_INDEX_NONE
                            : coffer_mcf_find_tensor(model, damage->name, damage->name_len);
        if (tensor == COFFER_INDEX_NONE)
            continue;
        model->damage_next[i] = model->damage_of[tensor];
        model->damage_of[tensor] = (uint32_t)i + 1;
    }
    return COFFER_OK;
}

size_t coffer_mcf_damage_count(const coffer_mcf *model)
{
    return model->damages.count;
}

const coffer_mcf_damage *coffer_mcf_damage_at(const coffer_mcf *model, size_t index)
{
    return index < model->damages.count ? &model->damages.items[index] : NULL;
}

static bool overlaps(const coffer_mcf_damage *damage, uint64_t begin, uint64_t len)
{
    return damage->begin < begin + len && (damage->begin >= begin || damage->size > begin - damage->begin);
}

static const char *words_for(const coffer_mcf_damage *damage)
{
    return damage->reason == COFFER_MCF_DAMAGE_CHECKSUM
               ? "are known to be damaged"
               : "were saved from a damaged file and could not be verified";
}

coffer_status coffer__mcf_check_known_damage(const coffer_mcf *model, size_t tensor, uint64_t begin,
                                             uint64_t len, coffer_error *err)
{
    if (!model->damage_of || model->allow_damaged)
        return COFFER_OK;
    for (uint32_t i = model->damage_of[tensor]; i != 0; i = model->damage_next[i - 1]) {
        const coffer_mcf_damage *damage = &model->damages.items[i - 1];
        if (!overlaps(damage, begin, len))
            continue;
        coffer_error known = COFFER_ERROR_INIT;
        coffer__fail(&known, COFFER_E_BAD_CHECKSUM, model->tensors[tensor].offset + damage->begin,
                     "tensor %s: bytes %" PRIu64 "..%" PRIu64
                     " %s; 'coffer set FILE --delete Damage' accepts them",
                     coffer__mcf_entry_name(&model->index, tensor).text, damage->begin,
                     damage->begin + damage->size, words_for(damage));
        coffer_status status = coffer__source_accept_damage(model->source, &known, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

coffer_status coffer__mcf_check_section_damage(const coffer_mcf *model, const coffer_mcf_section *section,
                                               coffer_error *err)
{
    for (size_t i = 0; i < model->damages.count; i++) {
        const coffer_mcf_damage *damage = &model->damages.items[i];
        if (damage->section != section->type || section->type == 0 ||
            damage->reason == COFFER_MCF_DAMAGE_LOST)
            continue;
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, section->offset + damage->begin,
                            "%s: bytes %" PRIu64 "..%" PRIu64
                            " %s; 'coffer set FILE --delete Damage' accepts them",
                            coffer__mcf_section_label(section->type).text, damage->begin,
                            damage->begin + damage->size, words_for(damage));
    }
    return COFFER_OK;
}

/* ---- Finding the damage of a tensor ---- */

static coffer_status add_item(coffer__mcf_damages *list, const coffer_mcf_damage *damage, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->items, &list->capacity, list->count, sizeof *list->items, err);
    if (!status)
        list->items[list->count++] = *damage;
    return status;
}

/* Compares a chunk with its sum. A chunk of version 1 may have bytes of several tensors; then it only says
 * that the part in this one is not verified. */
static coffer_status compare_chunk(coffer__mcf_damages *list, const coffer_mcf *model,
                                   const coffer_mcf_tensor *tensor, const coffer__mcf_sums *sums, size_t sum,
                                   uint8_t *scratch, coffer_error *err)
{
    coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
    const uint8_t *bytes;
    uint64_t start;
    size_t size;
    coffer__mcf_sums_chunk(&start, &size, sums, sum);
    coffer_status status = coffer__source_fetch(&bytes, model->source, start, size, scratch, err);
    if (status)
        return status;
    uint32_t crc = coffer__crc32(0, bytes, size);
    if (crc == sums->sums[sum])
        return coffer_source_intact(model->source, err);
    uint64_t end = start + size, tensor_end = tensor->offset + tensor->size;
    uint64_t first = start > tensor->offset ? start : tensor->offset;
    uint64_t last = end < tensor_end ? end : tensor_end;
    damage.name = tensor->name;
    damage.name_len = tensor->name_len;
    damage.begin = first - tensor->offset;
    damage.size = last - first;
    damage.found = coffer__crc32(0, bytes + (first - start), (size_t)(last - first));
    if (damage.size == size) {
        damage.reason = COFFER_MCF_DAMAGE_CHECKSUM;
        damage.expected = sums->sums[sum];
    }
    return add_item(list, &damage, err);
}

static coffer_status compare_payload(coffer__mcf_damages *list, const coffer_mcf *model,
                                     const coffer_mcf_tensor *tensor, coffer_error *err)
{
    const coffer__mcf_sums *sums = coffer__mcf_verifier_sums(model->verifier);
    uint64_t at = tensor->offset, end = tensor->offset + tensor->size;
    uint8_t *scratch = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = scratch ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    while (!status && at < end) {
        const coffer__mcf_range *range = coffer__mcf_sums_find(sums, at);
        uint64_t start;
        size_t size;
        if (!range)
            break;
        size_t sum = range->first_sum + (size_t)((at - range->offset) / COFFER__MCF_CHUNK);
        coffer__mcf_sums_chunk(&start, &size, sums, sum);
        status = compare_chunk(list, model, tensor, sums, sum, scratch, err);
        at = start + size;
    }
    coffer__free(scratch);
    return status;
}

coffer_status coffer_mcf_tensor_damage(coffer_mcf_damage **out, size_t *count, const coffer_mcf *model,
                                       size_t tensor, coffer_error *err)
{
    coffer__mcf_damages list = { 0 };
    coffer_status status = coffer__mcf_check_range(model, tensor, err);
    if (status)
        return status;
    const coffer_mcf_tensor *info = &model->tensors[tensor];
    uint32_t next = model->damage_of ? model->damage_of[tensor] : 0;
    for (; !status && next != 0; next = model->damage_next[next - 1])
        status = add_item(&list, &model->damages.items[next - 1], err);
    if (!status && model->verifier)
        status = compare_payload(&list, model, info, err);
    if (status) {
        coffer__free(list.items);
        return status;
    }
    *out = list.items;
    *count = list.count;
    return COFFER_OK;
}
