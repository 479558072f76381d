#include "outside/arrays/mtx.h"

#include "base/checked.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

const char *const coffer__mtx_field_names[COFFER__MTX_FIELDS] = { "real", "integer", "complex", "pattern",
                                                                  "unsigned-integer" };
const char *const coffer__mtx_symmetry_names[4] = { "general", "symmetric", "skew-symmetric", "hermitian" };

static const char banner[] = "%%MatrixMarket";
#define BANNER_LEN (sizeof banner - 1)

/* Text between blanks, on the line that is being read. */
typedef struct words {
    const char *at, *end;
} words;

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v');
}

/* False at the end of the line. */
static bool take_word(const char **word, size_t *len, words *line)
{
    while (line->at < line->end && is_blank(*line->at))
        line->at++;
    *word = line->at;
    while (line->at < line->end && !is_blank(*line->at))
        line->at++;
    *len = (size_t)(line->at - *word);
    return *len > 0;
}

bool coffer__mtx_probe(const uint8_t *head, size_t len)
{
    return len >= BANNER_LEN && strncasecmp((const char *)head, banner, BANNER_LEN) == 0;
}

static coffer_status complain(const coffer__mtx *mtx, coffer_status code, const char *what, coffer_error *err)
{
    return coffer__fail(err, code, coffer__text_window_offset(&mtx->window), "line %" PRIu64 ": %s",
                        mtx->line, what);
}

static coffer_status next_line(words *out, bool *more, coffer__mtx *mtx, coffer_error *err)
{
    char *line;
    size_t len;
    coffer_status status = coffer__text_window_line(&line, &len, &mtx->window, err);
    if (status)
        return status;
    mtx->line++;
    *more = line != NULL;
    *out = (words){ line, line ? line + len : line };
    return COFFER_OK;
}

/* The next line that is neither empty nor a comment. */
static coffer_status next_numbers(words *out, bool *more, coffer__mtx *mtx, coffer_error *err)
{
    for (;;) {
        coffer_status status = next_line(out, more, mtx, err);
        if (status || !*more)
            return status;
        while (out->at < out->end && is_blank(*out->at))
            out->at++;
        if (out->at < out->end && *out->at != '%')
            return COFFER_OK;
    }
}

/* Index of the word in the list of names, or count. */
static unsigned find_name(words *line, const char *const *names, unsigned count)
{
    const char *word;
    size_t len;
    unsigned i = 0;
    if (!take_word(&word, &len, line))
        return count;
    while (i < count && (strlen(names[i]) != len || strncasecmp(names[i], word, len) != 0))
        i++;
    return i;
}

static coffer_status read_banner(coffer__mtx *mtx, coffer_error *err)
{
    static const char *const objects[] = { "matrix" }, *const layouts[] = { "coordinate", "array" };
    static const char *const banners[] = { banner };
    words line;
    bool more;
    coffer_status status = next_line(&line, &more, mtx, err);
    if (status)
        return status;
    if (!more || find_name(&line, banners, 1) != 0)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "not a Matrix Market file: it does not begin with %s",
                            banner);
    if (find_name(&line, objects, 1) != 0)
        return complain(mtx, COFFER_E_UNSUPPORTED, "not a matrix; vectors and graphs have no standard form",
                        err);
    unsigned layout = find_name(&line, layouts, 2);
    unsigned field = find_name(&line, coffer__mtx_field_names, COFFER__MTX_FIELDS);
    unsigned symmetry = find_name(&line, coffer__mtx_symmetry_names, 4);
    if (layout == 2)
        return complain(mtx, COFFER_E_BAD_VALUE, "expected coordinate or array", err);
    if (field == COFFER__MTX_FIELDS)
        return complain(mtx, COFFER_E_BAD_VALUE,
                        "expected real, integer, unsigned-integer, complex or pattern", err);
    if (symmetry == 4)
        return complain(mtx, COFFER_E_BAD_VALUE, "expected general, symmetric, skew-symmetric or hermitian",
                        err);
    mtx->coordinate = layout == 0;
    mtx->field = (coffer__mtx_field)field;
    mtx->symmetry = (coffer__mtx_symmetry)symmetry;
    if (!mtx->coordinate && mtx->field == COFFER__MTX_PATTERN)
        return complain(mtx, COFFER_E_BAD_VALUE, "an array cannot be a pattern", err);
    if (mtx->symmetry == COFFER__MTX_HERMITIAN && mtx->field != COFFER__MTX_COMPLEX)
        return complain(mtx, COFFER_E_BAD_VALUE, "hermitian, but not complex", err);
    if (mtx->symmetry == COFFER__MTX_SKEW &&
        (mtx->field == COFFER__MTX_PATTERN || mtx->field == COFFER__MTX_UNSIGNED))
        return complain(mtx, COFFER_E_BAD_VALUE, "a pattern or unsigned integers cannot be skew-symmetric",
                        err);
    return COFFER_OK;
}

