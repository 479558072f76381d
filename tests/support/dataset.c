#include "support/dataset.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "formats/mldf/mldf_layout.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

typedef struct field {
    uint8_t descriptor[COFFER__MLDF_STRIDE];
    uint16_t type, flags;
    uint32_t row_offset, row_size;
    uint8_t *dictionary;
    size_t dictionary_len, dictionary_payload;
} field;

typedef struct payload {
    uint8_t *bytes;
    size_t len;
    uint64_t place;
} payload;

/* The target of a row entry: 1 + the number of a payload, 0 for none. EMPTY for a value without bytes. */
#define EMPTY SIZE_MAX

struct dataset {
    dataset_opts opts;
    uint64_t samples;
    field fields[DATASET_MAX_FIELDS];
    size_t field_count;
    uint32_t row_size;
    uint8_t *rows; /* made with the first value */
    size_t *points_to;
    payload *payloads;
    size_t payload_count, payload_capacity;
};

dataset *dataset_new(uint64_t samples, const dataset_opts *opts)
{
    dataset *set = calloc(1, sizeof *set);
    assert_non_null(set);
    if (opts)
        set->opts = *opts;
    if (set->opts.stride == 0)
        set->opts.stride = COFFER__MLDF_STRIDE;
    if (set->opts.page_size == 0)
        set->opts.page_size = COFFER__MLDF_PAGE_SIZE_MIN;
    set->samples = samples;
    return set;
}

void dataset_free(dataset *set)
{
    for (size_t i = 0; i < set->payload_count; i++)
        free(set->payloads[i].bytes);
    for (size_t i = 0; i < set->field_count; i++)
        free(set->fields[i].dictionary);
    free(set->payloads);
    free(set->points_to);
    free(set->rows);
    free(set);
}

/* ---- Fields ---- */

static uint32_t natural_size(uint16_t type)
{
    switch (type) {
    case COFFER_MLDF_INT:
    case COFFER_MLDF_FLOAT:
        return 8;
    case COFFER_MLDF_IMAGE_RAW:
    case COFFER_MLDF_IMAGE_JPEG:
    case COFFER_MLDF_IMAGE_PNG:
    case COFFER_MLDF_AUDIO:
    case COFFER_MLDF_AUDIO_COMPRESSED:
        return 24;
    default:
        return 16;
    }
}

static uint32_t alignment_of(uint32_t size)
{
    return size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
}

static void lay_out(dataset *set)
{
    uint32_t at = 0, widest = 1;
    for (size_t i = 0; i < set->field_count; i++) {
        uint32_t alignment = alignment_of(set->fields[i].row_size);
        widest = alignment > widest ? alignment : widest;
        at = (at + alignment - 1) / alignment * alignment;
        set->fields[i].row_offset = at;
        at += set->fields[i].row_size;
    }
    set->row_size = (at + widest - 1) / widest * widest;
}

static size_t add_field(dataset *set, const char *name, uint16_t type, uint16_t flags, uint32_t row_size)
{
    field *of = &set->fields[set->field_count];
    assert_true(set->field_count < DATASET_MAX_FIELDS && !set->rows);
    assert_true(strlen(name) < COFFER__MLDF_NAME_SIZE);
    memcpy(of->descriptor, name, strlen(name));
    coffer__store_u16(of->descriptor + COFFER__MLDF_FIELD_TYPE_AT, type);
    coffer__store_u16(of->descriptor + COFFER__MLDF_FIELD_FLAGS_AT, flags);
    coffer__store_u32(of->descriptor + COFFER__MLDF_FIELD_ROW_SIZE_AT, row_size);
    of->type = type;
    of->flags = flags;
    of->row_size = row_size;
    set->field_count++;
    lay_out(set);
    return set->field_count - 1;
}

size_t dataset_field(dataset *set, const char *name, uint16_t type, uint16_t flags)
{
    return add_field(set, name, type, flags, natural_size(type));
}

size_t dataset_foreign_field(dataset *set, const char *name, uint16_t type, uint32_t row_size)
{
    return add_field(set, name, type, 0, row_size);
}

