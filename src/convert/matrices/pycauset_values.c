#include "convert/matrices/pycauset_values.h"

#include "base/bytes.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/real.h"
#include "base/text.h"
#include "convert/matrices/pycauset_export.h"
#include "io/file.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements that are looked at together, on the stack. */
#define CHUNK 512

coffer_status coffer__pycauset_dtype_setting(coffer_dtype *out, const coffer__convert_job *job,
                                             coffer_error *err)
{
    const char *name = coffer__job_setting(job, "dtype");
    if (!name)
        return COFFER_OK;
    coffer_dtype dtype = coffer__dtype_of_setting(name);
    if (dtype == COFFER_DTYPE_BOOL)
        dtype = COFFER_DTYPE_BIT;
    if (dtype == COFFER_DTYPE_NONE || !coffer_pycauset_dtype_name(dtype))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "dtype \"%s\" must be one of bit, i8 to i64, u8 to u64, f16, f32, f64, "
                            "c32, c64, c128",
                            name);
    *out = dtype;
    return COFFER_OK;
}

coffer_status coffer__pycauset_delimiter(char *out, const coffer__convert_job *job, coffer_error *err)
{
    const char *text = coffer__job_setting(job, "delimiter");
    if (!text && job->out_path && coffer__file_has_extension(job->out_path, ".tsv"))
        text = "tab";
    if (!text || strcmp(text, "comma") == 0)
        *out = ',';
    else if (strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0)
        *out = '\t';
    else if (strcmp(text, "space") == 0)
        *out = ' ';
    else if (text[0] && !text[1] && !strchr("\"\n\r", text[0]))
        *out = text[0];
    else
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "delimiter: one character, or tab, space, comma; not \"%s\"", text);
    return COFFER_OK;
}

/* A file that is this much smaller than its values is suspicious. */
#define EXPANSION 64

coffer_status coffer__pycauset_check_expansion(uint64_t bytes, bool overflows, uint64_t from_bytes,
                                               const coffer__convert_job *job, coffer_error *err)
{
    const char *text = coffer__job_setting(job, "max-size");
    uint64_t most = job->limits.expanded_bytes;
    if (text && !coffer__parse_size(&most, text))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "max-size: expected a size such as 20G, not \"%s\"", text);
    if (!overflows && (bytes <= most || bytes / EXPANSION <= from_bytes))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "a file of %" PRIu64 " bytes would become %s%" PRIu64 "; the limit is %" PRIu64
                        " bytes; raise it with --max-size",
                        from_bytes, overflows ? "more than " : "", overflows ? UINT64_MAX : bytes, most);
}

/* ---- Casting ---- */

/* The range of an integer type: from `least` up to, but not including, `end`. */
typedef struct span {
    double least, end;
} span;

static span span_of(coffer_dtype dtype)
{
    size_t bits = 8 * coffer_dtype_size(dtype);
    switch (dtype) {
    case COFFER_DTYPE_BOOL:
        return (span){ 0, 2 };
    case COFFER_DTYPE_U8:
    case COFFER_DTYPE_U16:
    case COFFER_DTYPE_U32:
    case COFFER_DTYPE_U64:
        return (span){ 0, ldexp(1, (int)bits) };
    default:
        return (span){ -ldexp(1, (int)bits - 1), ldexp(1, (int)bits - 1) };
    }
}

static bool is_whole(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_BOOL || coffer_dtype_is_integer(dtype);
}

static size_t count_fitting_reals(coffer_dtype to, const void *in, coffer_dtype from, size_t count)
{
    double values[CHUNK];
    span fits = span_of(to);
    size_t i = 0;
    coffer__elements_convert(values, COFFER_DTYPE_F64, in, from, count);
    while (i < count && values[i] >= fits.least && values[i] < fits.end && values[i] == floor(values[i]))
        i++;
    return i;
}

static size_t count_fitting_wholes(coffer_dtype to, const uint8_t *in, coffer_dtype from, size_t count)
{
    uint8_t there[CHUNK * 8], back[CHUNK * 8];
    size_t size = coffer_dtype_size(from), i = 0;
    coffer__elements_convert(there, to, in, from, count);
    coffer__elements_convert(back, from, there, to, count);
    if (memcmp(back, in, count * size) == 0)
        return count;
    while (memcmp(back + i * size, in + i * size, size) == 0)
        i++;
    return i;
}

