/* The chunks of a page: named columns, a table of texts, and their packed form. */
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "page/page.h"

#include <isa-l/igzip_lib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_chunks_opts, COFFER_CHUNKS_OPTS_INIT)

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [COFFER_CHUNK_JSON] = { "json", 1 },
    [COFFER_CHUNK_TEXTS] = { "texts", 1 },
    [COFFER_CHUNK_U8] = { "u8", 1 },
    [COFFER_CHUNK_U32] = { "u32", sizeof(uint32_t) },
    [COFFER_CHUNK_F32] = { "f32", sizeof(float) },
    [COFFER_CHUNK_F64] = { "f64", sizeof(double) },
};

const char *coffer_chunk_type_name(coffer_chunk_type type)
{
    return (size_t)type < sizeof types / sizeof *types ? types[type].name : NULL;
}

/* ---- Adding ---- */

/* Takes the memory over. */
static void add(coffer_chunks *chunks, const char *name, coffer_chunk_type type, uint8_t *data, size_t count)
{
    char *copy = coffer__strdup(name);
    if (!data || !copy ||
        coffer__array_reserve_one(&chunks->items, &chunks->capacity, chunks->count, sizeof *chunks->items,
                                  NULL)) {
        chunks->failed = true;
        coffer__free(copy);
        coffer__free(data);
        return;
    }
    coffer__chunk *item = &chunks->items[chunks->count++];
    *item = (coffer__chunk){ .shown = { copy, type, count, data, count * types[type].size }, .data = data };
}

static void *add_column(coffer_chunks *chunks, const char *name, coffer_chunk_type type, size_t count)
{
    if (chunks->failed)
        return NULL;
    uint8_t *data = coffer__calloc(count ? count : 1, types[type].size);
    add(chunks, name, type, data, count);
    return chunks->failed ? NULL : data;
}

double *coffer__chunks_f64(coffer_chunks *chunks, const char *name, size_t count)
{
    return add_column(chunks, name, COFFER_CHUNK_F64, count);
}

float *coffer__chunks_f32(coffer_chunks *chunks, const char *name, size_t count)
{
    return add_column(chunks, name, COFFER_CHUNK_F32, count);
}

uint32_t *coffer__chunks_u32(coffer_chunks *chunks, const char *name, size_t count)
{
    return add_column(chunks, name, COFFER_CHUNK_U32, count);
}

uint8_t *coffer__chunks_u8(coffer_chunks *chunks, const char *name, size_t count)
{
    return add_column(chunks, name, COFFER_CHUNK_U8, count);
}

void coffer__chunks_bytes(coffer_chunks *chunks, const char *name, const coffer__buffer *bytes)
{
    uint8_t *data = coffer__chunks_u8(chunks, name, bytes->len);
    if (data && bytes->len)
        memcpy(data, bytes->data, bytes->len);
    chunks->failed |= bytes->failed;
}

const char *coffer__chunk_name_of(coffer__chunk_name out, const char *group, const char *column)
{
    snprintf(out, sizeof(coffer__chunk_name), "%s.%s", group, column);
    return out;
}

static void add_buffer(coffer_chunks *chunks, const char *name, coffer_chunk_type type,
                       coffer__buffer *buffer)
{
    size_t len = 0;
    if (buffer->failed)
        chunks->failed = true;
    uint8_t *data = coffer__buffer_release(buffer, &len);
    add(chunks, name, type, data, len);
}

void coffer__chunks_json(coffer_chunks *chunks, const char *name, const coffer_node *root)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &text, 0);
    coffer__json_write_node(&writer, root);
    add_buffer(chunks, name, COFFER_CHUNK_JSON, &text);
}

void coffer__chunks_note(coffer_chunks *chunks, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(line, sizeof line, format, arguments);
    va_end(arguments);
    coffer_node_add_text(chunks->note_list, NULL, line);
}

coffer_status coffer__chunks_status(const coffer_chunks *chunks, coffer_error *err)
{
    coffer_status status = chunks->failed ? coffer__fail_no_memory(err, 0) : COFFER_OK;
    if (!status)
        status = coffer_node_status(chunks->described, err);
    if (!status)
        status = coffer_node_status(chunks->view, err);
    return status ? status : coffer_node_status(chunks->notes, err);
}

/* ---- Texts ---- */

uint32_t coffer__chunks_text_len(coffer_chunks *chunks, const char *text, size_t len)
{
    uint64_t hash = coffer__table_hash(&chunks->text_table, text, len);
    coffer__table_probe probe = coffer__table_begin(&chunks->text_table, hash);
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;)
        if (strlen(chunks->texts[found]) == len && memcmp(chunks->texts[found], text, len) == 0)
            return found;
    char *copy = coffer__arena_text(&chunks->text_memory, text, len);
    if (!copy ||
        coffer__array_reserve_one(&chunks->texts, &chunks->text_capacity, chunks->text_count,
                                  sizeof *chunks->texts, NULL) ||
        coffer__table_add(&chunks->text_table, hash, chunks->text_count, NULL)) {
        chunks->failed = true;
        return 0;
    }
    chunks->texts[chunks->text_count] = copy;
    return (uint32_t)chunks->text_count++;
}

/* A text ends at its first NUL: names that contain one are cut there. */
uint32_t coffer__chunks_text(coffer_chunks *chunks, const char *text)
{
    return coffer__chunks_text_len(chunks, text ? text : "", text ? strlen(text) : 0);
}