size_t dataset_array_field(dataset *set, const char *name, uint16_t type, uint16_t flags, uint8_t dtype,
                           uint32_t ndim, const uint64_t *dims)
{
    size_t index = dataset_field(set, name, type, flags);
    uint8_t *arguments = set->fields[index].descriptor + COFFER__MLDF_ARGUMENTS_AT;
    arguments[0] = dtype;
    arguments[1] = (uint8_t)ndim;
    for (uint32_t d = 0; d < ndim; d++)
        coffer__store_u64(arguments + COFFER__MLDF_DIMS_AT + d * sizeof(uint64_t), dims[d]);
    return index;
}

/* ---- Values ---- */

static void begin_values(dataset *set)
{
    if (set->rows)
        return;
    set->rows = calloc(set->samples ? set->samples : 1, set->row_size ? set->row_size : 1);
    set->points_to = calloc(set->samples ? set->samples : 1, set->field_count * sizeof *set->points_to);
    assert_non_null(set->rows);
    assert_non_null(set->points_to);
}

static uint8_t *entry_of(dataset *set, uint64_t sample, size_t index)
{
    begin_values(set);
    assert_true(sample < set->samples && index < set->field_count);
    return set->rows + sample * set->row_size + set->fields[index].row_offset;
}

void dataset_row(dataset *set, uint64_t sample, size_t index, const void *bytes, size_t len)
{
    assert_true(len <= set->fields[index].row_size);
    memcpy(entry_of(set, sample, index), bytes, len);
}

void dataset_int(dataset *set, uint64_t sample, size_t index, int64_t value)
{
    coffer__store_u64(entry_of(set, sample, index), (uint64_t)value);
}

void dataset_float(dataset *set, uint64_t sample, size_t index, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    coffer__store_u64(entry_of(set, sample, index), bits);
}

/* Takes the bytes over. Gives the number of the payload. */
static size_t add_payload(dataset *set, uint8_t *bytes, size_t len)
{
    if (set->payload_count == set->payload_capacity) {
        set->payload_capacity = set->payload_capacity ? 2 * set->payload_capacity : 16;
        set->payloads = realloc(set->payloads, set->payload_capacity * sizeof *set->payloads);
        assert_non_null(set->payloads);
    }
    set->payloads[set->payload_count] = (payload){ bytes, len, 0 };
    return set->payload_count++;
}

static uint8_t *copy_of(const void *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

void dataset_dictionary(dataset *set, size_t index, const void *bytes, size_t len)
{
    field *of = &set->fields[index];
    of->dictionary = copy_of(bytes, len);
    of->dictionary_len = len;
    of->dictionary_payload = add_payload(set, copy_of(bytes, len), len);
}

static uint8_t *compress(const dataset *set, const field *of, uint8_t *bytes, size_t *len)
{
    size_t room = ZSTD_compressBound(*len), made;
    uint8_t *out = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    assert_non_null(out);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, !set->opts.unsized);
    if (of->dictionary)
        ZSTD_CCtx_loadDictionary(context, of->dictionary, of->dictionary_len);
    made = ZSTD_compress2(context, out, room, bytes, *len);
    assert_false(ZSTD_isError(made));
    ZSTD_freeCCtx(context);
    free(bytes);
    *len = made;
    return out;
}

/* The nonce follows from the number of the sample: the same file every time. */
static uint8_t *encrypt(const dataset *set, uint64_t sample, size_t index, uint8_t *bytes, size_t *len)
{
    size_t room = COFFER__MLDF_NONCE_SIZE + *len + COFFER__MLDF_TAG_SIZE;
    uint8_t *out = malloc(room), binding[14] = "MLDF";
    unsigned long long made = 0;
    assert_non_null(out);
    assert_non_null(set->opts.key);
    memset(out, (int)(sample & 127), COFFER__MLDF_NONCE_SIZE);
    out[0] = (uint8_t)index;
    coffer__store_u64(binding + 4, sample);
    coffer__store_u16(binding + 12, (uint16_t)index);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + COFFER__MLDF_NONCE_SIZE, &made, bytes, *len, binding,
                                               sizeof binding, NULL, out, set->opts.key);
    free(bytes);
    *len = room;
    return out;
}

