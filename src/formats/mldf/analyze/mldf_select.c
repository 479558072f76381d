/* Samples that meet conditions such as "label=3". */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/real.h"
#include "base/work.h"
#include "formats/mldf/mldf_private.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP 4096 /* samples between two calls of the progress */

COFFER__INIT_FUNCTION(coffer_mldf_select_opts, COFFER_MLDF_SELECT_OPTS_INIT)

typedef enum relation {
    PRESENT,
    ABSENT,
    EQUAL,
    NOT_EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    MATCHES,
    NOT_MATCHES
} relation;

/* The part of a value that is compared. */
typedef enum property { VALUE, SIZE, WIDTH, HEIGHT, CHANNELS, SECONDS, SAMPLE_RATE } property;

typedef struct condition {
    size_t field;
    property of;
    relation op;
    bool is_text, is_int; /* otherwise a real number */
    const char *text;
    size_t text_len;
    int64_t whole;
    double real;
} condition;

/* ---- Reading a condition ---- */

static const char *find_operator(const char *text, relation *op, size_t *len)
{
    static const struct {
        const char *sign;
        relation op;
    } signs[] = { { "==", EQUAL },      { "!=", NOT_EQUAL },     { "!~", NOT_MATCHES },
                  { "<=", LESS_EQUAL }, { ">=", GREATER_EQUAL }, { "=", EQUAL },
                  { "<", LESS },        { ">", GREATER },        { "~", MATCHES } };
    for (const char *at = text; *at; at++) {
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
            size_t sign_len = strlen(signs[i].sign);
            if (at > text && strncmp(at, signs[i].sign, sign_len) == 0) {
                *op = signs[i].op;
                *len = sign_len;
                return at;
            }
        }
    }
    return NULL;
}

