#include "outside/profiles/profile_text.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

#include <inttypes.h>

#undef coffer__packed_lines_fail /* a macro for the analyzer */

#define LINE_MAX_BYTES ((uint64_t)1 << 26)
#define LINES_PER_STEP 65536

static coffer_status read_some(void *context, void *out, size_t len, size_t *got, coffer_error *err)
{
    coffer__packed_lines *lines = context;
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = coffer__unpack_read(out, len, got, lines->unpack, &why);
    if (status == COFFER_E_TRUNCATED && lines->opts.partial) {
        lines->cut = true;
        *got = 0;
        return COFFER_OK;
    }
    if (status && err)
        *err = why;
    return status;
}

coffer_status coffer__packed_lines_open(coffer__packed_lines *lines, coffer_source *source,
                                        const coffer__packed_lines_opts *opts, coffer_error *err)
{
    uint64_t longest =
        opts->limits->string_bytes < LINE_MAX_BYTES ? opts->limits->string_bytes : LINE_MAX_BYTES;
    *lines = (coffer__packed_lines){ .source = source, .opts = *opts };
    coffer_status status = coffer__unpack_open(&lines->unpack, source, opts->limits, err);
    if (!status)
        status = coffer__text_window_open_stream(&lines->window, read_some, lines, longest, err);
    if (status)
        coffer__packed_lines_close(lines);
    return status;
}

void coffer__packed_lines_close(coffer__packed_lines *lines)
{
    coffer__text_window_close(&lines->window);
    coffer__unpack_close(lines->unpack);
    lines->unpack = NULL;
}

coffer_status coffer__packed_lines_next(coffer__packed_lines *lines, coffer_error *err)
{
    coffer__text_window *window = &lines->window;
    coffer_status status = coffer__text_window_line(&lines->text, &lines->len, window, err);
    if (status || !lines->text)
        return status;
    lines->whole = lines->text + lines->len < window->memory + window->at;
    if (++lines->number % LINES_PER_STEP != 0)
        return COFFER_OK;
    return coffer__progress_step(lines->opts.progress, coffer__unpack_position(lines->unpack),
                                 coffer_source_size(lines->source), err);
}

coffer_status coffer__packed_lines_fail(const coffer__packed_lines *lines, coffer_error *err,
                                        coffer_status status, const char *format, ...)
{
    char what[160];
    va_list arguments;
    uint64_t offset = COFFER_OFFSET_NONE;
    va_start(arguments, format);
    coffer__format_line(what, sizeof what, format, arguments);
    va_end(arguments);
    if (coffer__unpack_packing(lines->unpack) == COFFER__PACKING_NONE && lines->text)
        offset = coffer__text_window_offset(&lines->window) -
                 (uint64_t)(lines->window.memory + lines->window.at - lines->text);
    return coffer__fail(err, status, offset, "line %" PRIu64 ": %s", lines->number, what);
}

static bool equal(const coffer__triple *a, const coffer__triple *b)
{
    return a->a == b->a && a->b == b->b && a->c == b->c;
}

coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err)
{
    uint64_t hash = coffer__hash(&item, sizeof item);
    coffer__table_probe probe = coffer__table_begin(&triples->table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        if (equal(&triples->items[found], &item)) {
            *place = found;
            *is_new = false;
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__array_reserve_one(&triples->items, &triples->capacity, triples->count,
                                                     sizeof *triples->items, err);
    if (!status)
        status = coffer__table_add(&triples->table, hash, triples->count, err);
    if (status)
        return status;
    *place = triples->count;
    *is_new = true;
    triples->items[triples->count++] = item;
    return COFFER_OK;
}

void coffer__triples_free(coffer__triples *triples)
{
    coffer__free(triples->items);
    coffer__table_free(&triples->table);
}
