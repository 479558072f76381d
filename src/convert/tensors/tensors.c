/* A set of tensors: sorting, lookup, reading. Independent of the kind of file. */
#include "convert/tensors/tensors.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VERIFIED_PIECE ((size_t)8 << 20)

/* Conversions go through a piece of this size, which stays in the cache. */
#define PIECE ((size_t)1 << 16)

/* ---- Construction ---- */

coffer_status coffer__tensors_add_part(coffer_tensors *set, coffer_source *src, bool owned, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&set->parts, &set->part_capacity, set->part_count, sizeof *set->parts, err);
    if (status) {
        if (owned)
            coffer_source_close(src);
        return status;
    }
    set->parts[set->part_count++] = (coffer__tensors_part){ src, owned };
    return COFFER_OK;
}

coffer_status coffer__tensors_elements(uint64_t *out, uint32_t rank, const uint64_t *dims, coffer_error *err)
{
    uint64_t elements = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        empty |= dims[i] == 0;
        fits = fits && coffer__mul_u64(&elements, elements, dims[i]);
    }
    if (!fits && !empty)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "the product of %" PRIu32 " dimensions does not fit into 64 bits", rank);
    *out = empty ? 0 : elements;
    return COFFER_OK;
}

static coffer_status check_name(const char *name, size_t len, coffer_error *err)
{
    if (memchr(name, 0, len) || !coffer__utf8_valid(name, len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                            "the name \"%.*s\" is not UTF-8 without NULs", len > 80 ? 80 : (int)len, name);
    return COFFER_OK;
}

static coffer_status check_size(const coffer_tensor *tensor, size_t name_len, coffer_error *err)
{
    size_t item = coffer_dtype_size(tensor->dtype);
    uint64_t size;
    if (!item || (coffer__mul_u64(&size, tensor->elements, item) && size == tensor->size))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, tensor->offset,
                        "\"%.*s\" has %" PRIu64 " bytes for %" PRIu64 " elements of %zu",
                        name_len > 80 ? 80 : (int)name_len, tensor->name, tensor->size, tensor->elements,
                        item);
}

coffer_status coffer__tensors_add(coffer_tensors *set, const coffer_tensor *tensor, size_t name_len,
                                  size_t index, coffer_error *err)
{
    coffer__tensors_entry entry = { .tensor = *tensor, .index = index, .part = set->part_count - 1 };
    size_t dims_size = (size_t)tensor->rank * sizeof *tensor->dims, size;
    coffer_status status = check_name(tensor->name, name_len, err);
    if (!status)
        status = coffer__tensors_elements(&entry.tensor.elements, tensor->rank, tensor->dims, err);
    if (!status)
        status = check_size(&entry.tensor, name_len, err);
    if (!status && set->count >= set->limits.entries)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %" PRIu64 " tensors",
                              set->limits.entries);
    if (!status)
        status = coffer__array_reserve_one(&set->entries, &set->capacity, set->count, sizeof entry, err);
    if (status)
        return status;
    uint8_t *memory = coffer__add_size(&size, dims_size + 1, name_len) ? coffer__malloc(size) : NULL;
    if (!memory)
        return coffer__fail_no_memory(err, (uint64_t)dims_size + name_len);
    if (dims_size)
        memcpy(memory, tensor->dims, dims_size);
    memcpy(memory + dims_size, tensor->name, name_len);
    memory[dims_size + name_len] = 0;
    entry.memory = memory;
    entry.tensor.dims = entry.memory;
    entry.tensor.name = (const char *)memory + dims_size;
    entry.tensor.file = coffer_source_name(set->parts[entry.part].src);
    set->entries[set->count++] = entry;
    return COFFER_OK;
}

static int by_name(const void *left, const void *right)
{
    const coffer__tensors_entry *a = left, *b = right;
    int order = strcmp(a->tensor.name, b->tensor.name);
    return order ? order : (a->part > b->part) - (a->part < b->part);
}

coffer_status coffer__tensors_sort(coffer_tensors *set, coffer_error *err)
{
    bool sorted = true;
    for (size_t i = 1; sorted && i < set->count; i++)
        sorted = by_name(&set->entries[i - 1], &set->entries[i]) < 0;
    if (!sorted)
        qsort(set->entries, set->count, sizeof *set->entries, by_name);
    for (size_t i = 1; i < set->count; i++) {
        const coffer_tensor *a = &set->entries[i - 1].tensor, *b = &set->entries[i].tensor;
        if (strcmp(a->name, b->name) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, b->offset,
                                "the tensor \"%s\" is in two files: %s and %s", a->name, a->file, b->file);
    }
    return COFFER_OK;
}

