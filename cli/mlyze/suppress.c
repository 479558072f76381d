#include "suppress.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/glob.h"
#include "base/memory.h"

#include <string.h>

enum { LONGEST_FILE = 1 << 20 };

/* A pattern without a star is looked for anywhere in a name, as sanitizers do. */
static coffer_status add(suppressions *list, const char *pattern, size_t len, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->patterns, &list->capacity, list->count, sizeof *list->patterns, err);
    if (status != COFFER_OK)
        return status;
    bool bare = !memchr(pattern, '*', len);
    char *copy = coffer__malloc(len + 3);
    if (!copy)
        return coffer__fail_no_memory(err, len + 3);
    snprintf(copy, len + 3, bare ? "*%.*s*" : "%.*s", (int)len, pattern);
    list->patterns[list->count++] = copy;
    return COFFER_OK;
}

static coffer_status add_line(suppressions *list, const char *line, size_t len, coffer_error *err)
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

static coffer_status add_lines(suppressions *list, const char *text, size_t len, coffer_error *err)
{
    const char *end = text + len;
    coffer_status status = COFFER_OK;
    while (text < end && status == COFFER_OK) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop : end;
        status = add_line(list, text, (size_t)(stop - text), err);
        text = stop + 1;
    }
    return status;
}

static int read_file(suppressions *list, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    char *text = NULL;
    int status = cli_open(&src, path);
    if (status != CLI_OK)
        return status;
    uint64_t size = coffer_source_size(src);
    coffer_status result = size > LONGEST_FILE
                               ? coffer__fail(&err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                              "a list of suppressions of %llu bytes; at most 1 MiB is read",
                                              (unsigned long long)size)
                               : COFFER_OK;
    if (result == COFFER_OK && !(text = coffer__malloc((size_t)size)))
        result = coffer__fail_no_memory(&err, size);
    if (result == COFFER_OK)
        result = coffer_source_read_at(text, src, 0, (size_t)size, &err);
    if (result == COFFER_OK)
        result = add_lines(list, text, (size_t)size, &err);
    coffer__free(text);
    coffer_source_close(src);
    return result == COFFER_OK ? CLI_OK : cli_fail(path, &err, "");
}

int suppressions_read(suppressions *out, const cli_args *args)
{
    cli_word word;
    cli_place place = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    int status = CLI_OK;
    *out = (suppressions){ 0 };
    while (status == CLI_OK && cli_next_word(&word, &place, args)) {
        if (!word.option)
            continue;
        if (strcmp(word.option, "suppressions") == 0)
            status = read_file(out, word.value);
        else if (strcmp(word.option, "suppress") == 0 &&
                 add(out, word.value, strlen(word.value), &err) != COFFER_OK)
            status = cli_fail(cli_operand(args, 0), &err, NULL);
    }
    return status;
}

void suppressions_free(suppressions *list)
{
    for (size_t i = 0; i < list->count; i++)
        coffer__free(list->patterns[i]);
    coffer__free(list->patterns);
    *list = (suppressions){ 0 };
}

static bool name_matches(const suppressions *list, const char *name)
{
    for (size_t i = 0; name && i < list->count; i++) {
        if (coffer__glob_match(list->patterns[i], name, strlen(name)))
            return true;
    }
    return false;
}

bool suppressions_match(const suppressions *list, const coffer_mlyze *trace, size_t stack)
{
    size_t depth = 0;
    if (list->count == 0 || stack == SIZE_MAX)
        return false;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, stack);
    for (size_t i = 0; i < depth; i++) {
        if (name_matches(list, coffer_mlyze_function_name(trace, frames[i].func_id)) ||
            name_matches(list, coffer_mlyze_file_name(trace, frames[i].file_id)))
            return true;
    }
    return false;
}
