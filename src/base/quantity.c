#include "base/quantity.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <strings.h>

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