static coffer_status fail_unfit(coffer_dtype to, const uint8_t *value, coffer_dtype from, uint64_t index,
                                const coffer__pycauset_place *place, coffer_error *err)
{
    char text[COFFER__NUMBER_TEXT];
    coffer__number number;
    double real;
    int64_t whole;
    uint64_t from_start = place->col - place->first_col + index;
    if (coffer_dtype_is_float(from)) {
        coffer__elements_convert(&real, COFFER_DTYPE_F64, value, from, 1);
        number = coffer__number_f64(real);
    } else if (from == COFFER_DTYPE_U64) {
        memcpy(&whole, value, sizeof whole);
        number = coffer__number_u64((uint64_t)whole);
    } else {
        coffer__elements_convert(&whole, COFFER_DTYPE_I64, value, from, 1);
        number = coffer__number_i64(whole);
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "row %" PRIu64 ", column %" PRIu64 ": %s does not fit %s; use --dtype %s",
                        place->row + from_start / place->cols, place->first_col + from_start % place->cols,
                        coffer__number_text(text, &number),
                        to == COFFER_DTYPE_BOOL ? "a bit" : coffer_dtype_name(to), coffer_dtype_name(from));
}

static coffer_status fail_complex(coffer_dtype to, coffer_dtype from, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "complex numbers cannot become %s; use --dtype %s",
                        to == COFFER_DTYPE_BOOL ? "bits" : coffer_dtype_name(to), coffer_dtype_name(from));
}

coffer_status coffer__pycauset_cast(void *out, coffer_dtype to, const void *in, coffer_dtype from,
                                    size_t count, const coffer__pycauset_place *place, coffer_error *err)
{
    const uint8_t *at = in;
    size_t size = coffer_dtype_size(from);
    if (!coffer__elements_can_convert(to, from))
        return fail_complex(to, from, err);
    for (size_t done = 0; is_whole(to) && to != from && done < count; done += CHUNK) {
        size_t some = count - done < CHUNK ? count - done : CHUNK;
        const uint8_t *chunk = at + done * size;
        size_t fitting = is_whole(from) ? count_fitting_wholes(to, chunk, from, some)
                                        : count_fitting_reals(to, chunk, from, some);
        if (fitting < some)
            return fail_unfit(to, chunk + fitting * size, from, done + fitting, place, err);
    }
    coffer__elements_convert(out, to, in, from, count);
    return COFFER_OK;
}

/* ---- Transposing ---- */

/* Columns that are gone through together: their rows share the lines of the cache. */
#define BLOCK 16

static inline void block_to_rows(uint8_t *out, size_t row_stride, const uint8_t *columns, size_t rows,
                                 size_t cols, size_t size)
{
    for (size_t row = 0; row < rows; row++) {
        uint8_t *to = out + row * row_stride;
        const uint8_t *from = columns + row * size;
        for (size_t col = 0; col < cols; col++)
            memcpy(to + col * size, from + col * rows * size, size);
    }
}

void coffer__pycauset_columns_to_rows(uint8_t *out, size_t row_stride, const uint8_t *columns, size_t rows,
                                      size_t cols, size_t size)
{
    for (size_t col = 0; col < cols; col += BLOCK) {
        size_t some = cols - col < BLOCK ? cols - col : BLOCK;
        uint8_t *to = out + col * size;
        const uint8_t *from = columns + col * rows * size;
        /* A constant size makes the copies single moves. */
        switch (size) {
        case 1:
            block_to_rows(to, row_stride, from, rows, some, 1);
            break;
        case 2:
            block_to_rows(to, row_stride, from, rows, some, 2);
            break;
        case 4:
            block_to_rows(to, row_stride, from, rows, some, 4);
            break;
        case 8:
            block_to_rows(to, row_stride, from, rows, some, 8);
            break;
        default:
            block_to_rows(to, row_stride, from, rows, some, 16);
            break;
        }
    }
}

/* Values as text. */

