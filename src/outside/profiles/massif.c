#include "outside/profiles/massif.h"

#include "base/fail.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

bool coffer__massif_probe(const uint8_t *head, size_t len)
{
    static const char key[] = "desc: ", bare[] = "desc:\n";
    return len >= sizeof key - 1 &&
           (memcmp(head, key, sizeof key - 1) == 0 || memcmp(head, bare, sizeof bare - 1) == 0);
}

/* The text after `key` on the current line, or NULL. */
static const char *value_of(size_t *len, const coffer__packed_lines *lines, const char *key)
{
    size_t key_len = strlen(key);
    if (lines->len < key_len || memcmp(lines->text, key, key_len) != 0)
        return NULL;
    *len = lines->len - key_len;
    return lines->text + key_len;
}

static bool parse_number(uint64_t *out, const char *text, size_t len)
{
    coffer__number number;
    return coffer__number_parse(&number, text, len) && coffer__number_as_u64(out, &number, INT64_MAX);
}

/* Comments and empty lines left out. */
static coffer_status next_line(coffer__massif *massif, coffer_error *err)
{
    coffer_status status;
    do {
        status = coffer__packed_lines_next(massif->lines, err);
    } while (!status && massif->lines->text && (massif->lines->len == 0 || massif->lines->text[0] == '#'));
    return status;
}

coffer_status coffer__massif_open(coffer__massif *massif, coffer__packed_lines *lines, coffer_error *err)
{
    static const char *const keys[] = { "desc:", "cmd:", "time_unit:" };
    *massif = (coffer__massif){ .lines = lines, .command = COFFER__BUFFER_INIT };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t len = 0;
        coffer_status status = next_line(massif, err);
        if (status)
            return status;
        const char *value = lines->text ? value_of(&len, lines, keys[i]) : NULL;
        if (!value)
            return coffer__packed_lines_fail(lines, err, COFFER_E_MISSING, "expected \"%s\"", keys[i]);
        for (; len > 0 && *value == ' '; len--)
            value++;
        if (i == 1 && !coffer__buffer_append(&massif->command, value, len))
            return coffer__fail_no_memory(err, len);
        if (i == 2 && (len == 0 || len >= sizeof massif->time_unit))
            return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_VALUE, "unknown unit of time");
        if (i == 2)
            memcpy(massif->time_unit, value, len);
    }
    return COFFER_OK;
}

void coffer__massif_close(coffer__massif *massif)
{
    coffer__buffer_free(&massif->command);
}

/* The value of the next line, "key=value". */
static coffer_status take_value(const char **value, size_t *len, coffer__massif *massif, const char *key,
                                coffer_error *err)
{
    coffer_status status = next_line(massif, err);
    if (status)
        return status;
    *value = massif->lines->text ? value_of(len, massif->lines, key) : NULL;
    if (*value)
        return COFFER_OK;
    return coffer__packed_lines_fail(massif->lines, err,
                                     massif->lines->text ? COFFER_E_BAD_VALUE : COFFER_E_TRUNCATED,
                                     "expected \"%s\" and a number", key);
}

/* Heaptrack writes seconds, with a fraction. */
static coffer_status take_time(uint64_t *out, coffer__massif *massif, coffer_error *err)
{
    static const struct {
        const char *unit;
        double microseconds;
    } units[] = { { "s", 1e6 }, { "ms", 1e3 } };
    const char *value;
    size_t len = 0;
    coffer__number number;
    double factor = 1;
    coffer_status status = take_value(&value, &len, massif, "time=", err);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(massif->time_unit, units[i].unit) == 0)
            factor = units[i].microseconds;
    }
    double time = coffer__number_parse(&number, value, len) ? coffer__number_as_f64(&number) * factor : -1;
    if (!(time >= 0 && time < 9e15)) /* where whole numbers are still exact */
        return coffer__packed_lines_fail(massif->lines, err, COFFER_E_BAD_VALUE,
                                         "the time is not a number from 0 to 9e15 microseconds");
    *out = (uint64_t)(time + 0.5);
    return COFFER_OK;
}

