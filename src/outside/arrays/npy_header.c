/* Reads the header of a .npy file. */
#include "outside/arrays/npy.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "coffer/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of the Python literals in NumPy headers. A strict reader: nothing is ever evaluated. */

/* Longer strings are refused. */
#define COFFER__LITERAL_MAX_STRING 1024
/* Room for the last code point and a NUL. */
#define COFFER__LITERAL_STRING_SIZE (COFFER__LITERAL_MAX_STRING + 3)

typedef struct coffer__literal {
    const char *start, *at, *end;
    uint64_t base; /* file offset of `start` */
    bool utf8;     /* version 3; Latin-1 before */
    coffer_error *err;
} coffer__literal;

/* Both fail at the current position; `what` completes the message. */
static coffer_status literal_fail(coffer__literal *lit, coffer_status status, const char *what)
{
    uint64_t offset = lit->base + (uint64_t)(lit->at - lit->start);
    return coffer__fail(lit->err, status, offset, "NumPy header: %s at byte %" PRIu64 " of the file", what,
                        offset);
}

static coffer_status literal_expected(coffer__literal *lit, const char *what)
{
    uint64_t offset = lit->base + (uint64_t)(lit->at - lit->start);
    return coffer__fail(lit->err, COFFER_E_BAD_VALUE, offset,
                        "NumPy header: expected %s at byte %" PRIu64 " of the file", what, offset);
}

static void literal_skip_space(coffer__literal *lit)
{
    while (lit->at < lit->end &&
           (*lit->at == ' ' || *lit->at == '\t' || *lit->at == '\n' || *lit->at == '\r'))
        lit->at++;
}

/* Skips white space, then consumes the character or word if it is next. */
static bool literal_take(coffer__literal *lit, char c)
{
    literal_skip_space(lit);
    if (lit->at == lit->end || *lit->at != c)
        return false;
    lit->at++;
    return true;
}

