/* Shared by the verbs for matrices. */
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int pycauset_open_array(coffer_source **out, const cli_args *args, const char *path, coffer_source *src)
{
    static const char *const names[] = { "dataset", "slice" };
    coffer_setting settings[2];
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    const coffer_format *format = NULL;
    term_progress bar;
    for (size_t i = 0; i < 2; i++)
        if (cli_has(args, names[i]))
            settings[opts.setting_count++] = (coffer_setting){ names[i], cli_value(args, names[i]) };
    if (coffer_identify(&format, src, NULL) == COFFER_OK)
        return opts.setting_count ? cli_usage(args, "--%s is for files of other programs", settings[0].name)
                                  : CLI_OK;
    opts.settings = settings;
    term_progress_start(&bar, "reading", NULL);
    opts.progress = &bar.progress;
    coffer_status status = coffer_convert_to_matrix(out, src, &opts, &err);
    term_progress_end(&bar);
    if (status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(args, "%s: %s", path, err.text);
    return status ? cli_fail(path, &err, "") : CLI_OK;
}

int pycauset_with_matrix(const cli_args *args, coffer_source *src, uint64_t generation,
                         int (*work)(const cli_args *args, const coffer_pycauset *matrix))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    coffer_source *scratch = NULL;
    int result = pycauset_open_array(&scratch, args, cli_operand(args, 0), src);
    if (result)
        return result;
    opts.generation = generation;
    coffer_status status = coffer_pycauset_open(&matrix, scratch ? scratch : src, &opts, &err);
    if (status)
        result = cli_fail(cli_operand(args, 0), &err,
                          status == COFFER_E_NOT_FOUND ? "'coffer log' lists the generations" : NULL);
    else
        result = work(args, matrix);
    coffer_pycauset_close(matrix);
    coffer_source_close(scratch);
    return result;
}

/* ---- A fallback to an older state ---- */

static int report_fallback(const char *path, coffer_source *src)
{
    coffer_pycauset *matrix = NULL;
    if (coffer_pycauset_open(&matrix, src, NULL, NULL))
        return CLI_OK; /* the verb says why */
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    int status = CLI_OK;
    if (info->damaged_slot) {
        cli_warn(path, "slot %c is damaged: this is generation %" PRIu64 ", %s; %s", info->damaged_slot,
                 info->generation,
                 info->newer_lost ? "and a newer one may be lost" : "and the one before is not named",
                 "'coffer check' shows the damage");
        status = CLI_FINDINGS;
    }
    coffer_pycauset_close(matrix);
    return status;
}

const cli_format_notice cli_pycauset_notice = { "pycauset", report_fallback };

/* ---- Arguments ---- */

static bool parse_integer(pycauset_number *out, const char *text)
{
    char *end;
    bool negative = text[0] == '-';
    if (!isdigit((unsigned char)text[negative]))
        return false;
    errno = 0;
    int64_t low = negative ? strtoll(text, &end, 10) : 0;
    uint64_t high = negative ? 0 : strtoull(text, &end, 10);
    if (*end || errno)
        return false;
    out->dtype = negative ? COFFER_DTYPE_I64 : COFFER_DTYPE_U64;
    memcpy(out->bytes, negative ? (const void *)&low : (const void *)&high, sizeof low);
    return true;
}

bool pycauset_parse_number(pycauset_number *out, const char *text)
{
    double parts[2] = { 0, 0 };
    char *end;
    bool truth = strcmp(text, "true") == 0;
    if (truth || strcmp(text, "false") == 0)
        return parse_integer(out, truth ? "1" : "0");
    if (parse_integer(out, text))
        return true;
    parts[0] = strtod(text, &end);
    if (end == text || isspace((unsigned char)text[0]))
        return false;
    out->dtype = COFFER_DTYPE_F64;
    if (*end == '+' || *end == '-') {
        char *rest;
        parts[1] = strtod(end, &rest);
        if (rest == end)
            return false;
        end = rest;
        out->dtype = COFFER_DTYPE_C128;
    }
    if (*end == 'i' || *end == 'j') {
        if (out->dtype != COFFER_DTYPE_C128) {
            parts[1] = parts[0];
            parts[0] = 0;
        }
        out->dtype = COFFER_DTYPE_C128;
        end++;
    } else if (out->dtype == COFFER_DTYPE_C128) {
        return false;
    }
    memcpy(out->bytes, parts, sizeof parts);
    return !*end;
}