static coffer_status mark_damaged(coffer_tensors *set, coffer_error *err)
{
    coffer__tensors_names names = { 0 };
    coffer_status status = coffer__tensors_recorded_names(&names, set, COFFER__TENSORS_DAMAGED_KEY, err);
    for (size_t i = 0; !status && i < names.count; i++) {
        size_t found = coffer_tensors_find(set, names.items[i]);
        if (found != COFFER_INDEX_NONE)
            set->entries[found].damaged = true;
    }
    coffer__tensors_names_free(&names);
    return status;
}

static coffer_status open_set(coffer_tensors **out, const coffer__tensors_reader *reader, coffer_source *src,
                              bool owned, coffer__tensors_salvage *salvage,
                              const coffer_tensors_open_opts *opts, coffer_error *err)
{
    coffer_tensors *set = coffer__calloc(1, sizeof *set);
    if (!set)
        return coffer__fail_no_memory(err, sizeof *set);
    set->reader = reader;
    set->limits = coffer__limits(opts->limits);
    set->access = opts->access;
    set->allow_damaged = opts->allow_damaged;
    set->salvage = salvage;
    coffer_status status = reader->open(set, src, err);
    if (!status)
        status = coffer__tensors_sort(set, err);
    if (!status)
        status = mark_damaged(set, err);
    if (status) {
        coffer_tensors_close(set);
        return status;
    }
    /* Only now: after a failure the caller still owns the source. */
    set->opened = owned ? src : NULL;
    *out = set;
    return COFFER_OK;
}

coffer_status coffer__tensors_open_with(coffer_tensors **out, const coffer__tensors_reader *reader,
                                        coffer_source *src, bool owned, const coffer_tensors_open_opts *opts,
                                        coffer_error *err)
{
    return open_set(out, reader, src, owned, NULL, opts, err);
}

coffer_status coffer__tensors_open_damaged(coffer_tensors **out, const coffer__tensors_reader *reader,
                                           coffer_source *src, coffer__tensors_salvage *salvage,
                                           const coffer_tensors_open_opts *opts, coffer_error *err)
{
    return open_set(out, reader, src, false, salvage, opts, err);
}

static void free_entry(coffer__tensors_entry *entry)
{
    coffer__free(entry->memory);
    coffer__free(entry->new_name);
    coffer__free(entry->numbers);
}

void coffer__tensors_remove(coffer_tensors *set, size_t tensor)
{
    free_entry(&set->entries[tensor]);
    set->count--;
    memmove(&set->entries[tensor], &set->entries[tensor + 1], (set->count - tensor) * sizeof *set->entries);
}

void coffer_tensors_close(coffer_tensors *set)
{
    if (!set)
        return;
    if (set->reader->close)
        set->reader->close(set->state);
    for (size_t i = 0; i < set->part_count; i++) {
        if (set->parts[i].owned)
            coffer_source_close(set->parts[i].src);
    }
    coffer_source_close(set->opened);
    for (size_t i = 0; i < set->count; i++)
        free_entry(&set->entries[i]);
    coffer__free(set->entries);
    coffer__free(set->folder);
    coffer__free(set->parts);
    coffer__free(set);
}

/* ---- Lookup ---- */

const char *coffer_tensors_kind(const coffer_tensors *set)
{
    return set->reader->shown_kind;
}

size_t coffer_tensors_count(const coffer_tensors *set)
{
    return set->count;
}

const coffer_tensor *coffer_tensors_at(const coffer_tensors *set, size_t index)
{
    return index < set->count ? &set->entries[index].tensor : NULL;
}

const coffer__tensors_entry *coffer__tensors_entry_at(const coffer_tensors *set, size_t tensor)
{
    return &set->entries[tensor];
}

static int to_name(const void *name, const void *entry)
{
    return strcmp(name, ((const coffer__tensors_entry *)entry)->tensor.name);
}

size_t coffer_tensors_find(const coffer_tensors *set, const char *name)
{
    const coffer__tensors_entry *found =
        set->count ? bsearch(name, set->entries, set->count, sizeof *set->entries, to_name) : NULL;
    return found ? (size_t)(found - set->entries) : COFFER_INDEX_NONE;
}

bool coffer__tensors_can_decode(const coffer_tensors *set, size_t tensor)
{
    coffer_dtype dtype = set->entries[tensor].tensor.dtype;
    return set->reader->decode &&
           (dtype == COFFER_DTYPE_NONE ? set->reader->decodes_others : coffer_dtype_is_quantized(dtype));
}