static void store_facts(uint8_t *at, uint16_t type, const coffer_mldf_entry *entry)
{
    if (!entry)
        return;
    if (type >= COFFER_MLDF_IMAGE_RAW && type <= COFFER_MLDF_IMAGE_PNG) {
        coffer__store_u16(at + 12, entry->height);
        coffer__store_u16(at + 14, entry->width);
        at[16] = (uint8_t)entry->channels;
        at[17] = entry->mode;
    } else if (type == COFFER_MLDF_AUDIO || type == COFFER_MLDF_AUDIO_COMPRESSED) {
        coffer__store_u32(at + 12, entry->num_samples);
        coffer__store_u32(at + 16, entry->sample_rate);
        coffer__store_u16(at + 20, entry->channels);
        at[22] = entry->bit_depth;
        at[23] = entry->codec;
    } else if (type == COFFER_MLDF_TEXT || type == COFFER_MLDF_TEXT_TOKENISED) {
        coffer__store_u16(at + 12, entry->num_tokens);
        at[14] = entry->encoding;
    }
}

void dataset_bytes(dataset *set, uint64_t sample, size_t index, const void *bytes, size_t len,
                   const coffer_mldf_entry *entry)
{
    const field *of = &set->fields[index];
    uint8_t *at = entry_of(set, sample, index), *stored = copy_of(bytes, len);
    size_t *points_to = &set->points_to[sample * set->field_count + index];
    if (of->flags & COFFER_MLDF_FIELD_ZSTD)
        stored = compress(set, of, stored, &len);
    if (of->flags & COFFER_MLDF_FIELD_ENCRYPTED)
        stored = encrypt(set, sample, index, stored, &len);
    store_facts(at, of->type, entry);
    if (len == 0) {
        free(stored);
        *points_to = EMPTY;
        return;
    }
    *points_to = 1 + add_payload(set, stored, len);
}

void dataset_share(dataset *set, uint64_t sample, size_t index, uint64_t other)
{
    memcpy(entry_of(set, sample, index), entry_of(set, other, index), set->fields[index].row_size);
    set->points_to[sample * set->field_count + index] = set->points_to[other * set->field_count + index];
}

/* ---- The file ---- */

static uint64_t align(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) / alignment * alignment;
}

static uint64_t place_payloads(dataset *set, uint64_t at)
{
    for (size_t i = 0; i < set->payload_count; i++) {
        set->payloads[i].place = at;
        at += set->payloads[i].len;
    }
    return at;
}

/* Gives the size of the file. */
static size_t place_all(dataset_places *places, dataset *set)
{
    uint64_t rows = set->samples * set->row_size, end;
    places->stride = set->opts.stride;
    places->row_size = set->row_size;
    places->descriptors = COFFER__MLDF_HEAD_SIZE;
    end = places->descriptors + set->field_count * places->stride;
    if (set->opts.rows_last) {
        places->data = align(end, set->opts.page_size);
        places->rows = align(place_payloads(set, places->data), COFFER__MLDF_METADATA_ALIGNMENT);
        places->table = places->rows + rows;
    } else {
        places->rows = align(end, COFFER__MLDF_METADATA_ALIGNMENT);
        places->data = align(places->rows + rows, set->opts.page_size);
        places->table = place_payloads(set, places->data);
    }
    return (size_t)(places->table + set->payload_count * COFFER__MLDF_TABLE_ENTRY);
}

static void store_header(uint8_t *bytes, const dataset_places *places, const dataset *set)
{
    uint8_t *at = bytes + COFFER__MLDF_HEADER_AT;
    uint32_t flags = COFFER_MLDF_LITTLE_ENDIAN;
    for (size_t i = 0; i < set->field_count; i++) {
        flags |= set->fields[i].flags & COFFER_MLDF_FIELD_ZSTD ? COFFER_MLDF_COMPRESSED : 0;
        flags |= set->fields[i].flags & COFFER_MLDF_FIELD_ENCRYPTED ? COFFER_MLDF_ENCRYPTED : 0;
    }
    memcpy(bytes, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE);
    coffer__store_u16(at, COFFER__MLDF_MAJOR);
    coffer__store_u32(at + COFFER__MLDF_FLAGS_AT,
                      flags | (set->opts.checksummed ? COFFER_MLDF_CHECKSUMMED : 0));
    coffer__store_u64(at + COFFER__MLDF_SAMPLES_AT, set->samples);
    coffer__store_u16(at + COFFER__MLDF_FIELDS_AT, (uint16_t)set->field_count);
    coffer__store_u32(at + COFFER__MLDF_PAGE_SIZE_AT, set->opts.page_size);
    coffer__store_u64(at + COFFER__MLDF_DESCRIPTORS_AT, places->descriptors);
    coffer__store_u64(at + COFFER__MLDF_METADATA_AT, places->rows);
    coffer__store_u64(at + COFFER__MLDF_DATA_AT, places->data);
    coffer__store_u64(at + COFFER__MLDF_TABLE_AT, places->table);
}