void coffer__chunks_finish_texts(coffer_chunks *chunks)
{
    coffer__buffer out;
    uint32_t count = (uint32_t)chunks->text_count, end = 0;
    coffer__buffer_init(&out, UINT32_MAX);
    coffer__buffer_append(&out, &count, sizeof count);
    for (size_t i = 0; i < chunks->text_count; i++) {
        end += (uint32_t)strlen(chunks->texts[i]);
        coffer__buffer_append(&out, &end, sizeof end);
    }
    for (size_t i = 0; i < chunks->text_count; i++)
        coffer__buffer_append(&out, chunks->texts[i], strlen(chunks->texts[i]));
    add_buffer(chunks, "texts", COFFER_CHUNK_TEXTS, &out);
}

/* ---- Packing ---- */

/* Stored blocks, for bytes that cannot be packed, need five bytes for each 64 KiB. */
#define WORST_SIZE(len) ((len) + (len) / 4096 + 256)

static void pack(coffer_chunks *chunks, coffer__chunk *item)
{
    struct isal_zstream *stream = coffer__malloc(sizeof *stream);
    uint8_t *level = coffer__malloc(ISAL_DEF_LVL3_DEFAULT);
    size_t room = WORST_SIZE(item->shown.size);
    uint8_t *out = coffer__malloc(room);
    if (!stream || !level || !out || room > UINT32_MAX) {
        chunks->failed = true;
        goto out;
    }
    isal_deflate_stateless_init(stream);
    stream->level = 3;
    stream->level_buf = level;
    stream->level_buf_size = ISAL_DEF_LVL3_DEFAULT;
    stream->next_in = item->data;
    stream->avail_in = (uint32_t)item->shown.size;
    stream->next_out = out;
    stream->avail_out = (uint32_t)room;
    stream->end_of_stream = 1;
    if (isal_deflate_stateless(stream) == COMP_OK && stream->total_out < item->shown.size) {
        item->packed_size = stream->total_out;
        item->packed = out;
        out = NULL;
    }
out:
    coffer__free(out);
    coffer__free(level);
    coffer__free(stream);
}

void coffer__chunks_pack(uint64_t *size, coffer_chunks *chunks)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < chunks->count && !chunks->failed; i++) {
        coffer__chunk *item = &chunks->items[i];
        pack(chunks, item);
        sum += ((uint64_t)(item->packed ? item->packed_size : item->shown.size) + 2) / 3 * 4;
    }
    *size = sum;
}

/* ---- Reducing ---- */

void coffer__page_sum_row(double *sums, uint64_t *counts, const float *row, uint64_t columns, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++) {
        uint64_t begin = columns * x / width, end = columns * (x + 1) / width;
        for (uint64_t i = begin; i < end; i++)
            if (isfinite(row[i])) {
                sums[x] += (double)row[i];
                counts[x]++;
            }
    }
}

/* ---- Create and free ---- */

static void drop(coffer_chunks *chunks)
{
    for (size_t i = 0; i < chunks->count; i++) {
        coffer__free(chunks->items[i].shown.name);
        coffer__free(chunks->items[i].data);
        coffer__free(chunks->items[i].packed);
    }
    chunks->count = 0;
    coffer__table_free(&chunks->text_table);
    coffer__arena_free(&chunks->text_memory);
    chunks->text_count = 0;
    coffer_node_free(chunks->view);
    coffer_node_free(chunks->notes);
    chunks->view = chunks->notes = chunks->note_list = NULL;
}

coffer_status coffer__chunks_clear(coffer_chunks *chunks, coffer_error *err)
{
    drop(chunks);
    coffer__table_init_keyed(&chunks->text_table);
    coffer_status status = coffer_node_new(&chunks->view, err);
    if (!status)
        status = coffer_node_new(&chunks->notes, err);
    if (!status)
        chunks->note_list = coffer_node_add_list(chunks->notes, "notes");
    return status;
}

void coffer_chunks_free(coffer_chunks *chunks)
{
    if (!chunks)
        return;
    drop(chunks);
    coffer_node_free(chunks->described);
    coffer__free(chunks->items);
    coffer__free(chunks->texts);
    coffer__free(chunks);
}

size_t coffer_chunks_count(const coffer_chunks *chunks)
{
    return chunks->count;
}

const coffer_chunk *coffer_chunks_at(const coffer_chunks *chunks, size_t index)
{
    return index < chunks->count ? &chunks->items[index].shown : NULL;
}

const coffer_chunk *coffer_chunks_find(const coffer_chunks *chunks, const char *name)
{
    for (size_t i = 0; i < chunks->count; i++)
        if (strcmp(chunks->items[i].shown.name, name) == 0)
            return &chunks->items[i].shown;
    return NULL;
}

size_t coffer_chunks_note_count(const coffer_chunks *chunks)
{
    return coffer_node_count(chunks->note_list);
}

const char *coffer_chunks_note_at(const coffer_chunks *chunks, size_t index)
{
    const coffer_node *note = coffer_node_first(chunks->note_list);
    for (size_t i = 0; note && i < index; i++)
        note = coffer_node_next(note);
    return note ? coffer_node_get_text(note, NULL) : NULL;
}

uint64_t coffer_chunks_error_count(const coffer_chunks *chunks)
{
    return chunks->errors;
}