coffer_source *coffer__tensors_source_at(const coffer_tensors *set, size_t tensor)
{
    const coffer__tensors_entry *entry = &set->entries[tensor];
    bool stored = !set->reader->read && entry->tensor.offset != COFFER_OFFSET_NONE;
    return stored && !coffer__tensors_has_form(entry) ? set->parts[entry->part].src : NULL;
}

/* Damage that the file records stops a reader, unless the caller accepts it. */
static coffer_status check_recorded(const coffer_tensors *set, const coffer__tensors_entry *entry,
                                    coffer_error *err)
{
    coffer_error damage = COFFER_ERROR_INIT;
    if (!entry->damaged || set->allow_damaged)
        return COFFER_OK;
    coffer__fail(&damage, COFFER_E_BAD_CHECKSUM, entry->tensor.offset,
                 "tensor \"%s\" was damaged when the file was written", entry->tensor.name);
    return coffer__source_accept_damage(set->parts[entry->part].src, &damage, err);
}

coffer_status coffer__tensors_verify(const coffer_tensors *set, size_t tensor, uint64_t begin, uint64_t len,
                                     coffer_error *err)
{
    coffer_status status = check_recorded(set, &set->entries[tensor], err);
    if (status)
        return status;
    return set->reader->verify ? set->reader->verify(set, &set->entries[tensor], begin, len, err) : COFFER_OK;
}

/* ---- Reading ---- */

static coffer_status check_range(const coffer_tensors *set, size_t tensor, uint64_t begin, uint64_t len,
                                 bool in_elements, coffer_error *err)
{
    if (tensor >= set->count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "tensor %zu requested, the set has %zu", tensor, set->count);
    const coffer_tensor *info = &set->entries[tensor].tensor;
    uint64_t size = in_elements ? info->elements : info->size;
    if (coffer__range_fits(begin, len, size))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                        "%s %" PRIu64 "..%" PRIu64 " + %" PRIu64 " of \"%s\" requested, it has %" PRIu64,
                        in_elements ? "elements" : "bytes", begin, begin, len, info->name, size);
}

static coffer_status read_stored(void *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                                 uint64_t begin, size_t len, coffer_error *err)
{
    if (len == 0)
        return COFFER_OK;
    if (set->reader->read)
        return set->reader->read(out, set, entry, begin, len, err);
    coffer_source *src = set->parts[entry->part].src;
    if (!set->reader->verify)
        return coffer_source_read_at(out, src, entry->tensor.offset + begin, len, err);
    coffer_status status = COFFER_OK;
    /* A piece is verified and then read while it is still in the cache of a remote file. */
    for (size_t done = 0, n; done < len && !status; done += n) {
        n = len - done < VERIFIED_PIECE ? len - done : VERIFIED_PIECE;
        status = set->reader->verify(set, entry, begin + done, n, err);
        if (!status)
            status = coffer_source_read_at((uint8_t *)out + done, src, entry->tensor.offset + begin + done, n,
                                           err);
    }
    return status;
}

static coffer_status read_bytes(void *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                                uint64_t begin, size_t len, coffer_error *err)
{
    return coffer__tensors_has_form(entry)
               ? coffer__tensors_read_form(out, set, entry, begin, len, read_stored, err)
               : read_stored(out, set, entry, begin, len, err);
}

/* Announces those of the tensors that are in one of the files. */
static void announce_part(const coffer_tensors *set, size_t part, const size_t *tensors, size_t count)
{
    coffer_range *ranges = coffer__alloc_array(count, sizeof *ranges);
    size_t found = 0;
    for (size_t i = 0; ranges && i < count; i++) {
        size_t index = tensors ? tensors[i] : i;
        const coffer__tensors_entry *entry = index < set->count ? &set->entries[index] : NULL;
        if (entry && entry->part == part && entry->tensor.size)
            ranges[found++] = (coffer_range){ entry->tensor.offset, entry->tensor.size };
    }
    if (found)
        coffer_source_prefetch(set->parts[part].src, ranges, found);
    coffer__free(ranges);
}

void coffer_tensors_prefetch(const coffer_tensors *set, const size_t *tensors, size_t count)
{
    if (set->reader->read) /* what is stored is not what is read */
        return;
    for (size_t part = 0; part < set->part_count; part++)
        announce_part(set, part, tensors, tensors ? count : set->count);
}

coffer_status coffer_tensors_read(void *out, const coffer_tensors *set, size_t tensor, uint64_t begin,
                                  size_t len, coffer_error *err)
{
    coffer_status status = check_range(set, tensor, begin, len, false, err);
    if (!status)
        status = check_recorded(set, &set->entries[tensor], err);
    return status ? status : read_bytes(out, set, &set->entries[tensor], begin, len, err);
}

