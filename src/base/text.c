#include "base/text.h"
#include "base/checked.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Reads one character. A byte that is not UTF-8 counts as one character, with a code above all real ones. */
static uint32_t take_character(const uint8_t **at, const uint8_t *end)
{
    uint32_t code_point;
    size_t len = coffer__utf8_decode(&code_point, *at, end);
    if (len == 0) {
        code_point = UINT32_C(0x110000) + **at;
        len = 1;
    }
    *at += len;
    return code_point;
}

/* Finds the ']' of the set that begins at `set`. In the first place it is a member of the set. NULL when the
 * set never closes: its '[' is then an ordinary character. */
static const uint8_t *set_end(const uint8_t *set, const uint8_t *end)
{
    const uint8_t *at = set + 1;
    if (at < end && *at == '!')
        at++;
    if (at < end && *at == ']')
        at++;
    return at < end ? memchr(at, ']', (size_t)(end - at)) : NULL;
}

static bool set_has(const uint8_t *set, const uint8_t *close, uint32_t character)
{
    const uint8_t *at = set + 1;
    bool negated = *at == '!';
    bool found = false;
    if (negated)
        at++;
    while (at < close) {
        uint32_t low = take_character(&at, close), high = low;
        if (at + 1 < close && *at == '-') {
            at++;
            high = take_character(&at, close);
        }
        found |= low <= character && character <= high;
    }
    return found != negated;
}

/* True when the next item of the pattern, which is not empty, matches the character; moves past the item. */
static bool item_takes(const uint8_t **pattern, const uint8_t *end, uint32_t character)
{
    const uint8_t *at = *pattern;
    if (*at == '?') {
        *pattern = at + 1;
        return true;
    }
    if (*at == '[') {
        const uint8_t *close = set_end(at, end);
        if (close) {
            *pattern = close + 1;
            return set_has(at, close, character);
        }
    }
    if (*at == '\\' && at + 1 < end)
        at++;
    uint32_t wanted = take_character(&at, end);
    *pattern = at;
    return wanted == character;
}

/* A later star replaces an earlier one: if the part between them matched once, matching it further
 * right cannot help. So there is one place to go back to, and the time is pattern × text at worst. */
bool coffer__glob_match(const char *pattern, const char *text, size_t len)
{
    const uint8_t *item = (const uint8_t *)pattern, *pattern_end = item + strlen(pattern);
    const uint8_t *at = (const uint8_t *)text, *end = at + len;
    const uint8_t *after_star = NULL, *star_takes_to = NULL;

    while (at < end || item < pattern_end) {
        if (item < pattern_end && *item == '*') {
            after_star = ++item;
            star_takes_to = at;
            continue;
        }
        if (item < pattern_end && at < end && item_takes(&item, pattern_end, take_character(&at, end)))
            continue;
        if (!after_star || star_takes_to == end)
            return false;
        take_character(&star_takes_to, end);
        item = after_star;
        at = star_takes_to;
    }
    return true;
}

static size_t digits_of(const char *text)
{
    return strspn(text, "0123456789");
}

/* Two numbers: the one with more digits, leading zeros aside, is larger. */
static int compare_numbers(const char *a, size_t a_len, const char *b, size_t b_len)
{
    for (; a_len > 1 && *a == '0'; a_len--)
        a++;
    for (; b_len > 1 && *b == '0'; b_len--)
        b++;
    if (a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return memcmp(a, b, a_len);
}

int coffer__natural_compare(const char *a, const char *b)
{
    const char *left = a, *right = b;
    while (*left && *right) {
        size_t left_len = digits_of(left), right_len = digits_of(right);
        if (left_len > 0 && right_len > 0) {
            int order = compare_numbers(left, left_len, right, right_len);
            if (order)
                return order;
            left += left_len;
            right += right_len;
            continue;
        }
        if (*left != *right)
            return (unsigned char)*left < (unsigned char)*right ? -1 : 1;
        left++;
        right++;
    }
    if (*left || *right)
        return *left ? 1 : -1;
    return strcmp(a, b);
}

typedef struct unit {
    const char *name;
    uint64_t worth;
} unit;

static const unit size_units[] = {
    { "", 1 },
    { "B", 1 },
    { "KB", 1000 },
    { "MB", 1000 * 1000 },
    { "GB", 1000 * 1000 * 1000 },
    { "TB", UINT64_C(1000) * 1000 * 1000 * 1000 },
    { "K", 1 << 10 },
    { "M", 1 << 20 },
    { "G", 1 << 30 },
    { "T", UINT64_C(1) << 40 },
    { "KiB", 1 << 10 },
    { "MiB", 1 << 20 },
    { "GiB", 1 << 30 },
    { "TiB", UINT64_C(1) << 40 },
    { NULL, 0 },
};

static const unit duration_units[] = {
    { "us", 1 },          { "µs", 1 },         { "ms", 1000 },
    { "s", 1000 * 1000 }, { "min", 60000000 }, { "h", UINT64_C(3600000000) },
    { NULL, 0 },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const unit *find_unit(const unit *units, const char *name)
{
    for (; units->name; units++) {
        if (strcasecmp(units->name, name) == 0)
            return units;
    }
    return NULL;
}

/* Decimals that are worth less than one are dropped. */
static bool parse(uint64_t *out, const char *text, const unit *units)
{
    uint64_t whole = 0;
    double fraction = 0, place = 1;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++) {
        if (!coffer__mul_u64(&whole, whole, 10) || !coffer__add_u64(&whole, whole, (uint64_t)(*text - '0')))
            return false;
    }
    if (*text == '.') {
        if (!is_digit(*++text))
            return false;
        for (; is_digit(*text); text++) {
            place /= 10;
            fraction += place * (*text - '0');
        }
    }
    const unit *found = find_unit(units, text);
    uint64_t value;
    if (!found || !coffer__mul_u64(&value, whole, found->worth))
        return false;
    return coffer__add_u64(out, value, (uint64_t)(fraction * (double)found->worth + 1e-6));
}

bool coffer__parse_size(uint64_t *bytes, const char *text)
{
    return parse(bytes, text, size_units);
}

bool coffer__parse_duration(uint64_t *microseconds, const char *text)
{
    return parse(microseconds, text, duration_units);
}

const char *coffer__size_text_of(coffer__size_text out, uint64_t bytes)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes / 1024;
    size_t power = 0;
    if (bytes < 1024) {
        snprintf(out, sizeof(coffer__size_text), "%" PRIu64 " %s", bytes, bytes == 1 ? "byte" : "bytes");
        return out;
    }
    for (; value >= 1023.95 && power + 1 < sizeof names / sizeof names[0]; power++)
        value /= 1024;
    snprintf(out, sizeof(coffer__size_text), "%.1f %s", value, names[power]);
    return out;
}
