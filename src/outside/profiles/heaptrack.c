#include "outside/profiles/heaptrack.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"

#include <string.h>

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* "v 10400 3": nothing else begins like this. */
bool coffer__heaptrack_probe(const uint8_t *head, size_t len)
{
    coffer__heaptrack_line line;
    uint64_t version, format = 0;
    const uint8_t *end = len > 0 ? memchr(head, '\n', len) : NULL;
    if (!end || end - head < 3 || head[0] != 'v' || head[1] != ' ')
        return false;
    line = (coffer__heaptrack_line){ (const char *)head + 2, (const char *)end };
    if (!coffer__heaptrack_hex(&version, &line) || version < 0x10000 || version > 0xffffff)
        return false;
    return line.at == line.end || (coffer__heaptrack_hex(&format, &line) && line.at == line.end);
}

coffer__heaptrack_line coffer__heaptrack_fields(const coffer__packed_lines *lines)
{
    size_t skipped = lines->len < 2 ? lines->len : 2;
    return (coffer__heaptrack_line){ lines->text + skipped, lines->text + lines->len };
}

bool coffer__heaptrack_hex(uint64_t *out, coffer__heaptrack_line *line)
{
    const char *at = line->at;
    uint64_t value = 0;
    for (; at < line->end && *at != ' '; at++) {
        int digit = digit_of(*at);
        if (digit < 0 || value >> 60)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    if (at == line->at)
        return false;
    line->at = at < line->end ? at + 1 : at;
    *out = value;
    return true;
}

bool coffer__heaptrack_text(const char **text, size_t *len, coffer__heaptrack_line *line, bool sized)
{
    uint64_t size = 0;
    if (sized) {
        if (!coffer__heaptrack_hex(&size, line) || size > (uint64_t)(line->end - line->at))
            return false;
    } else {
        while (line->at + size < line->end && line->at[size] != ' ')
            size++;
    }
    *text = line->at;
    *len = (size_t)size;
    line->at += size;
    if (line->at < line->end)
        line->at++;
    return sized || *len > 0;
}

/* ---- Modules ---- */

/* Insertion is linear: the limit protects against malicious files. */
#define MAX_MODULES 4096

void coffer__heaptrack_modules_clear(coffer__heaptrack_modules *modules)
{
    modules->count = 0;
    modules->names.len = 0;
}

void coffer__heaptrack_modules_free(coffer__heaptrack_modules *modules)
{
    coffer__free(modules->items);
    coffer__buffer_free(&modules->names);
}

/* How many begin at or before an address. */
static size_t count_up_to(const coffer__heaptrack_modules *modules, uint64_t address)
{
    return COFFER__COUNT_UP_TO(modules->items, modules->count, coffer__heaptrack_module, begin, address);
}

coffer_status coffer__heaptrack_modules_add(coffer__heaptrack_modules *modules, const char *name, size_t len,
                                            uint64_t base, uint64_t begin, uint64_t end, coffer_error *err)
{
    size_t name_at = modules->names.len;
    if (modules->count == MAX_MODULES)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d modules are loaded",
                            MAX_MODULES);
    coffer_status status = coffer__array_reserve_one(&modules->items, &modules->capacity, modules->count,
                                                     sizeof *modules->items, err);
    if (status)
        return status;
    if (!coffer__buffer_append(&modules->names, name, len))
        return coffer__fail_no_memory(err, len);
    size_t at = count_up_to(modules, begin);
    memmove(modules->items + at + 1, modules->items + at, (modules->count - at) * sizeof *modules->items);
    modules->items[at] = (coffer__heaptrack_module){ begin, end, base, name_at, len };
    modules->count++;
    return COFFER_OK;
}

const coffer__heaptrack_module *coffer__heaptrack_modules_find(const coffer__heaptrack_modules *modules,
                                                               uint64_t address)
{
    size_t before = count_up_to(modules, address);
    const coffer__heaptrack_module *module = before ? &modules->items[before - 1] : NULL;
    return module && address < module->end ? module : NULL;
}
