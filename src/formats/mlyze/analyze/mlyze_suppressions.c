/* Patterns that hide known stacks. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/mlyze/mlyze_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (UINT64_C(1) << 20)

struct coffer_mlyze_suppressions {
    char **patterns;
    size_t count, capacity;
};

coffer_status coffer_mlyze_suppressions_new(coffer_mlyze_suppressions **out, coffer_error *err)
{
    coffer_mlyze_suppressions *list = coffer__calloc(1, sizeof *list);
    if (!list)
        return coffer__fail_no_memory(err, sizeof *list);
    *out = list;
    return COFFER_OK;
}

void coffer_mlyze_suppressions_free(coffer_mlyze_suppressions *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        coffer__free(list->patterns[i]);
    coffer__free(list->patterns);
    coffer__free(list);
}

/* A pattern without a star matches anywhere in a name, as in LeakSanitizer. */
static coffer_status add(coffer_mlyze_suppressions *list, const char *pattern, size_t len, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->patterns, &list->capacity, list->count, sizeof *list->patterns, err);
    if (status)
        return status;
    bool bare = !memchr(pattern, '*', len);
    char *copy = coffer__malloc(len + 3);
    if (!copy)
        return coffer__fail_no_memory(err, len + 3);
    snprintf(copy, len + 3, bare ? "*%.*s*" : "%.*s", (int)len, pattern);
    list->patterns[list->count++] = copy;
    return COFFER_OK;
}

coffer_status coffer_mlyze_suppressions_add(coffer_mlyze_suppressions *list, const char *pattern,
                                            coffer_error *err)
{
    return add(list, pattern, strlen(pattern), err);
}

static coffer_status add_line(coffer_mlyze_suppressions *list, const char *line, size_t len,
                              coffer_error *err)
{
    static const char prefix[] = "leak:";
    while (len > 0 && strchr(" \t\r", line[len - 1]))
        len--;
    while (len > 0 && strchr(" \t", *line)) {
        line++;
        len--;
    }
    if (len >= sizeof prefix - 1 && memcmp(line, prefix, sizeof prefix - 1) == 0) {
        line += sizeof prefix - 1;
        len -= sizeof prefix - 1;
    }
    return len == 0 || *line == '#' ? COFFER_OK : add(list, line, len, err);
}

static coffer_status add_lines(coffer_mlyze_suppressions *list, const char *text, size_t len,
                               coffer_error *err)
{
    const char *end = text + len;
    coffer_status status = COFFER_OK;
    while (text < end && !status) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop : end;
        status = add_line(list, text, (size_t)(stop - text), err);
        text = stop + 1;
    }
    return status;
}

coffer_status coffer_mlyze_suppressions_add_file(coffer_mlyze_suppressions *list, coffer_source *src,
                                                 coffer_error *err)
{
    const uint64_t size = coffer_source_size(src);
    if (size > FILE_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a list of suppressions may have at most %" PRIu64
                            " bytes, this one has %" PRIu64,
                            FILE_MAX, size);
    char *text = coffer__malloc((size_t)size + 1);
    if (!text)
        return coffer__fail_no_memory(err, size);
    coffer_status status = coffer_source_read_at(text, src, 0, (size_t)size, err);
    if (!status)
        status = add_lines(list, text, (size_t)size, err);
    coffer__free(text);
    return status;
}

size_t coffer_mlyze_suppressions_count(const coffer_mlyze_suppressions *list)
{
    return list->count;
}

static bool name_matches(const coffer_mlyze_suppressions *list, const char *name)
{
    for (size_t i = 0; name && i < list->count; i++) {
        if (coffer__glob_match(list->patterns[i], name, strlen(name)))
            return true;
    }
    return false;
}

bool coffer_mlyze_suppressions_match(const coffer_mlyze_suppressions *list, const coffer_mlyze *trace,
                                     size_t stack)
{
    size_t depth = 0;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, stack);
    for (size_t i = 0; i < depth && list->count > 0; i++) {
        if (name_matches(list, coffer_mlyze_function_name(trace, frames[i].func_id)) ||
            name_matches(list, coffer_mlyze_file_name(trace, frames[i].file_id)))
            return true;
    }
    return false;
}

bool coffer__mlyze_is_selected(const coffer_mlyze_suppressions *focus,
                               const coffer_mlyze_suppressions *ignore, const coffer_mlyze *trace,
                               size_t stack)
{
    if (focus && focus->count > 0 && !coffer_mlyze_suppressions_match(focus, trace, stack))
        return false;
    return !ignore || !coffer_mlyze_suppressions_match(ignore, trace, stack);
}