static bool find_named(size_t *out, const coffer_mldf *set, const char *name, size_t len)
{
    for (size_t i = 0; i < set->schema.count; i++) {
        const char *field = set->schema.fields[i].name;
        if (strlen(field) == len && memcmp(field, name, len) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* "label", or "image.width". */
static bool find_subject(condition *out, const coffer_mldf *set, const char *name, size_t len)
{
    static const struct {
        const char *name;
        property of;
    } properties[] = { { "size", SIZE },         { "width", WIDTH },     { "height", HEIGHT },
                       { "channels", CHANNELS }, { "seconds", SECONDS }, { "sample_rate", SAMPLE_RATE } };
    out->of = VALUE;
    if (find_named(&out->field, set, name, len))
        return true;
    size_t dot = len;
    while (dot && name[dot - 1] != '.')
        dot--;
    for (size_t i = 0; dot > 1 && i < sizeof properties / sizeof *properties; i++) {
        size_t property_len = strlen(properties[i].name);
        if (len - dot == property_len && memcmp(name + dot, properties[i].name, property_len) == 0) {
            out->of = properties[i].of;
            return find_named(&out->field, set, name, dot - 1);
        }
    }
    return false;
}

static coffer_status read_number(condition *out, const char *condition_text, coffer_error *err)
{
    char *end = NULL;
    errno = 0;
    out->whole = strtoll(out->text, &end, 10);
    out->is_int = out->text_len && end == out->text + out->text_len && errno == 0;
    if (!out->text_len || (!out->is_int && !coffer__parse_f64(&out->real, out->text, out->text_len)))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "condition \"%s\": \"%s\" is not a number", condition_text, out->text);
    if (out->is_int)
        out->real = (double)out->whole;
    return COFFER_OK;
}

static coffer_status check_type(condition *out, const coffer_mldf *set, const char *text, coffer_error *err)
{
    const coffer_mldf_field *field = &set->schema.fields[out->field];
    bool number =
        out->of != VALUE || field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT;
    if (out->op == PRESENT || out->op == ABSENT)
        return COFFER_OK;
    out->is_text = field->kind == COFFER_MLDF_ENTRY_TEXT || field->type == COFFER_MLDF_JSON;
    if (number && (out->op == MATCHES || out->op == NOT_MATCHES))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "condition \"%s\": ~ compares texts with a pattern", text);
    if (number) {
        out->is_text = false;
        return read_number(out, text, err);
    }
    if (out->is_text)
        return COFFER_OK;
    return coffer__fail(
        err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
        "condition \"%s\": field \"%s\" is not a number or a text; its .size, .width, .height, "
        ".channels, .seconds and .sample_rate can be compared",
        text, field->name);
}

static coffer_status read_condition(condition *out, const coffer_mldf *set, const char *text,
                                    coffer_error *err)
{
    size_t sign = 0;
    relation op = PRESENT;
    const char *at = find_operator(text, &op, &sign), *name = text, *end = at ? at : text + strlen(text);
    if (!at && *text == '!') {
        op = ABSENT;
        name++;
    }
    const char *value = end + sign;
    while (end > name && end[-1] == ' ')
        end--;
    while (*value == ' ')
        value++;
    *out = (condition){ .op = op, .text = value, .text_len = strlen(value) };
    if (!find_subject(out, set, name, (size_t)(end - name)))
        return coffer__fail(
            err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
            "condition \"%s\": no field \"%.*s\"; write FIELD=VALUE, with = != < <= > >= or ~", text,
            (int)(end - name), name);
    return check_type(out, set, text, err);
}

/* ---- Testing a sample ---- */

static bool holds(relation op, int order)
{
    switch (op) {
    case EQUAL:
        return order == 0;
    case NOT_EQUAL:
        return order != 0;
    case LESS:
        return order < 0;
    case LESS_EQUAL:
        return order <= 0;
    case GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

static double property_of(const coffer_mldf_entry *entry, property of)
{
    switch (of) {
    case WIDTH:
        return entry->width;
    case HEIGHT:
        return entry->height;
    case CHANNELS:
        return entry->channels;
    case SECONDS:
        return entry->sample_rate ? (double)entry->num_samples / entry->sample_rate : 0;
    case SAMPLE_RATE:
        return entry->sample_rate;
    default:
        return entry->size;
    }
}

static bool number_holds(const condition *what, const coffer_mldf_field *field,
                         const coffer_mldf_entry *entry)
{
    if (what->of == VALUE && field->kind == COFFER_MLDF_ENTRY_INT && what->is_int)
        return holds(what->op, (entry->i64 > what->whole) - (entry->i64 < what->whole));
    double value = what->of != VALUE                      ? property_of(entry, what->of)
                   : field->kind == COFFER_MLDF_ENTRY_INT ? (double)entry->i64
                                                          : entry->f64;
    if (value != value || what->real != what->real) /* NaN equals NaN, and is neither less nor more */
        return (what->op == EQUAL || what->op == LESS_EQUAL || what->op == GREATER_EQUAL)
                   ? (value != value && what->real != what->real)
                   : what->op == NOT_EQUAL && !(value != value && what->real != what->real);
    return holds(what->op, (value > what->real) - (value < what->real));
}

static coffer_status text_holds(bool *out, const condition *what, const coffer_mldf *set, uint64_t sample,
                                coffer_bytes *bytes, coffer_error *err)
{
    coffer_status status = coffer_mldf_get_text(bytes, set, sample, what->field, err);
    if (status)
        return status;
    const char *text = (const char *)bytes->data;
    if (what->op == MATCHES || what->op == NOT_MATCHES) {
        *out = (fnmatch(what->text, text, 0) == 0) == (what->op == MATCHES);
        return COFFER_OK;
    }
    size_t shorter = bytes->size < what->text_len ? bytes->size : what->text_len;
    int order = memcmp(text, what->text, shorter);
    if (order == 0)
        order = (bytes->size > what->text_len) - (bytes->size < what->text_len);
    *out = holds(what->op, order);
    return COFFER_OK;
}

/* An absent value meets no comparison but !=. */
static coffer_status test_sample(bool *out, const condition *what, const coffer_mldf *set, uint64_t sample,
                                 coffer_bytes *bytes, coffer_error *err)
{
    const coffer_mldf_field *field = &set->schema.fields[what->field];
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, set, sample, what->field, err);
    if (status)
        return status;
    if (what->op == PRESENT || what->op == ABSENT) {
        *out = entry.present == (what->op == PRESENT);
        return COFFER_OK;
    }
    if (!entry.present) {
        *out = what->op == NOT_EQUAL || what->op == NOT_MATCHES;
        return COFFER_OK;
    }
    if (what->is_text)
        return text_holds(out, what, set, sample, bytes, err);
    *out = number_holds(what, field, &entry);
    return COFFER_OK;
}

static coffer_status select_all(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                const condition *conditions, size_t condition_count,
                                const coffer_progress *progress, coffer_error *err)
{
    size_t capacity = 0, found = 0;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t *list = NULL;
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && i < set->header.samples; i++) {
        bool keep = true;
        for (size_t c = 0; !status && keep && c < condition_count; c++)
            status = test_sample(&keep, &conditions[c], set, i, &bytes, err);
        if (!status && keep)
            status = coffer__array_reserve_one(&list, &capacity, found, sizeof *list, err);
        if (!status && keep)
            list[found++] = i;
        if (!status && (i + 1) % STEP == 0)
            status = coffer__progress_step(progress, i + 1, set->header.samples, err);
    }
    coffer_free(bytes.data);
    if (status) {
        coffer__free(list);
        return status;
    }
    *samples = list;
    *count = found;
    return COFFER_OK;
}

coffer_status coffer_mldf_select(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                 const char *const *conditions, size_t condition_count,
                                 const coffer_mldf_select_opts *opts, coffer_error *err)
{
    coffer_mldf_select_opts options = COFFER_MLDF_SELECT_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    /* Nothing in a file bounds the number of samples without rows. */
    if (set->schema.count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the set has no fields");
    condition *parsed = coffer__calloc(condition_count + 1, sizeof *parsed);
    if (!parsed)
        return coffer__fail_no_memory(err, condition_count * sizeof *parsed);
    for (size_t i = 0; !status && i < condition_count; i++)
        status = read_condition(&parsed[i], set, conditions[i], err);
    if (!status)
        status = select_all(samples, count, set, parsed, condition_count, options.progress, err);
    coffer__free(parsed);
    return status;
}