/* As the library's writer does it. */
static void flag_absent(dataset *set, size_t index)
{
    field *of = &set->fields[index];
    bool absent = false;
    for (uint64_t sample = 0; sample < set->samples; sample++)
        absent = absent || set->points_to[sample * set->field_count + index] == 0;
    if (absent && set->opts.checksummed && coffer_mldf_type_name(of->type) && of->type >= COFFER_MLDF_BYTES)
        coffer__store_u16(of->descriptor + COFFER__MLDF_FIELD_FLAGS_AT,
                          of->flags | COFFER_MLDF_FIELD_OPTIONAL);
}

static void store_fields(uint8_t *bytes, const dataset_places *places, dataset *set)
{
    for (size_t i = 0; i < set->field_count; i++) {
        field *of = &set->fields[i];
        uint8_t *dictionary = of->descriptor + COFFER__MLDF_ARGUMENTS_AT + COFFER__MLDF_DICTIONARY_AT;
        if (of->dictionary) {
            coffer__store_u64(dictionary, set->payloads[of->dictionary_payload].place);
            coffer__store_u32(dictionary + 8, (uint32_t)of->dictionary_len);
        }
        flag_absent(set, i);
        memcpy(bytes + places->descriptors + i * places->stride, of->descriptor, places->stride);
    }
}

static void point_rows(dataset *set, const dataset_places *places)
{
    for (uint64_t sample = 0; sample < set->samples; sample++) {
        for (size_t i = 0; i < set->field_count; i++) {
            size_t points_to = set->points_to[sample * set->field_count + i];
            uint8_t *at = set->rows + sample * set->row_size + set->fields[i].row_offset;
            if (points_to == 0)
                continue;
            const payload *to = points_to == EMPTY ? NULL : &set->payloads[points_to - 1];
            coffer__store_u64(at, to ? to->place : places->data);
            coffer__store_u32(at + 8, to ? (uint32_t)to->len : 0);
        }
    }
}

uint8_t *dataset_make(size_t *len, dataset_places *places, dataset *set)
{
    dataset_places found;
    uint8_t *bytes, *entry;
    begin_values(set);
    *len = place_all(&found, set);
    bytes = calloc(1, *len);
    assert_non_null(bytes);
    store_header(bytes, &found, set);
    store_fields(bytes, &found, set);
    point_rows(set, &found);
    memcpy(bytes + found.rows, set->rows, set->samples * set->row_size);
    entry = bytes + found.table;
    for (size_t i = 0; i < set->payload_count; i++, entry += COFFER__MLDF_TABLE_ENTRY) {
        memcpy(bytes + set->payloads[i].place, set->payloads[i].bytes, set->payloads[i].len);
        coffer__store_u64(entry, set->payloads[i].place);
        coffer__store_u32(entry + 8, (uint32_t)set->payloads[i].len);
    }
    if (set->opts.checksummed)
        dataset_repair_sums(bytes, *len);
    if (places)
        *places = found;
    return bytes;
}

size_t dataset_entry_at(const dataset *set, const dataset_places *places, uint64_t sample, size_t index)
{
    return (size_t)(places->rows + sample * places->row_size + set->fields[index].row_offset);
}