static bool take_count(uint64_t *out, words *line)
{
    const char *word;
    size_t len;
    coffer__number number;
    return take_word(&word, &len, line) && coffer__number_parse(&number, word, len) &&
           number.kind == COFFER__NUMBER_U64 && coffer__number_as_u64(out, &number, UINT64_MAX);
}

static bool at_end(words *line)
{
    const char *word;
    size_t len;
    return !take_word(&word, &len, line);
}

/* The number of values that the file of an array has. */
static bool count_values(uint64_t *out, const coffer__mtx *mtx)
{
    uint64_t all;
    if (!coffer__mul_u64(&all, mtx->rows, mtx->cols))
        return false;
    uint64_t diagonal = mtx->symmetry == COFFER__MTX_SKEW ? 0 : mtx->rows;
    *out = mtx->symmetry == COFFER__MTX_GENERAL ? all : (all - mtx->rows) / 2 + diagonal;
    return true;
}

static coffer_status read_sizes(coffer__mtx *mtx, coffer_error *err)
{
    words line;
    bool more;
    uint64_t fewest;
    coffer_status status = next_numbers(&line, &more, mtx, err);
    if (status)
        return status;
    if (!more || !take_count(&mtx->rows, &line) || !take_count(&mtx->cols, &line) ||
        (mtx->coordinate && !take_count(&mtx->entries, &line)) || !at_end(&line))
        return complain(mtx, COFFER_E_BAD_VALUE,
                        mtx->coordinate ? "expected ROWS COLS ENTRIES" : "expected ROWS COLS", err);
    if (mtx->symmetry != COFFER__MTX_GENERAL && mtx->rows != mtx->cols)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "a %s matrix of %" PRIu64 " × %" PRIu64 " is not square",
                            coffer__mtx_symmetry_names[mtx->symmetry], mtx->rows, mtx->cols);
    if (!mtx->coordinate && !count_values(&mtx->entries, mtx))
        return complain(mtx, COFFER_E_BAD_VALUE, "a matrix of more than 2^64 values", err);
    /* "1 1\n" or "1\n"; the last line may lack its end. */
    uint64_t left = coffer_source_size(mtx->window.src) - coffer__text_window_offset(&mtx->window);
    if (!coffer__mul_u64(&fewest, mtx->entries, mtx->coordinate ? 4 : 2) || (fewest > 0 && fewest - 1 > left))
        return coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE,
                            "%" PRIu64 " entries do not fit into the %" PRIu64 " bytes after line %" PRIu64,
                            mtx->entries, left, mtx->line);
    return COFFER_OK;
}

coffer_status coffer__mtx_open(coffer__mtx *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer__mtx mtx = { 0 };
    coffer_status status = coffer__text_window_open(&mtx.window, src, limits->string_bytes, err);
    if (status)
        return status;
    status = read_banner(&mtx, err);
    if (!status)
        status = read_sizes(&mtx, err);
    if (status) {
        coffer__mtx_close(&mtx);
        return status;
    }
    mtx.row = mtx.symmetry == COFFER__MTX_SKEW ? 1 : 0;
    *out = mtx;
    return COFFER_OK;
}

void coffer__mtx_close(coffer__mtx *mtx)
{
    coffer__text_window_close(&mtx->window);
}

/* Fortran writes the exponent of a double with a D: "1.5D+03". */
static bool parse_fortran(coffer__number *out, const char *word, size_t len)
{
    char text[64];
    if (len >= sizeof text)
        return false;
    for (size_t i = 0; i < len; i++)
        text[i] = word[i] == 'D' || word[i] == 'd' ? 'e' : word[i];
    return coffer__number_parse(out, text, len);
}

