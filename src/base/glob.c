#include "base/glob.h"

#include "base/utf8.h"

#include <string.h>

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
