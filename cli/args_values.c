/* The values of options, for verbs. */
#include "args.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t cli_operand_count(const cli_args *args)
{
    return args->operand_count;
}

const char *cli_operand(const cli_args *args, size_t index)
{
    return index < args->operand_count ? args->operands[index] : NULL;
}

static const cli_given *last_given(const cli_args *args, const char *option)
{
    for (size_t i = args->given_count; i-- > 0;)
        if (strcmp(args->given[i].option->name, option) == 0)
            return &args->given[i];
    return NULL;
}

bool cli_has(const cli_args *args, const char *option)
{
    return last_given(args, option) != NULL;
}

const char *cli_value(const cli_args *args, const char *option)
{
    const cli_given *given = last_given(args, option);
    return given ? given->value : NULL;
}

bool cli_next_word(cli_word *out, cli_place *place, const cli_args *args)
{
    if (place->options < args->given_count &&
        args->given[place->options].operands_before <= place->operands) {
        const cli_given *given = &args->given[place->options++];
        *out = (cli_word){ given->option->name, given->value };
        return true;
    }
    if (place->operands >= args->operand_count)
        return false;
    *out = (cli_word){ NULL, args->operands[place->operands++] };
    return true;
}

bool cli_read_digits(uint64_t *out, const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(*text, &end, 10);
    if (errno)
        return false;
    *text = end;
    *out = value;
    return true;
}

bool cli_number(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value, uint64_t min,
                uint64_t max)
{
    const char *text = cli_value(args, option), *at = text;
    uint64_t value = default_value;
    if (text && (!cli_read_digits(&value, &at) || *at || value < min || value > max)) {
        if (max == UINT64_MAX)
            cli_usage(args, "--%s must be a whole number of at least %" PRIu64 ", not '%s'", option, min,
                      text);
        else
            cli_usage(args, "--%s must be a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", option,
                      min, max, text);
        return false;
    }
    *out = value;
    return true;
}

bool cli_size(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value)
{
    const char *text = cli_value(args, option);
    *out = default_value;
    if (!text || coffer__parse_size(out, text))
        return true;
    cli_usage(args, "--%s must be a size such as 4096, 64K or 5GB, not '%s'", option, text);
    return false;
}

bool cli_duration(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value)
{
    const char *text = cli_value(args, option);
    *out = default_value;
    if (!text || coffer__parse_duration(out, text))
        return true;
    cli_usage(args, "--%s must be a duration such as 300us, 20ms, 1.5s or 2min, not '%s'", option, text);
    return false;
}

bool cli_real(double *out, const cli_args *args, const char *option, double default_value)
{
    const char *text = cli_value(args, option);
    char *end = NULL;
    double value = text ? strtod(text, &end) : default_value;
    if (text && (end == text || *end || !isfinite(value))) {
        cli_usage(args, "--%s must be a number, not '%s'", option, text);
        return false;
    }
    *out = value;
    return true;
}

static bool read_range(uint64_t *begin, uint64_t *end, const char *at)
{
    uint64_t from = 0, to = UINT64_MAX;
    bool has_from = cli_read_digits(&from, &at);
    if (has_from && !*at) {
        if (from == UINT64_MAX)
            return false;
        to = from + 1;
    } else {
        if (strncmp(at, "..", 2) != 0)
            return false;
        at += 2;
        if (*at && (!cli_read_digits(&to, &at) || *at))
            return false;
    }
    if (from > to)
        return false;
    *begin = from;
    *end = to;
    return true;
}

bool cli_range(uint64_t *begin, uint64_t *end, const cli_args *args, const char *option)
{
    const char *text = cli_value(args, option);
    if (!text || read_range(begin, end, text))
        return true;
    cli_usage(args, "--%s must be a range such as 10..20 (20 is not in it), 10.., ..20 or 10, not '%s'",
              option, text);
    return false;
}

size_t cli_choice(const cli_args *args, const char *option, size_t default_index)
{
    const cli_given *given = last_given(args, option);
    if (!given)
        return default_index;
    /* The parser has seen to it that the value is one of them. */
    size_t index = 0, len = strlen(given->value);
    for (const char *at = given->option->choices; at && *at; index++) {
        const char *end = at + strcspn(at, "|");
        if ((size_t)(end - at) == len && memcmp(at, given->value, len) == 0)
            return index;
        at = *end ? end + 1 : end;
    }
    return default_index;
}

static bool set_limit(coffer_limits *limits, const char *name, size_t len, uint64_t value)
{
    const struct {
        const char *name;
        uint64_t *wide;
        uint32_t *narrow;
    } known[] = {
        { "memory", &limits->memory_bytes, NULL },     { "entries", &limits->entries, NULL },
        { "string", &limits->string_bytes, NULL },     { "json", &limits->json_bytes, NULL },
        { "unpacked", &limits->unpacked_bytes, NULL }, { "expanded", &limits->expanded_bytes, NULL },
        { "json-depth", NULL, &limits->json_depth },   { "unpack-ratio", NULL, &limits->unpack_ratio },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) != len || memcmp(known[i].name, name, len) != 0)
            continue;
        if (known[i].wide)
            *known[i].wide = value;
        else
            *known[i].narrow = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
        return true;
    }
    return false;
}

int cli_set_limits(const cli_args *args)
{
    coffer_limits limits;
    bool any = false;
    coffer_limits_init(&limits, sizeof limits);
    for (size_t i = 0; i < args->given_count; i++) {
        const cli_given *given = &args->given[i];
        if (strcmp(given->option->name, "limit") != 0)
            continue;
        const char *equals = strchr(given->value, '=');
        uint64_t value;
        if (!equals || !coffer__parse_size(&value, equals + 1) || value == 0)
            return cli_usage(args, "--limit %s: expected NAME=VALUE, such as memory=4G", given->value);
        if (!set_limit(&limits, given->value, (size_t)(equals - given->value), value))
            return cli_usage(args,
                             "--limit %s: known limits are memory, entries, string, json, json-depth, "
                             "unpacked, expanded and unpack-ratio",
                             given->value);
        any = true;
    }
    if (any)
        coffer_limits_set_defaults(&limits);
    return CLI_OK;
}

/* Which name was meant: the distance between a word and the names there are. */

enum { WORD_MAX = 40 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_len];
}

bool cli_is_near(const char *word, size_t distance)
{
    size_t len = strlen(word);
    return distance <= (len < 4 ? 1 : len < 8 ? 2 : 3);
}