static bool literal_take_word(coffer__literal *lit, const char *word)
{
    size_t len = strlen(word);
    literal_skip_space(lit);
    if ((size_t)(lit->end - lit->at) < len || memcmp(lit->at, word, len) != 0)
        return false;
    lit->at += len;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void put_code_point(char *out, size_t *len, uint32_t code)
{
    if (code < 0x80) {
        out[(*len)++] = (char)code;
        return;
    }
    out[(*len)++] = (char)(0xc0 | code >> 6);
    out[(*len)++] = (char)(0x80 | (code & 0x3f));
}

/* The backslash has been read. */
static bool take_escape(coffer__literal *lit, uint32_t *code)
{
    static const char from[] = "\\'\"nrt";
    static const char to[] = "\\'\"\n\r\t";
    const char *found;
    if (lit->at == lit->end)
        return false;
    char c = *lit->at++;
    if (c == 'x' && lit->end - lit->at >= 2 && hex_digit(lit->at[0]) >= 0 && hex_digit(lit->at[1]) >= 0) {
        *code = (uint32_t)(hex_digit(lit->at[0]) * 16 + hex_digit(lit->at[1]));
        lit->at += 2;
        return *code != 0;
    }
    found = c ? strchr(from, c) : NULL;
    if (!found)
        return false;
    *code = (unsigned char)to[found - from];
    return true;
}

/* A string as NUL-terminated UTF-8. */
static coffer_status literal_take_string(char out[COFFER__LITERAL_STRING_SIZE], coffer__literal *lit)
{
    size_t len = 0;
    literal_skip_space(lit);
    if (lit->at < lit->end && *lit->at == 'u')
        lit->at++; /* Python 2 writes u'…' */
    if (lit->at == lit->end || (*lit->at != '\'' && *lit->at != '"'))
        return literal_expected(lit, "a string");
    char quote = *lit->at++;
    while (lit->at < lit->end && *lit->at != quote) {
        uint32_t code = (unsigned char)*lit->at++;
        if (code == 0)
            return literal_fail(lit, COFFER_E_BAD_TEXT, "a NUL in a string");
        if (len >= COFFER__LITERAL_MAX_STRING)
            return literal_fail(lit, COFFER_E_LIMIT, "a string of more than 1024 bytes");
        if (code == '\\') {
            if (!take_escape(lit, &code))
                return literal_fail(lit, COFFER_E_BAD_TEXT, "an escape that is not understood");
            put_code_point(out, &len, code);
        } else if (lit->utf8) {
            out[len++] = (char)code;
        } else {
            put_code_point(out, &len, code);
        }
    }
    if (lit->at == lit->end)
        return literal_fail(lit, COFFER_E_TRUNCATED, "a string that does not end");
    lit->at++;
    out[len] = '\0';
    if (!coffer__utf8_valid(out, len))
        return literal_fail(lit, COFFER_E_BAD_TEXT, "a name that is not UTF-8");
    return COFFER_OK;
}

static coffer_status literal_take_integer(uint64_t *out, coffer__literal *lit)
{
    uint64_t value = 0;
    literal_skip_space(lit);
    if (lit->at == lit->end || *lit->at < '0' || *lit->at > '9')
        return literal_expected(lit, "an integer");
    for (; lit->at < lit->end && *lit->at >= '0' && *lit->at <= '9'; lit->at++) {
        if (!coffer__mul_u64(&value, value, 10) ||
            !coffer__add_u64(&value, value, (uint64_t)(*lit->at - '0')))
            return literal_fail(lit, COFFER_E_BAD_VALUE, "a number of more than 64 bits");
    }
    if (lit->at < lit->end && *lit->at == 'L')
        lit->at++; /* Python 2's long integers */
    *out = value;
    return COFFER_OK;
}

/* (), (3,), (3, 4) */
static coffer_status take_shape(uint64_t *shape, size_t *dimensions, uint64_t *product, coffer__literal *lit)
{
    *dimensions = 0;
    *product = 1;
    if (!literal_take(lit, '('))
        return literal_expected(lit, "a tuple of dimensions");
    while (!literal_take(lit, ')')) {
        if (*dimensions > 0 && !literal_take(lit, ','))
            return literal_expected(lit, "a comma");
        if (*dimensions > 0 && literal_take(lit, ')'))
            return COFFER_OK;
        if (*dimensions == COFFER__NPY_MAX_DIMENSIONS)
            return literal_fail(lit, COFFER_E_LIMIT, "more than 64 dimensions");
        coffer_status status = literal_take_integer(&shape[*dimensions], lit);
        if (status)
            return status;
        if (!coffer__mul_u64(product, *product, shape[*dimensions]))
            return literal_fail(lit, COFFER_E_BAD_VALUE, "a shape of more than 2^64 elements");
        ++*dimensions;
    }
    return COFFER_OK;
}

/* '<u4', '|S16', '<M8[ns]' */
static coffer_status understand_type(coffer__npy_field *field, const char *type, coffer__literal *lit)
{
    const char *at = type;
    char order = *at == '<' || *at == '>' || *at == '|' || *at == '=' ? *at++ : '=';
    char kind = *at ? *at++ : '\0';
    uint64_t size = 0;
    const char *digits = at;
    if (kind == 'O')
        return literal_fail(lit, COFFER_E_UNSUPPORTED, "Python objects, which only Python can read");
    for (; *at >= '0' && *at <= '9'; at++) {
        if (size <= COFFER__NPY_MAX_ITEM)
            size = size * 10 + (uint64_t)(*at - '0');
    }
    if (kind == '?' && at == digits) {
        kind = 'b';
        size = 1;
        digits = NULL;
    }
    if ((kind == 'M' || kind == 'm') && *at == '[' && strchr(at, ']'))
        at = strchr(at, ']') + 1;
    if (!kind || !strchr("biufcSaUVMm", kind) || at == digits || *at)
        return literal_fail(lit, COFFER_E_BAD_VALUE, "a type that is not understood");
    if (kind == 'U')
        size *= 4;
    if (size > COFFER__NPY_MAX_ITEM)
        return literal_fail(lit, COFFER_E_LIMIT, "an element of more than 1 GiB");
    field->kind = kind == 'a' ? 'S' : kind;
    field->size = size;
    field->big_endian = order == '>';
    return COFFER_OK;
}

static coffer_status take_type(coffer__npy_field *field, coffer__literal *lit)
{
    char text[COFFER__LITERAL_STRING_SIZE];
    literal_skip_space(lit);
    if (lit->at < lit->end && *lit->at == '[')
        return literal_fail(lit, COFFER_E_UNSUPPORTED, "a nested structure, which is not supported,");
    coffer_status status = literal_take_string(text, lit);
    if (status)
        return status;
    return understand_type(field, text, lit);
}

/* 'name', or ('title', 'name') */
static coffer_status take_field_name(char out[COFFER__LITERAL_STRING_SIZE], coffer__literal *lit)
{
    if (!literal_take(lit, '('))
        return literal_take_string(out, lit);
    coffer_status status = literal_take_string(out, lit);
    if (status)
        return status;
    if (!literal_take(lit, ','))
        return literal_expected(lit, "a comma");
    status = literal_take_string(out, lit);
    if (status)
        return status;
    return literal_take(lit, ')') ? COFFER_OK : literal_expected(lit, "a closing bracket");
}

/* ('name', '<u4') or ('name', '<f4', (3,)); the opening bracket has been read. */
static coffer_status take_field(coffer__npy_field *field, coffer__literal *lit)
{
    char name[COFFER__LITERAL_STRING_SIZE];
    coffer_status status = take_field_name(name, lit);
    if (status)
        return status;
    if (!literal_take(lit, ','))
        return literal_expected(lit, "a comma");
    status = take_type(field, lit);
    if (status)
        return status;
    field->elements = 1;
    if (literal_take(lit, ',')) {
        uint64_t shape[COFFER__NPY_MAX_DIMENSIONS];
        size_t dimensions;
        literal_skip_space(lit);
        if (lit->at < lit->end && *lit->at != ')') {
            status = take_shape(shape, &dimensions, &field->elements, lit);
            if (status)
                return status;
        }
    }
    if (!literal_take(lit, ')'))
        return literal_expected(lit, "a closing bracket");
    field->name = coffer__strdup(name);
    return field->name ? COFFER_OK : coffer__fail_no_memory(lit->err, strlen(name) + 1);
}

static coffer_status place_field(coffer__npy *npy, coffer__npy_field *field, coffer__literal *lit)
{
    uint64_t bytes;
    if (!coffer__mul_u64(&bytes, field->size, field->elements) || bytes > COFFER__NPY_MAX_ITEM ||
        npy->item_size + bytes > COFFER__NPY_MAX_ITEM)
        return literal_fail(lit, COFFER_E_LIMIT, "an item of more than 1 GiB");
    field->offset = npy->item_size;
    npy->item_size += bytes;
    return COFFER_OK;
}

static coffer_status grow_fields(coffer__npy *npy, size_t *capacity, coffer__literal *lit)
{
    if (npy->field_count == COFFER__NPY_MAX_FIELDS)
        return literal_fail(lit, COFFER_E_LIMIT, "more than 4096 fields");
    return coffer__array_reserve_one(&npy->fields, capacity, npy->field_count, sizeof *npy->fields, lit->err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Padding has an empty name, which may repeat. */
static coffer_status check_names(const coffer__npy *npy, coffer__literal *lit)
{
    coffer_status status = COFFER_OK;
    const char **names = coffer__alloc_array(npy->field_count + 1, sizeof *names);
    if (!names)
        return coffer__fail_no_memory(lit->err, npy->field_count * sizeof *names);
    for (size_t i = 0; i < npy->field_count; i++)
        names[i] = npy->fields[i].name;
    qsort(names, npy->field_count, sizeof *names, by_name);
    for (size_t i = 1; !status && i < npy->field_count; i++) {
        if (*names[i] && strcmp(names[i], names[i - 1]) == 0)
            status = coffer__fail(lit->err, COFFER_E_DUPLICATE, lit->base,
                                  "NumPy header: duplicate field '%s'", names[i]);
    }
    coffer__free(names);
    return status;
}

static coffer_status take_fields(coffer__npy *npy, coffer__literal *lit)
{
    size_t capacity = 0;
    npy->structured = true;
    while (!literal_take(lit, ']')) {
        if (npy->field_count > 0 && !literal_take(lit, ','))
            return literal_expected(lit, "a comma");
        if (npy->field_count > 0 && literal_take(lit, ']'))
            break;
        if (!literal_take(lit, '('))
            return literal_expected(lit, "a field");
        coffer_status status = grow_fields(npy, &capacity, lit);
        if (status)
            return status;
        coffer__npy_field field = { 0 };
        status = take_field(&field, lit);
        if (status)
            return status;
        npy->fields[npy->field_count++] = field;
        status = place_field(npy, &npy->fields[npy->field_count - 1], lit);
        if (status)
            return status;
    }
    return check_names(npy, lit);
}

static coffer_status take_descr(coffer__npy *npy, coffer__literal *lit)
{
    if (literal_take(lit, '['))
        return take_fields(npy, lit);
    npy->fields = coffer__calloc(1, sizeof *npy->fields);
    if (!npy->fields)
        return coffer__fail_no_memory(lit->err, sizeof *npy->fields);
    npy->field_count = 1;
    npy->fields[0].elements = 1;
    coffer_status status = take_type(&npy->fields[0], lit);
    npy->item_size = npy->fields[0].size;
    return status;
}

static coffer_status take_value(coffer__npy *npy, const char *key, unsigned *seen, coffer__literal *lit)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    unsigned index = 0;
    while (index < 3 && strcmp(key, keys[index]) != 0)
        index++;
    if (index == 3)
        return literal_fail(lit, COFFER_E_BAD_VALUE, "a key other than descr, fortran_order and shape");
    if (*seen & 1u << index)
        return literal_fail(lit, COFFER_E_DUPLICATE, "a duplicate key");
    *seen |= 1u << index;
    if (index == 0)
        return take_descr(npy, lit);
    if (index == 2)
        return take_shape(npy->shape, &npy->dimensions, &npy->count, lit);
    npy->fortran_order = literal_take_word(lit, "True");
    return npy->fortran_order || literal_take_word(lit, "False") ? COFFER_OK
                                                                 : literal_expected(lit, "True or False");
}

static coffer_status take_header(coffer__npy *npy, coffer__literal *lit)
{
    unsigned seen = 0;
    bool first = true;
    if (!literal_take(lit, '{'))
        return literal_expected(lit, "an opening brace");
    while (!literal_take(lit, '}')) {
        char key[COFFER__LITERAL_STRING_SIZE];
        if (!first && !literal_take(lit, ','))
            return literal_expected(lit, "a comma or a closing brace");
        if (!first && literal_take(lit, '}'))
            break;
        first = false;
        coffer_status status = literal_take_string(key, lit);
        if (status)
            return status;
        if (!literal_take(lit, ':'))
            return literal_expected(lit, "a colon");
        status = take_value(npy, key, &seen, lit);
        if (status)
            return status;
    }
    if (seen != 7)
        return literal_fail(lit, COFFER_E_MISSING, "not all of descr, fortran_order and shape");
    literal_skip_space(lit);
    return lit->at == lit->end ? COFFER_OK : literal_expected(lit, "the end of the header");
}

/* Reads magic, version and length; returns where the header is. */
static coffer_status read_prefix(uint8_t *version, uint64_t *at, size_t *len, coffer_source *src,
                                 coffer_error *err)
{
    uint8_t prefix[12] = { 0 };
    uint64_t size = coffer_source_size(src);
    size_t wanted = size < sizeof prefix ? (size_t)size : sizeof prefix;
    coffer_status status = coffer_source_read_at(prefix, src, 0, wanted, err);
    if (status)
        return status;
    if (!coffer__npy_probe(prefix, wanted))
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0,
                            "not a NumPy file: it does not begin with \\x93NUMPY");
    *version = prefix[6];
    if (wanted > 7 && (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0))
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, 6,
                            "NumPy file version %u.%u; only 1.0, 2.0 and 3.0 are supported", prefix[6],
                            prefix[7]);
    *at = *version == 1 ? 10 : 12;
    uint32_t header_len = *version == 1 ? coffer__load_u16(prefix + 8) : coffer__load_u32(prefix + 8);
    if (header_len > COFFER__NPY_MAX_HEADER)
        return coffer__fail(err, COFFER_E_LIMIT, 8, "NumPy header of %" PRIu32 " bytes, at most %zu are read",
                            header_len, COFFER__NPY_MAX_HEADER);
    if (!coffer__range_fits(*at, header_len, size))
        return coffer__fail(err, COFFER_E_TRUNCATED, 8,
                            "NumPy header ends at %" PRIu64 ", file has %" PRIu64 " bytes", *at + header_len,
                            size);
    *len = header_len;
    return COFFER_OK;
}

