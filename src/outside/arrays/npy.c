#include "outside/arrays/npy.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const uint8_t magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

/* Magic, version and length field together with the header fill a multiple of this. */
#define HEADER_ALIGNMENT 64

bool coffer__npy_probe(const uint8_t *head, size_t len)
{
    return len >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

void coffer__npy_free(coffer__npy *npy)
{
    for (size_t i = 0; i < npy->field_count; i++)
        coffer__free(npy->fields[i].name);
    coffer__free(npy->fields);
    npy->fields = NULL;
    npy->field_count = 0;
}

const coffer__npy_field *coffer__npy_find(const coffer__npy *npy, const char *name)
{
    for (size_t i = 0; i < npy->field_count; i++) {
        if (npy->fields[i].name && strcmp(npy->fields[i].name, name) == 0)
            return &npy->fields[i];
    }
    return NULL;
}

bool coffer__npy_is_number(const coffer__npy_field *field)
{
    if (field->elements != 1)
        return false;
    switch (field->kind) {
    case 'b':
        return field->size == 1;
    case 'i':
    case 'u':
        return field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8;
    case 'f':
        return field->size == 2 || field->size == 4 || field->size == 8;
    default:
        return false;
    }
}

static double half_to_double(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    double fraction = bits & 1023;
    double value;
    if (exponent == 31)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

static uint64_t load_bits(const coffer__npy_field *field, const uint8_t *at)
{
    switch (field->size) {
    case 1:
        return *at;
    case 2:
        return field->big_endian ? __builtin_bswap16(coffer__load_u16(at)) : coffer__load_u16(at);
    case 4:
        return field->big_endian ? __builtin_bswap32(coffer__load_u32(at)) : coffer__load_u32(at);
    default:
        return field->big_endian ? __builtin_bswap64(coffer__load_u64(at)) : coffer__load_u64(at);
    }
}

static double bits_to_double(uint64_t bits, uint64_t size)
{
    if (size == 2)
        return half_to_double((uint16_t)bits);
    if (size == 4) {
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t sign_extend(uint64_t bits, uint64_t size)
{
    switch (size) {
    case 1:
        return (int8_t)bits;
    case 2:
        return (int16_t)bits;
    case 4:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

coffer__number coffer__npy_number(const coffer__npy_field *field, const uint8_t *item)
{
    uint64_t bits = load_bits(field, item + field->offset);
    if (field->kind == 'f')
        return coffer__number_f64(bits_to_double(bits, field->size));
    if (field->kind == 'i')
        return coffer__number_i64(sign_extend(bits, field->size));
    return coffer__number_u64(bits);
}

/* The letters and sizes of the types that both NumPy and the library have. */
static const struct shared_type {
    coffer_dtype dtype;
    char kind;
    uint8_t size;
} shared_types[] = {
    { COFFER_DTYPE_BOOL, 'b', 1 }, { COFFER_DTYPE_I8, 'i', 1 },    { COFFER_DTYPE_U8, 'u', 1 },
    { COFFER_DTYPE_I16, 'i', 2 },  { COFFER_DTYPE_U16, 'u', 2 },   { COFFER_DTYPE_I32, 'i', 4 },
    { COFFER_DTYPE_U32, 'u', 4 },  { COFFER_DTYPE_I64, 'i', 8 },   { COFFER_DTYPE_U64, 'u', 8 },
    { COFFER_DTYPE_F16, 'f', 2 },  { COFFER_DTYPE_F32, 'f', 4 },   { COFFER_DTYPE_F64, 'f', 8 },
    { COFFER_DTYPE_C64, 'c', 8 },  { COFFER_DTYPE_C128, 'c', 16 },
};

#define SHARED_TYPES (sizeof shared_types / sizeof *shared_types)

bool coffer__npy_is_type(char kind, uint64_t size)
{
    switch (kind) {
    case 'b':
        return size == 1;
    case 'i':
    case 'u':
        return size == 1 || size == 2 || size == 4 || size == 8;
    case 'f': /* 12 and 16: long double, by processor */
        return size == 2 || size == 4 || size == 8 || size == 12 || size == 16;
    case 'c':
        return size == 8 || size == 16 || size == 24 || size == 32;
    case 'M':
    case 'm':
        return size == 8;
    case 'U':
        return size % 4 == 0;
    default:
        return true;
    }
}

coffer_dtype coffer__npy_dtype(const coffer__npy_field *field)
{
    for (size_t i = 0; i < SHARED_TYPES; i++) {
        if (shared_types[i].kind == field->kind && shared_types[i].size == field->size)
            return shared_types[i].dtype;
    }
    return COFFER_DTYPE_NONE;
}

bool coffer__npy_field_of(coffer__npy_field *out, coffer_dtype dtype)
{
    for (size_t i = 0; i < SHARED_TYPES; i++) {
        if (shared_types[i].dtype == dtype) {
            *out = (coffer__npy_field){ .kind = shared_types[i].kind,
                                        .size = shared_types[i].size,
                                        .elements = 1 };
            return true;
        }
    }
    return false;
}

void coffer__npy_swap(void *elements, coffer_dtype dtype, size_t count)
{
    uint8_t *at = elements;
    size_t size = coffer_dtype_size(dtype);
    if (coffer_dtype_is_complex(dtype)) {
        size /= 2;
        count *= 2;
    }
    for (size_t i = 0; size == 2 && i < count; i++)
        coffer__store_u16(at + 2 * i, __builtin_bswap16(coffer__load_u16(at + 2 * i)));
    for (size_t i = 0; size == 4 && i < count; i++)
        coffer__store_u32(at + 4 * i, __builtin_bswap32(coffer__load_u32(at + 4 * i)));
    for (size_t i = 0; size == 8 && i < count; i++)
        coffer__store_u64(at + 8 * i, __builtin_bswap64(coffer__load_u64(at + 8 * i)));
}

static bool is_ascii(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text >= 0x80)
            return false;
    }
    return true;
}

static void put_quoted(coffer__buffer *out, const char *text)
{
    coffer__buffer_append(out, "'", 1);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            coffer__buffer_append(out, "\\", 1);
        if ((unsigned char)*text < ' ')
            coffer__buffer_printf(out, "\\x%02x", (unsigned char)*text);
        else
            coffer__buffer_append(out, text, 1);
    }
    coffer__buffer_append(out, "'", 1);
}

static void put_type(coffer__buffer *out, const coffer__npy_field *field)
{
    /* NumPy counts the characters of 'U', not their bytes. */
    uint64_t size = field->kind == 'U' ? field->size / 4 : field->size;
    bool has_order = size > 1 && field->kind != 'S' && field->kind != 'V';
    coffer__buffer_printf(out, "'%c%c%" PRIu64 "'",
                          !has_order          ? '|'
                          : field->big_endian ? '>'
                                              : '<',
                          field->kind, size);
}

static void put_descr(coffer__buffer *out, const coffer__npy *npy)
{
    if (!npy->structured) {
        put_type(out, &npy->fields[0]);
        return;
    }
    coffer__buffer_append(out, "[", 1);
    for (size_t i = 0; i < npy->field_count; i++) {
        coffer__buffer_printf(out, "%s(", i ? ", " : "");
        put_quoted(out, npy->fields[i].name);
        coffer__buffer_append(out, ", ", 2);
        put_type(out, &npy->fields[i]);
        if (npy->fields[i].elements != 1)
            coffer__buffer_printf(out, ", (%" PRIu64 ",)", npy->fields[i].elements);
        coffer__buffer_append(out, ")", 1);
    }
    coffer__buffer_append(out, "]", 1);
}

static void put_literal(coffer__buffer *out, const coffer__npy *npy)
{
    coffer__buffer_printf(out, "{'descr': ");
    put_descr(out, npy);
    coffer__buffer_printf(out, ", 'fortran_order': %s, 'shape': (", npy->fortran_order ? "True" : "False");
    for (size_t i = 0; i < npy->dimensions; i++)
        coffer__buffer_printf(out, "%s%" PRIu64, i ? ", " : "", npy->shape[i]);
    coffer__buffer_printf(out, "%s), }", npy->dimensions == 1 ? "," : "");
}

void coffer__npy_put_header(coffer__buffer *out, const coffer__npy *npy)
{
    coffer__buffer literal = COFFER__BUFFER_INIT;
    uint8_t version = 1;
    size_t prefix = 10;
    put_literal(&literal, npy);
    for (size_t i = 0; npy->structured && i < npy->field_count; i++) {
        if (!is_ascii(npy->fields[i].name))
            version = 3;
    }
    if (version == 1 && literal.len + prefix + HEADER_ALIGNMENT > UINT16_MAX)
        version = 2;
    if (version != 1)
        prefix = 12;
    size_t total = (prefix + literal.len + 1 + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;

    uint8_t start[12];
    memcpy(start, magic, sizeof magic);
    start[6] = version;
    start[7] = 0;
    if (version == 1)
        coffer__store_u16(start + 8, (uint16_t)(total - prefix));
    else
        coffer__store_u32(start + 8, (uint32_t)(total - prefix));
    coffer__buffer_append(out, start, prefix);
    coffer__buffer_append(out, literal.data, literal.len);
    coffer__buffer_fill(out, ' ', total - prefix - literal.len - 1);
    coffer__buffer_append(out, "\n", 1);
    if (literal.failed)
        out->failed = true;
    coffer__buffer_free(&literal);
}

static const char extension[] = ".npy";
#define EXTENSION_LEN (sizeof extension - 1)

static bool is_array(const coffer__zip_member *member)
{
    size_t len = strlen(member->name);
    return len > EXTENSION_LEN && strcmp(member->name + len - EXTENSION_LEN, extension) == 0;
}

/* Counts the arrays and the bytes of their names. */
static void count_arrays(size_t *count, size_t *name_bytes, const coffer__zip *zip)
{
    *count = *name_bytes = 0;
    for (size_t i = 0; i < coffer__zip_count(zip); i++) {
        const coffer__zip_member *member = coffer__zip_at(zip, i);
        if (!is_array(member))
            continue;
        ++*count;
        *name_bytes += strlen(member->name) - EXTENSION_LEN + 1;
    }
}

static coffer_status read_header(coffer__npz_array *array, const coffer__zip *zip, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_error inner = COFFER_ERROR_INIT;
    coffer_status status = coffer__zip_source(&src, zip, array->member, COFFER__ZIP_FORWARD, &inner);
    if (!status)
        status = coffer__npy_read(&array->npy, src, &inner);
    coffer_source_close(src);
    /* Offsets inside a member are not offsets in the file. */
    if (status)
        coffer__fail(err, status, coffer__zip_at(zip, array->member)->offset, "%s: %s", array->name,
                     inner.text);
    return status;
}

static coffer_status read_arrays(coffer__npz *npz, coffer_error *err)
{
    size_t count, name_bytes;
    coffer_status status = COFFER_OK;
    count_arrays(&count, &name_bytes, npz->zip);
    npz->arrays = coffer__calloc(count + 1, sizeof *npz->arrays);
    npz->names = coffer__malloc(name_bytes);
    if (!npz->arrays || !npz->names)
        return coffer__fail_no_memory(err, count * sizeof *npz->arrays + name_bytes);
    char *name = npz->names;
    for (size_t i = 0; !status && i < coffer__zip_count(npz->zip); i++) {
        const coffer__zip_member *member = coffer__zip_at(npz->zip, i);
        if (!is_array(member))
            continue;
        size_t len = strlen(member->name) - EXTENSION_LEN;
        coffer__npz_array *array = &npz->arrays[npz->count];
        memcpy(name, member->name, len);
        name[len] = '\0';
        array->name = name;
        array->member = i;
        name += len + 1;
        status = read_header(array, npz->zip, err);
        if (!status)
            npz->count++;
    }
    return status;
}

coffer_status coffer__npz_open(coffer__npz *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer__npz npz = { 0 };
    coffer_status status = coffer__zip_open(&npz.zip, src, limits, err);
    if (!status)
        status = read_arrays(&npz, err);
    if (status) {
        coffer__npz_close(&npz);
        return status;
    }
    *out = npz;
    return COFFER_OK;
}

void coffer__npz_close(coffer__npz *npz)
{
    for (size_t i = 0; i < npz->count; i++)
        coffer__npy_free(&npz->arrays[i].npy);
    coffer__free(npz->arrays);
    coffer__free(npz->names);
    coffer__zip_close(npz->zip);
    *npz = (coffer__npz){ 0 };
}

size_t coffer__npz_find(const coffer__npz *npz, const char *name)
{
    for (size_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->arrays[i].name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

coffer_status coffer__npz_source(coffer_source **out, const coffer__npz *npz, size_t index,
                                 coffer__zip_access access, coffer_error *err)
{
    return coffer__zip_source(out, npz->zip, npz->arrays[index].member, access, err);
}

uint64_t coffer__npz_plain_offset(const coffer__npz *npz, size_t index)
{
    const coffer__npz_array *array = &npz->arrays[index];
    const coffer__zip_member *member = coffer__zip_at(npz->zip, array->member);
    if (member->method != COFFER__ZIP_STORED || member->encrypted)
        return COFFER_OFFSET_NONE;
    return member->offset + array->npy.data_offset;
}