static coffer_status take_number(uint64_t *out, coffer__massif *massif, const char *key, coffer_error *err)
{
    const char *value;
    size_t len = 0;
    coffer_status status = take_value(&value, &len, massif, key, err);
    if (status)
        return status;
    if (!parse_number(out, value, len))
        return coffer__packed_lines_fail(massif->lines, err, COFFER_E_BAD_VALUE,
                                         "%s is not a number from 0 to 2^63", key);
    return COFFER_OK;
}

static coffer_status take_detail(coffer__massif_detail *out, coffer__massif *massif, coffer_error *err)
{
    static const char *const names[] = { "heap_tree=empty", "heap_tree=detailed", "heap_tree=peak" };
    const coffer__packed_lines *lines = massif->lines;
    coffer_status status = next_line(massif, err);
    if (status)
        return status;
    for (size_t i = 0; lines->text && i < sizeof names / sizeof *names; i++) {
        if (lines->len == strlen(names[i]) && memcmp(lines->text, names[i], lines->len) == 0) {
            *out = (coffer__massif_detail)i;
            return COFFER_OK;
        }
    }
    return coffer__packed_lines_fail(lines, err, lines->text ? COFFER_E_BAD_VALUE : COFFER_E_TRUNCATED,
                                     "expected heap_tree=empty, detailed or peak");
}

coffer_status coffer__massif_next(bool *more, coffer__massif_snapshot *snapshot, coffer__massif *massif,
                                  coffer_error *err)
{
    size_t len = 0;
    coffer_status status = next_line(massif, err);
    *more = !status && massif->lines->text;
    if (!*more)
        return status;
    const char *value = value_of(&len, massif->lines, "snapshot=");
    if (!value || !parse_number(&snapshot->number, value, len))
        return coffer__packed_lines_fail(massif->lines, err, COFFER_E_BAD_VALUE,
                                         "expected \"snapshot=\" and a number");
    status = take_time(&snapshot->time, massif, err);
    if (!status)
        status = take_number(&snapshot->heap_bytes, massif, "mem_heap_B=", err);
    if (!status)
        status = take_number(&snapshot->extra_bytes, massif, "mem_heap_extra_B=", err);
    if (!status)
        status = take_number(&snapshot->stack_bytes, massif, "mem_stacks_B=", err);
    return status ? status : take_detail(&snapshot->detail, massif, err);
}

static size_t digits_from(const char *text, size_t len, size_t at)
{
    size_t end = at;
    while (end < len && text[end] >= '0' && text[end] <= '9')
        end++;
    return end - at;
}

coffer_status coffer__massif_node_next(coffer__massif_node *node, coffer__massif *massif, coffer_error *err)
{
    const coffer__packed_lines *lines = massif->lines;
    size_t at = 0, digits;
    coffer_status status = coffer__packed_lines_next(massif->lines, err);
    if (status)
        return status;
    if (!lines->text)
        return coffer__packed_lines_fail(lines, err, COFFER_E_TRUNCATED,
                                         "the tree of the snapshot is truncated");
    const char *text = lines->text;
    while (at < lines->len && text[at] == ' ')
        at++;
    bool good = at < lines->len && text[at++] == 'n';
    digits = digits_from(text, lines->len, at);
    good = good && parse_number(&node->children, text + at, digits);
    at += digits;
    good = good && lines->len - at > 2 && text[at] == ':' && text[at + 1] == ' ';
    at += good ? 2 : 0;
    digits = good ? digits_from(text, lines->len, at) : 0;
    good = good && parse_number(&node->bytes, text + at, digits);
    if (!good)
        return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_VALUE,
                                         "expected a node of the tree, \"n2: 4096 label\"");
    at += digits;
    while (at < lines->len && text[at] == ' ')
        at++;
    node->label = text + at;
    node->label_len = lines->len - at;
    return COFFER_OK;
}