static float load_f32(const uint8_t *at)
{
    uint32_t bits = coffer__load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_f64(const uint8_t *at)
{
    uint64_t bits = coffer__load_u64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static char *put_pair(char *to, const uint8_t *value, coffer_dtype half)
{
    to = coffer__pycauset_put_value(to, value, half);
    *to++ = ' ';
    return coffer__pycauset_put_value(to, value + coffer_dtype_size(half), half);
}

char *coffer__pycauset_put_value(char *to, const uint8_t *value, coffer_dtype dtype)
{
    switch (dtype) {
    case COFFER_DTYPE_I8:
        return coffer__put_i64(to, (int8_t)*value);
    case COFFER_DTYPE_I16:
        return coffer__put_i64(to, (int16_t)coffer__load_u16(value));
    case COFFER_DTYPE_U16:
        return coffer__put_u32(to, coffer__load_u16(value));
    case COFFER_DTYPE_I32:
        return coffer__put_i64(to, (int32_t)coffer__load_u32(value));
    case COFFER_DTYPE_U32:
        return coffer__put_u32(to, coffer__load_u32(value));
    case COFFER_DTYPE_I64:
        return coffer__put_i64(to, (int64_t)coffer__load_u64(value));
    case COFFER_DTYPE_U64:
        return coffer__put_u64(to, coffer__load_u64(value));
    case COFFER_DTYPE_F16:
        return coffer__put_f32(to, coffer__f16_to_f32(coffer__load_u16(value)));
    case COFFER_DTYPE_F32:
        return coffer__put_f32(to, load_f32(value));
    case COFFER_DTYPE_F64:
        return coffer__put_f64(to, load_f64(value));
    case COFFER_DTYPE_C32:
        return put_pair(to, value, COFFER_DTYPE_F16);
    case COFFER_DTYPE_C64:
        return put_pair(to, value, COFFER_DTYPE_F32);
    case COFFER_DTYPE_C128:
        return put_pair(to, value, COFFER_DTYPE_F64);
    default: /* BOOL, U8 */
        return coffer__put_u32(to, *value);
    }
}

/* Numbers that are handed on together, on the stack. */
#define LIST 64

static char *put_reals(char *to, const uint8_t *values, size_t count, size_t size, char separator)
{
    for (size_t done = 0; done < count; done += LIST) {
        size_t some = count - done < LIST ? count - done : LIST;
        uint64_t doubles[LIST];
        uint32_t floats[LIST];
        for (size_t i = 0; i < some; i++) {
            if (size == 8)
                doubles[i] = coffer__load_u64(values + 8 * (done + i));
            else
                floats[i] = coffer__load_u32(values + 4 * (done + i));
        }
        to = size == 8 ? coffer__put_f64_list(to, doubles, some, separator)
                       : coffer__put_f32_list(to, floats, some, separator);
    }
    return to;
}

void coffer__pycauset_put_values(coffer__buffer *text, const uint8_t *values, uint64_t first, size_t count,
                                 coffer_dtype dtype, char separator)
{
    size_t size = coffer_dtype_size(dtype);
    size_t room = (coffer_dtype_is_complex(dtype) ? COFFER__PYCAUSET_VALUE_TEXT : COFFER__REAL_TEXT) + 1;
    char *start = (char *)coffer__buffer_extend(text, count * room), *to = start;
    if (!start)
        return;
    values += first * size;
    if (dtype == COFFER_DTYPE_F64 || dtype == COFFER_DTYPE_F32) {
        to = put_reals(to, values, count, size, separator);
    } else {
        for (size_t i = 0; i < count; i++) {
            to = coffer__pycauset_put_value(to, values + i * size, dtype);
            *to++ = separator;
        }
    }
    text->len -= count * room - (size_t)(to - start);
}

bool coffer__pycauset_is_zero(const uint8_t *value, coffer_dtype dtype)
{
    size_t size = coffer_dtype_size(dtype);
    bool has_sign = coffer_dtype_is_float(dtype) || coffer_dtype_is_complex(dtype);
    size_t part = coffer_dtype_is_complex(dtype) ? size / 2 : size;
    for (size_t i = 0; i < size; i++) {
        /* The sign of a real zero is in its last byte. */
        uint8_t mask = has_sign && i % part == part - 1 ? 0x7f : 0xff;
        if (value[i] & mask)
            return false;
    }
    return true;
}