static coffer_status check_size(const coffer__npy *npy, uint64_t size, coffer_error *err)
{
    uint64_t bytes;
    if (!coffer__mul_u64(&bytes, npy->count, npy->item_size) ||
        !coffer__range_fits(npy->data_offset, bytes, size))
        return coffer__fail(err, COFFER_E_TRUNCATED, npy->data_offset,
                            "NumPy array of %" PRIu64 " items of %" PRIu64 " bytes, file has %" PRIu64
                            " bytes for them",
                            npy->count, npy->item_size, size - npy->data_offset);
    return COFFER_OK;
}

coffer_status coffer__npy_read(coffer__npy *out, coffer_source *src, coffer_error *err)
{
    coffer__npy npy = { 0 };
    uint8_t version = 0;
    uint64_t at = 0;
    size_t len = 0;
    coffer_status status = read_prefix(&version, &at, &len, src, err);
    if (status)
        return status;
    char *text = coffer__malloc(len + 1);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer_source_read_at(text, src, at, len, err);
    if (status)
        goto out;
    coffer__literal lit = { text, text, text + len, at, version == 3, err };
    status = take_header(&npy, &lit);
    if (status)
        goto out;
    npy.data_offset = at + len;
    status = check_size(&npy, coffer_source_size(src), err);
    if (status)
        goto out;
    *out = npy;
    npy.fields = NULL;
    npy.field_count = 0;
out:
    coffer__npy_free(&npy);
    coffer__free(text);
    return status;
}
