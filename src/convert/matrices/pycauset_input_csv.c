/* Rows out of lines of numbers. The first pass finds shape and type, the second gives the rows: from memory
 * when the numbers of the first pass fit there, else from the text again. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"
#include "outside/text/number.h"
#include "outside/text/text_window.h"

#include <inttypes.h>
#include <string.h>

typedef struct lines {
    coffer__text_window window;
    char delimiter; /* ' ' matches any blanks */
    bool skip_first;
    bool at_first;
    uint64_t line;
    const char *at, *end; /* what is left of the line */
    uint64_t field;
} lines;

/* Numbers of a text that need not be read again. */
typedef struct kept_numbers {
    coffer__number *items; /* NULL: there were too many */
    size_t count, capacity;
    uint64_t most;
} kept_numbers;

/* Properties that all numbers share. */
typedef struct survey {
    uint64_t rows, cols;
    bool has_reals, has_negatives, has_large;
    kept_numbers kept;
} survey;

/* The state of an input. */
typedef struct csv_rows {
    lines text;
    kept_numbers kept;
    size_t next; /* of those kept */
} csv_rows;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The first of tab, semicolon and comma that the first line with something in it has; else blanks. */
static coffer_status detect_delimiter(char *out, const coffer__convert_job *job, coffer_error *err)
{
    static const char candidates[] = "\t;,";
    coffer__text_window window;
    char *line;
    size_t len;
    bool found = false;
    *out = ',';
    coffer_status status = coffer__text_window_open(&window, job->in, job->limits.string_bytes, err);
    if (status)
        return status;
    do {
        status = coffer__text_window_line(&line, &len, &window, err);
        while (!status && line && len > 0 && is_blank(*line) && *line != '\t') {
            line++;
            len--;
        }
        found = !status && line && len > 0 && *line != '#';
    } while (!status && line && !found);
    for (size_t i = 0; found && candidates[i]; i++) {
        if (memchr(line, candidates[i], len)) {
            *out = candidates[i];
            found = false;
        }
    }
    if (found && memchr(line, ' ', len))
        *out = ' ';
    coffer__text_window_close(&window);
    return status;
}

static coffer_status open_lines(lines *out, const coffer__convert_job *job, coffer_error *err)
{
    memset(out, 0, sizeof *out);
    coffer_status status = coffer__job_has(job, "delimiter")
                               ? coffer__pycauset_delimiter(&out->delimiter, job, err)
                               : detect_delimiter(&out->delimiter, job, err);
    if (status)
        return status;
    out->skip_first = coffer__job_has(job, "header");
    out->at_first = true;
    return coffer__text_window_open(&out->window, job->in, job->limits.string_bytes, err);
}

/* False at the end of the line. */
static bool take_field(const char **text, size_t *len, lines *from)
{
    if (from->delimiter == ' ') {
        while (from->at < from->end && is_blank(*from->at))
            from->at++;
        if (from->at == from->end)
            return false;
        *text = from->at;
        while (from->at < from->end && !is_blank(*from->at))
            from->at++;
        *len = (size_t)(from->at - *text);
        from->field++;
        return true;
    }
    if (!from->at)
        return false;
    const char *stop = memchr(from->at, from->delimiter, (size_t)(from->end - from->at));
    const char *start = from->at, *end = stop ? stop : from->end;
    from->at = stop ? stop + 1 : NULL;
    while (start < end && is_blank(*start))
        start++;
    while (start < end && is_blank(end[-1]))
        end--;
    if (end - start >= 2 && *start == '"' && end[-1] == '"') {
        start++;
        end--;
    }
    *text = start;
    *len = (size_t)(end - start);
    from->field++;
    return true;
}

/* "-0" is a zero with a sign, which no integer has. */
static bool parse_field(coffer__number *out, const char *text, size_t len)
{
    size_t zeros = 1;
    while (zeros < len && text[zeros] == '0')
        zeros++;
    if (len > 1 && text[0] == '-' && zeros == len) {
        *out = coffer__number_f64(-0.0);
        return true;
    }
    return coffer__number_parse(out, text, len);
}

/* A first line without a single number says what the columns are called. */
static bool is_header(lines *from)
{
    const char *text, *start = from->at;
    size_t len;
    coffer__number number;
    bool found = false;
    while (!found && take_field(&text, &len, from))
        found = parse_field(&number, text, len);
    from->at = start;
    from->field = 0;
    return !found;
}

/* The next line with numbers: not empty, no comment, not the header. */
static coffer_status next_line(bool *more, lines *from, coffer_error *err)
{
    for (;;) {
        char *line;
        size_t len;
        coffer_status status = coffer__text_window_line(&line, &len, &from->window, err);
        *more = line != NULL;
        if (status || !line)
            return status;
        from->line++;
        from->at = line;
        from->end = line + len;
        from->field = 0;
        while (len > 0 && is_blank(*line)) {
            line++;
            len--;
        }
        if (len == 0 || *line == '#')
            continue;
        bool first = from->at_first;
        from->at_first = false;
        if (!first || !(from->skip_first || is_header(from)))
            return COFFER_OK;
    }
}