int64_t pycauset_now(void)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    char *end;
    if (fixed && isdigit((unsigned char)*fixed)) {
        long long seconds = strtoll(fixed, &end, 10);
        if (!*end)
            return seconds;
    }
    return (int64_t)time(NULL);
}

const char *pycauset_element_type(const coffer_pycauset_info *info)
{
    return info->dtype == COFFER_DTYPE_NONE ? "mixed" : coffer_dtype_name(info->dtype);
}

/* ---- Metadata as text and JSON ---- */

static void put_hex(coffer__buffer *out, const coffer_pycauset_value *value)
{
    static const char digits[] = "0123456789abcdef";
    size_t len;
    const char *bytes = coffer_pycauset_value_text(value, &len);
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)bytes[i];
        coffer__buffer_append(out, (char[2]){ digits[byte >> 4], digits[byte & 15] }, 2);
    }
}

static void put_bytes_json(coffer__json_writer *json, const coffer_pycauset_value *value)
{
    coffer__buffer hex = COFFER__BUFFER_INIT;
    put_hex(&hex, value);
    json->out->failed |= hex.failed;
    coffer__json_string_len(json, coffer__buffer_text(&hex), hex.len);
    coffer__buffer_free(&hex);
}

static void put_children(coffer__json_writer *json, const coffer_pycauset_value *value, bool is_map)
{
    for (size_t i = 0; i < coffer_pycauset_value_count(value); i++) {
        size_t len;
        if (is_map) {
            const char *key = coffer_pycauset_value_key_at(value, i, &len);
            coffer__json_key_len(json, key, len);
        }
        pycauset_put_json(json, coffer_pycauset_value_at(value, i));
    }
}

/* Recurses as deep as the format lets values nest. */
void pycauset_put_json(coffer__json_writer *json, const coffer_pycauset_value *value)
{
    size_t len;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        coffer__json_write_bool(json, coffer_pycauset_value_bool(value));
        break;
    case COFFER_PYCAUSET_I64:
        coffer__json_write_i64(json, coffer_pycauset_value_i64(value));
        break;
    case COFFER_PYCAUSET_U64:
        coffer__json_write_u64(json, coffer_pycauset_value_u64(value));
        break;
    case COFFER_PYCAUSET_F64:
        coffer__json_write_f64(json, coffer_pycauset_value_f64(value));
        break;
    case COFFER_PYCAUSET_STRING: {
        const char *text = coffer_pycauset_value_text(value, &len);
        coffer__json_string_len(json, text, len);
        break;
    }
    case COFFER_PYCAUSET_BYTES:
        put_bytes_json(json, value);
        break;
    case COFFER_PYCAUSET_ARRAY:
        coffer__json_open_array(json);
        put_children(json, value, false);
        coffer__json_close_array(json);
        break;
    case COFFER_PYCAUSET_MAP:
        coffer__json_open_object(json);
        put_children(json, value, true);
        coffer__json_close_object(json);
        break;
    }
}

void pycauset_put_text(coffer__buffer *out, const coffer_pycauset_value *value)
{
    coffer_pycauset_kind kind = coffer_pycauset_value_kind(value);
    double number = coffer_pycauset_value_f64(value);
    coffer__json_writer json;
    size_t len;
    if (kind == COFFER_PYCAUSET_STRING) {
        const char *text = coffer_pycauset_value_text(value, &len);
        coffer__buffer_append(out, text, len);
    } else if (kind == COFFER_PYCAUSET_BYTES) {
        put_hex(out, value);
    } else if (kind == COFFER_PYCAUSET_F64 && !isfinite(number)) {
        coffer__buffer_printf(out, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    } else {
        coffer__json_writer_init(&json, out, 2);
        pycauset_put_json(&json, value);
    }
    coffer__buffer_append(out, "\n", 1);
}