const uint8_t *coffer_tensors_view(const coffer_tensors *set, size_t tensor)
{
    coffer_source *src = tensor < set->count ? coffer__tensors_source_at(set, tensor) : NULL;
    const coffer_tensor *found = src ? &set->entries[tensor].tensor : NULL;
    if (found && check_recorded(set, &set->entries[tensor], NULL))
        return NULL;
    return found && found->size <= SIZE_MAX ? coffer_source_view(src, found->offset, (size_t)found->size)
                                            : NULL;
}

coffer_status coffer_tensors_verify(const coffer_tensors *set, size_t tensor, uint64_t begin, uint64_t len,
                                    coffer_error *err)
{
    coffer_status status = check_range(set, tensor, begin, len, false, err);
    return status ? status : coffer__tensors_verify(set, tensor, begin, len, err);
}

coffer_status coffer_tensors_intact(const coffer_tensors *set, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < set->part_count; i++)
        status = coffer_source_intact(set->parts[i].src, err);
    return status;
}

/* Elements of one type into another, a piece at a time. */
static coffer_status read_converted(uint8_t *out, coffer_dtype dtype, const coffer_tensors *set,
                                    const coffer__tensors_entry *entry, uint64_t first, uint64_t count,
                                    coffer_error *err)
{
    coffer_dtype from = entry->tensor.dtype;
    size_t from_size = coffer_dtype_size(from), to_size = coffer_dtype_size(dtype);
    size_t at_once = PIECE / from_size;
    uint8_t *piece = coffer__malloc(PIECE);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, PIECE);
    for (uint64_t done = 0; !status && done < count;) {
        size_t now = count - done < at_once ? (size_t)(count - done) : at_once;
        status = read_bytes(piece, set, entry, (first + done) * from_size, now * from_size, err);
        if (!status)
            coffer__elements_convert(out + done * to_size, dtype, piece, from, now);
        done += now;
    }
    coffer__free(piece);
    return status;
}

/* Whole rows of a type that is not plain, by way of float32. */
static coffer_status read_decoded(uint8_t *out, coffer_dtype dtype, const coffer_tensors *set,
                                  const coffer__tensors_entry *entry, uint64_t first, uint64_t count,
                                  coffer_error *err)
{
    const coffer_tensor *tensor = &entry->tensor;
    uint64_t row = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    if (count == 0)
        return COFFER_OK;
    if (first % row || count % row)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "elements %" PRIu64 " + %" PRIu64 " of \"%s\" are not whole rows of %" PRIu64,
                            first, count, tensor->name, row);
    if (dtype == COFFER_DTYPE_F32)
        return coffer__tensors_decode_form((float *)(void *)out, set, entry, first, count, err);
    uint64_t rows_at_once = row < PIECE / sizeof(float) ? PIECE / sizeof(float) / row : 1;
    uint64_t at_once = rows_at_once * row < count ? rows_at_once * row : count;
    size_t at_once_size;
    float *piece =
        coffer__to_size(&at_once_size, at_once) ? coffer__alloc_array(at_once_size, sizeof *piece) : NULL;
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, at_once);
    for (uint64_t done = 0; !status && done < count;) {
        uint64_t now = count - done < at_once ? count - done : at_once;
        status = coffer__tensors_decode_form(piece, set, entry, first + done, now, err);
        if (!status)
            coffer__elements_convert(out + done * coffer_dtype_size(dtype), dtype, piece, COFFER_DTYPE_F32,
                                     (size_t)now);
        done += now;
    }
    coffer__free(piece);
    return status;
}

coffer_status coffer_tensors_read_as(void *out, coffer_dtype dtype, const coffer_tensors *set, size_t tensor,
                                     uint64_t first, uint64_t count, coffer_error *err)
{
    coffer_status status = check_range(set, tensor, first, count, true, err);
    if (!status)
        status = check_recorded(set, &set->entries[tensor], err);
    if (status)
        return status;
    const coffer__tensors_entry *entry = &set->entries[tensor];
    size_t size = coffer_dtype_size(entry->tensor.dtype);
    bool plain = size != 0;
    coffer_dtype from = plain ? entry->tensor.dtype : COFFER_DTYPE_F32;
    bool known = plain || coffer__tensors_can_decode(set, tensor);
    if (!known || (dtype != from && !coffer__elements_can_convert(dtype, from)))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "\"%s\" is %s, which cannot be read as %s", entry->tensor.name,
                            entry->tensor.type_name, coffer_dtype_name(dtype));
    if (!plain)
        return read_decoded(out, dtype, set, entry, first, count, err);
    if (dtype == from)
        return read_bytes(out, set, entry, first * size, (size_t)count * size, err);
    return read_converted(out, dtype, set, entry, first, count, err);
}