static coffer_status fail_field(const lines *from, const char *text, size_t len, coffer_error *err)
{
    if (len == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, coffer__text_window_offset(&from->window),
                            "line %" PRIu64 ", field %" PRIu64 " is empty; write nan for an unknown value",
                            from->line, from->field);
    return coffer__fail(err, COFFER_E_BAD_VALUE, coffer__text_window_offset(&from->window),
                        "line %" PRIu64 ", field %" PRIu64
                        ": \"%.*s\" is not a number (--delimiter sets the character between numbers)",
                        from->line, from->field, (int)(len < 40 ? len : 40), text);
}

static coffer_status keep_number(kept_numbers *kept, const coffer__number *number, coffer_error *err)
{
    if (kept->count == kept->most) {
        coffer__free(kept->items);
        *kept = (kept_numbers){ .items = NULL };
        return COFFER_OK;
    }
    coffer_status status =
        coffer__array_reserve_one(&kept->items, &kept->capacity, kept->count, sizeof *kept->items, err);
    if (!status)
        kept->items[kept->count++] = *number;
    return status;
}

static coffer_status survey_line(survey *out, lines *from, coffer_error *err)
{
    const char *text;
    size_t len;
    while (take_field(&text, &len, from)) {
        coffer__number number;
        if (!parse_field(&number, text, len))
            return fail_field(from, text, len, err);
        out->has_reals |= number.kind == COFFER__NUMBER_F64;
        out->has_negatives |= number.kind == COFFER__NUMBER_I64;
        out->has_large |= number.kind == COFFER__NUMBER_U64 && number.as.u64 > INT64_MAX;
        coffer_status status = out->kept.most ? keep_number(&out->kept, &number, err) : COFFER_OK;
        if (status)
            return status;
    }
    if (out->rows == 0)
        out->cols = from->field;
    if (from->field != out->cols)
        return coffer__fail(err, COFFER_E_INCONSISTENT, coffer__text_window_offset(&from->window),
                            "line %" PRIu64 " has %" PRIu64 " numbers, those before it %" PRIu64, from->line,
                            from->field, out->cols);
    out->rows++;
    return COFFER_OK;
}

static coffer_status survey_file(survey *out, const coffer__convert_job *job, coffer_error *err)
{
    lines from;
    bool more = true;
    memset(out, 0, sizeof *out);
    out->kept.most = job->limits.memory_bytes / 4 / sizeof *out->kept.items;
    coffer_status status = open_lines(&from, job, err);
    if (status)
        return status;
    while (!status && more) {
        status = next_line(&more, &from, err);
        if (!status && more)
            status = survey_line(out, &from, err);
    }
    coffer__text_window_close(&from.window);
    if (!status && out->rows == 0)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "no line with numbers");
    return status;
}

static void store(uint8_t *to, coffer_dtype dtype, const coffer__number *number)
{
    uint64_t bits = number->as.u64; /* of an integer, signed or not */
    if (dtype == COFFER_DTYPE_F64) {
        double real = coffer__number_as_f64(number);
        memcpy(&bits, &real, sizeof bits);
    }
    coffer__store_u64(to, bits);
}

static coffer_status read_rows(void *out, uint64_t count, coffer__pycauset_input *input, coffer_error *err)
{
    csv_rows *rows = input->state;
    lines *from = &rows->text;
    uint8_t *to = out;
    for (uint64_t i = 0; rows->kept.items && i < count * input->cols; i++, to += 8)
        store(to, input->dtype, &rows->kept.items[rows->next++]);
    for (uint64_t row = 0; !rows->kept.items && row < count; row++) {
        const char *text;
        size_t len;
        bool more;
        coffer_status status = next_line(&more, from, err);
        if (status)
            return status;
        for (uint64_t col = 0; col < input->cols; col++, to += 8) {
            coffer__number number;
            /* The survey has seen all this; the file may have changed since. */
            if (!more || !take_field(&text, &len, from) || !parse_field(&number, text, len))
                return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                                    "line %" PRIu64 " changed while it was read", from->line);
            store(to, input->dtype, &number);
        }
    }
    return COFFER_OK;
}

static void close_state(void *state)
{
    csv_rows *rows = state;
    if (!rows)
        return;
    coffer__text_window_close(&rows->text.window);
    coffer__free(rows->kept.items);
    coffer__free(rows);
}

coffer_status coffer__pycauset_input_csv(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    survey found;
    csv_rows *rows = NULL;
    coffer_status status = survey_file(&found, job, err);
    if (!status && !(rows = coffer__calloc(1, sizeof *rows)))
        status = coffer__fail_no_memory(err, sizeof *rows);
    if (!status)
        status = open_lines(&rows->text, job, err);
    if (status) {
        coffer__free(found.kept.items);
        coffer__free(rows);
        return status;
    }
    rows->kept = found.kept;
    bool mixed = found.has_large && found.has_negatives;
    *out = (coffer__pycauset_input){
        .rows = found.rows,
        .cols = found.cols,
        .is_vector = found.cols == 1,
        .dtype = found.has_reals || mixed ? COFFER_DTYPE_F64
                 : found.has_large        ? COFFER_DTYPE_U64
                                          : COFFER_DTYPE_I64,
        .state = rows,
        .read = read_rows,
        .close = close_state,
    };
    return COFFER_OK;
}