void dataset_repair_sums(uint8_t *bytes, size_t len)
{
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_mldf *set = dataset_open(src);
    uint8_t *header = bytes + COFFER__MLDF_HEADER_AT;
    uint64_t descriptors = coffer__load_u64(header + COFFER__MLDF_DESCRIPTORS_AT);
    uint64_t rows = coffer__load_u64(header + COFFER__MLDF_METADATA_AT);
    uint64_t data = coffer__load_u64(header + COFFER__MLDF_DATA_AT), end = data;
    uint64_t table = coffer__load_u64(header + COFFER__MLDF_TABLE_AT);
    uint32_t crc;
    for (uint8_t *at = bytes + table; at < bytes + len; at += COFFER__MLDF_TABLE_ENTRY) {
        uint64_t place = coffer__load_u64(at), size = coffer__load_u32(at + 8);
        assert_true(place <= len && size <= len - place);
        coffer__store_u32(at + 12, coffer__crc32(0, bytes + place, size));
        end = place + size > end ? place + size : end;
    }
    coffer__store_u32(header + COFFER__MLDF_DATA_CRC_AT, coffer__crc32(0, bytes + data, end - data));
    crc = coffer__crc32(0, bytes + descriptors,
                        coffer_mldf_field_count(set) * coffer_mldf_descriptor_stride(set));
    crc = coffer__crc32(crc, bytes + rows, coffer_mldf_sample_count(set) * coffer_mldf_row_size(set));
    coffer__store_u32(header + COFFER__MLDF_TABLE_CRC_AT, coffer__crc32(crc, bytes + table, len - table));
    coffer_mldf_close(set);
    coffer_source_close(src);
}

/* ---- A small set ---- */

size_t dataset_small_value(uint8_t out[256], uint64_t sample, size_t index)
{
    size_t len;
    switch (index) {
    case SMALL_IMAGE:
        for (size_t i = 0; i < 18; i++)
            out[i] = (uint8_t)(sample * 31 + i * 7);
        return 18;
    case SMALL_LABEL:
        coffer__store_u64(out, sample * 7 - 3);
        return 8;
    case SMALL_SCORE: {
        double score = (double)sample / 4;
        memcpy(out, &score, sizeof score);
        coffer__swap_numbers(out, sizeof score, 1);
        return 8;
    }
    case SMALL_CAPTION:
        return (size_t)snprintf((char *)out, 256, "caption %llu \xc3\xa9", (unsigned long long)sample);
    default:
        if (sample % 3 == 2)
            return SIZE_MAX;
        len = sample * 5 % 200;
        for (size_t i = 0; i < len; i++)
            out[i] = (uint8_t)(i + sample);
        return len;
    }
}

dataset *dataset_small(uint64_t samples, const dataset_opts *opts)
{
    static const coffer_mldf_entry image = {
        .struct_size = sizeof(coffer_mldf_entry), .height = 2, .width = 3, .channels = 3
    };
    dataset *set = dataset_new(samples, opts);
    uint16_t sealed = opts && opts->key ? COFFER_MLDF_FIELD_ENCRYPTED : 0;
    dataset_field(set, "image", COFFER_MLDF_IMAGE_RAW, sealed);
    dataset_field(set, "label", COFFER_MLDF_INT, 0);
    dataset_field(set, "score", COFFER_MLDF_FLOAT, 0);
    dataset_field(set, "caption", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ZSTD | sealed);
    dataset_field(set, "blob", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_OPTIONAL);
    for (uint64_t i = 0; i < samples; i++) {
        for (size_t f = 0; f < SMALL_FIELDS; f++) {
            uint8_t value[256];
            size_t len = dataset_small_value(value, i, f);
            if (f == SMALL_LABEL || f == SMALL_SCORE)
                dataset_row(set, i, f, value, len);
            else if (len != SIZE_MAX)
                dataset_bytes(set, i, f, value, len, f == SMALL_IMAGE ? &image : NULL);
        }
    }
    return set;
}

/* ---- Looking at files ---- */

static coffer_status count_read(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    dataset_reads *reads = context;
    (void)err;
    atomic_fetch_add(&reads->calls, 1);
    atomic_fetch_add(&reads->total, len);
    memcpy(out, reads->bytes + offset, len);
    return COFFER_OK;
}

coffer_source *dataset_counting_source(dataset_reads *reads, const void *bytes, size_t len)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = count_read };
    coffer_source *src = NULL;
    *reads = (dataset_reads){ .bytes = bytes };
    assert_int_equal(coffer_source_new(&src, &ops, reads, len, "counted", NULL), COFFER_OK);
    return src;
}

coffer_source *dataset_source_of(const void *bytes, size_t len)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    return src;
}

coffer_mldf *dataset_open(coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf *set = NULL;
    if (coffer_mldf_open(&set, src, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return set;
}

void dataset_assert_clean(const void *bytes, size_t len)
{
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_report *report = dataset_check(src, true);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (coffer_report_at(report, i)->severity != COFFER_NOTE)
            fail_msg("%s", coffer_report_at(report, i)->text);
    }
    coffer_report_free(report);
    coffer_source_close(src);
}
