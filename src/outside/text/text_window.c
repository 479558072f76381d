#include "outside/text/text_window.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)1 << 18)

static const char byte_order_mark[] = "\xef\xbb\xbf";

uint64_t coffer__text_window_offset(const coffer__text_window *window)
{
    return window->next - (window->end - window->at);
}

static coffer_status make_room(coffer__text_window *window, coffer_error *err)
{
    size_t held = window->end - window->at;
    if (window->at > 0)
        memmove(window->memory, window->memory + window->at, held);
    window->at = 0;
    window->end = held;
    if (held < window->capacity)
        return COFFER_OK;
    if (held >= window->max_capacity)
        return coffer__fail(err, COFFER_E_LIMIT, coffer__text_window_offset(window),
                            "a row is longer than %zu bytes", window->max_capacity);
    size_t capacity = window->capacity ? window->capacity * 2 : FIRST_CAPACITY;
    if (capacity > window->max_capacity)
        capacity = window->max_capacity;
    char *memory = coffer__realloc(window->memory, capacity);
    if (!memory)
        return coffer__fail_no_memory(err, capacity);
    window->memory = memory;
    window->capacity = capacity;
    return COFFER_OK;
}

static coffer_status start(coffer__text_window *window, uint64_t max_row, coffer_error *err)
{
    coffer_status status;
    bool grew;
    window->max_capacity = max_row < SIZE_MAX / 2 ? (size_t)max_row : SIZE_MAX / 2;
    if (window->max_capacity < FIRST_CAPACITY)
        window->max_capacity = FIRST_CAPACITY;
    status = make_room(window, err);
    if (!status)
        status = coffer__text_window_grow(&grew, window, err);
    if (status) {
        coffer__text_window_close(window);
        return status;
    }
    if (window->end >= 3 && memcmp(window->memory, byte_order_mark, 3) == 0)
        window->at = 3;
    return COFFER_OK;
}

coffer_status coffer__text_window_open(coffer__text_window *window, coffer_source *src, uint64_t max_row,
                                       coffer_error *err)
{
    memset(window, 0, sizeof *window);
    window->src = src;
    return start(window, max_row, err);
}

coffer_status coffer__text_window_open_stream(coffer__text_window *window, coffer__text_read read,
                                              void *context, uint64_t max_row, coffer_error *err)
{
    memset(window, 0, sizeof *window);
    window->read = read;
    window->context = context;
    return start(window, max_row, err);
}

void coffer__text_window_close(coffer__text_window *window)
{
    coffer__free(window->memory);
    window->memory = NULL;
}

/* Reads at most `room` bytes after those in the window; *got is 0 at the end. */
static coffer_status take(size_t *got, coffer__text_window *window, size_t room, coffer_error *err)
{
    char *to = window->memory + window->end;
    if (!window->src)
        return window->read(window->context, to, room, got, err);
    uint64_t left = coffer_source_size(window->src) - window->next;
    *got = left < room ? (size_t)left : room;
    return coffer_source_read_at(to, window->src, window->next, *got, err);
}

coffer_status coffer__text_window_grow(bool *grew, coffer__text_window *window, coffer_error *err)
{
    size_t got = 0;
    *grew = false;
    if (window->src && coffer_source_size(window->src) == window->next)
        return COFFER_OK;
    coffer_status status = make_room(window, err);
    if (!status)
        status = take(&got, window, window->capacity - window->end, err);
    if (status)
        return status;
    window->end += got;
    window->next += got;
    *grew = got > 0;
    return COFFER_OK;
}

coffer_status coffer__text_window_line(char **line, size_t *len, coffer__text_window *window,
                                       coffer_error *err)
{
    size_t seen = 0; /* bytes of the window that are known not to contain a line end */
    for (;;) {
        char *start = window->memory + window->at;
        size_t held = window->end - window->at;
        char *found = held > seen ? memchr(start + seen, '\n', held - seen) : NULL;
        if (found) {
            *line = start;
            *len = (size_t)(found - start);
            window->at += *len + 1;
            break;
        }
        bool grew;
        seen = held;
        coffer_status status = coffer__text_window_grow(&grew, window, err);
        if (status)
            return status;
        if (!grew) {
            *line = held ? window->memory + window->at : NULL;
            *len = held;
            window->at = window->end;
            break;
        }
    }
    if (*len > 0 && (*line)[*len - 1] == '\r')
        --*len;
    return COFFER_OK;
}