static coffer_status take_value(coffer__number *out, words *line, const coffer__mtx *mtx, coffer_error *err)
{
    const char *word;
    size_t len;
    if (!take_word(&word, &len, line))
        return complain(mtx, COFFER_E_TRUNCATED, "a value is missing", err);
    bool whole = mtx->field == COFFER__MTX_INTEGER || mtx->field == COFFER__MTX_UNSIGNED;
    bool good = coffer__number_parse(out, word, len) || parse_fortran(out, word, len);
    if (!good || (whole && out->kind == COFFER__NUMBER_F64) ||
        (mtx->field == COFFER__MTX_UNSIGNED && out->kind == COFFER__NUMBER_I64))
        return coffer__fail(err, COFFER_E_BAD_VALUE, coffer__text_window_offset(&mtx->window),
                            "line %" PRIu64 ": \"%.*s\" is not %s", mtx->line, (int)(len < 40 ? len : 40),
                            word,
                            mtx->field == COFFER__MTX_UNSIGNED ? "an integer from 0 on"
                            : whole                            ? "an integer"
                                                               : "a number");
    /* "inf" is a value; digits that become one are a number that is lost. */
    if (out->kind == COFFER__NUMBER_F64 && isinf(out->as.f64) && memchr(word, 'n', len) == NULL &&
        memchr(word, 'N', len) == NULL)
        return coffer__fail(err, COFFER_E_BAD_VALUE, coffer__text_window_offset(&mtx->window),
                            "line %" PRIu64 ": %.*s does not fit a 64-bit float", mtx->line,
                            (int)(len < 40 ? len : 40), word);
    return COFFER_OK;
}

static coffer_status take_index(uint64_t *out, words *line, uint64_t count, const coffer__mtx *mtx,
                                coffer_error *err)
{
    uint64_t index;
    if (!take_count(&index, line))
        return complain(mtx, COFFER_E_BAD_VALUE, "expected a row and a column, two integers", err);
    if (index == 0 || index > count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, coffer__text_window_offset(&mtx->window),
                            "line %" PRIu64 ": index %" PRIu64 ", the matrix is of %" PRIu64 " × %" PRIu64,
                            mtx->line, index, mtx->rows, mtx->cols);
    *out = index - 1;
    return COFFER_OK;
}

/* Moves to the position of the next value of an array. */
static void step(coffer__mtx *mtx)
{
    if (++mtx->row < mtx->rows)
        return;
    mtx->col++;
    mtx->row = mtx->symmetry == COFFER__MTX_GENERAL ? 0 : mtx->col + (mtx->symmetry == COFFER__MTX_SKEW);
}

static coffer_status take_place(coffer__mtx_entry *out, words *line, coffer__mtx *mtx, coffer_error *err)
{
    if (!mtx->coordinate) {
        out->row = mtx->row;
        out->col = mtx->col;
        step(mtx);
        return COFFER_OK;
    }
    coffer_status status = take_index(&out->row, line, mtx->rows, mtx, err);
    return status ? status : take_index(&out->col, line, mtx->cols, mtx, err);
}

static coffer_status expect_no_more(coffer__mtx *mtx, coffer_error *err)
{
    words line;
    bool more;
    coffer_status status = next_numbers(&line, &more, mtx, err);
    if (!status && more)
        status = coffer__fail(err, COFFER_E_TRAILING_BYTES, coffer__text_window_offset(&mtx->window),
                              "line %" PRIu64 ": more than the %" PRIu64 " entries that were announced",
                              mtx->line, mtx->entries);
    return status;
}

coffer_status coffer__mtx_next(bool *more, coffer__mtx_entry *out, coffer__mtx *mtx, coffer_error *err)
{
    words line;
    *more = mtx->read < mtx->entries;
    if (!*more)
        return expect_no_more(mtx, err);
    bool has_line;
    coffer_status status = next_numbers(&line, &has_line, mtx, err);
    if (status)
        return status;
    if (!has_line)
        return coffer__fail(err, COFFER_E_TRUNCATED, coffer_source_size(mtx->window.src),
                            "the file ends after %" PRIu64 " of %" PRIu64 " entries", mtx->read,
                            mtx->entries);
    out->line = mtx->line;
    out->real = coffer__number_u64(1);
    out->imag = coffer__number_u64(0);
    status = take_place(out, &line, mtx, err);
    if (!status && mtx->field != COFFER__MTX_PATTERN)
        status = take_value(&out->real, &line, mtx, err);
    if (!status && mtx->field == COFFER__MTX_COMPLEX)
        status = take_value(&out->imag, &line, mtx, err);
    if (!status && !at_end(&line))
        status = complain(mtx, COFFER_E_BAD_VALUE, "more numbers than an entry has", err);
    if (!status)
        mtx->read++;
    return status;
}
