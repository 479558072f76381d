/* A bundle: the chunks of an answer one after the other, after a directory. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "view/view_private.h"

#include <string.h>

/* Columns of doubles begin at multiples of their size, so that a browser can use them in place. */
enum { ALIGNMENT = 8, LENGTH_SIZE = 4 };

static uint64_t aligned(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Offsets count from the end of the directory, which does not know its own length. */
static coffer_status list_chunks(coffer__buffer *out, const coffer_chunks *chunks, coffer_error *err)
{
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, err);
    if (status)
        return status;
    coffer_node *list = coffer_node_add_list(root, "chunks");
    uint64_t offset = 0;
    for (size_t i = 0; i < coffer_chunks_count(chunks); i++) {
        const coffer_chunk *chunk = coffer_chunks_at(chunks, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", chunk->name);
        coffer_node_add_text(map, "type", coffer_chunk_type_name(chunk->type));
        coffer_node_add_u64(map, "count", chunk->count, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "offset", offset, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "size", chunk->size, COFFER_UNIT_NONE);
        offset = aligned(offset + chunk->size);
    }
    status = coffer_node_status(root, err);
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, out, 0);
    if (!status)
        coffer__json_write_node(&writer, root);
    coffer_node_free(root);
    return status;
}

static void pad(coffer__buffer *out)
{
    static const uint8_t zeros[ALIGNMENT] = { 0 };
    coffer__buffer_append(out, zeros, (size_t)(aligned(out->len) - out->len));
}

coffer_status coffer__view_bundle(coffer_bytes *out, const coffer_chunks *chunks, coffer_error *err)
{
    coffer__buffer directory = COFFER__BUFFER_INIT, bundle = COFFER__BUFFER_INIT;
    coffer_status status = list_chunks(&directory, chunks, err);
    uint32_t len = (uint32_t)directory.len;
    coffer__buffer_append(&bundle, &len, LENGTH_SIZE);
    coffer__buffer_append(&bundle, directory.data, directory.len);
    pad(&bundle);
    for (size_t i = 0; i < coffer_chunks_count(chunks); i++) {
        coffer__buffer_append(&bundle, coffer_chunks_at(chunks, i)->data, coffer_chunks_at(chunks, i)->size);
        pad(&bundle);
    }
    if (!status && (bundle.failed || directory.failed))
        status = coffer__fail_no_memory(err, bundle.len);
    if (!status) {
        coffer_free(out->data);
        out->capacity = bundle.capacity;
        out->data = coffer__buffer_release(&bundle, &out->size);
    }
    coffer__buffer_free(&directory);
    coffer__buffer_free(&bundle);
    return status;
}
