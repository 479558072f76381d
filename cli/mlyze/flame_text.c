/* The flame graph for other programs: collapsed stacks, and a tree in JSON. */
#include "base/json_write.h"
#include "flame_page.h"

#include <inttypes.h>

/* Semicolons separate the frames of a line, so those in names become spaces. */
static void put_text(coffer__buffer *out, const char *text)
{
    for (; *text; text++) {
        bool breaks = (uint8_t)*text < 0x20 || *text == 0x7f || *text == ';';
        coffer__buffer_append(out, breaks ? " " : text, 1);
    }
}

/* A frame as in the collapsed stacks that convert writes: "grab", or "grab (grow.c:9)", "grab (in grow.c)".
 */
static void put_frame(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node)
{
    if (!page->trace) {
        put_text(out, node->name);
        return;
    }
    const coffer_mlyze_frame *frame = &node->frame;
    const char *function = coffer_mlyze_function_name(page->trace, frame->func_id);
    const char *file = coffer_mlyze_file_name(page->trace, frame->file_id);
    bool has_file = file && *file;
    put_text(out, function && *function ? function : has_file ? file : "?");
    if (!page->lines || !has_file)
        return;
    coffer__buffer_printf(out, frame->line ? " (" : " (in ");
    put_text(out, file);
    if (frame->line)
        coffer__buffer_printf(out, ":%" PRIu64, frame->line);
    coffer__buffer_printf(out, ")");
}

static void put_path(coffer__buffer *out, const flame_page *page, size_t index)
{
    size_t path[FLAME_DEPTH_MAX];
    size_t depth = 0;
    for (; index != 0; index = coffer_mlyze_tree_at(page->tree, index)->parent)
        path[depth++] = index;
    while (depth-- > 0) {
        put_frame(out, page, coffer_mlyze_tree_at(page->tree, path[depth]));
        if (depth)
            coffer__buffer_append(out, ";", 1);
    }
}

/* The bytes of stacks that end in a node of a comparison: its own less those of its children. */
static uint64_t own_bytes(const flame_page *page, size_t index, bool after)
{
    const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, index);
    uint64_t bytes = after ? node->after_bytes : node->before_bytes;
    for (size_t at = node->first_child; at != COFFER_INDEX_NONE;
         at = coffer_mlyze_tree_at(page->tree, at)->next_sibling) {
        const coffer_mlyze_tree_node *child = coffer_mlyze_tree_at(page->tree, at);
        bytes -= after ? child->after_bytes : child->before_bytes;
    }
    return bytes;
}

void flame_put_collapsed(coffer__buffer *out, const flame_page *page)
{
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(page->tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, at);
        if (node->own_bytes == 0 || at == 0)
            continue;
        put_path(out, page, at);
        if (page->compares)
            coffer__buffer_printf(out, " %" PRIu64 " %" PRIu64 "\n", own_bytes(page, at, false),
                                  own_bytes(page, at, true));
        else
            coffer__buffer_printf(out, " %" PRIu64 "\n", node->own_bytes);
    }
}

static void close_nodes(coffer__json_writer *writer, uint32_t count)
{
    for (; count > 0; count--) {
        coffer__json_close_array(writer);
        coffer__json_close_object(writer);
    }
}

/* The same members as in the JSON of the other verbs. */
static void put_lost(coffer__json_writer *writer, const coffer_mlyze *trace)
{
    uint64_t blocks = 0, events = 0;
    coffer_mlyze_lost(&blocks, &events, trace);
    bool bad = coffer_mlyze_damage(trace, NULL) || coffer_mlyze_repaired(trace, NULL) || blocks > 0;
    coffer__json_key(writer, "complete");
    coffer__json_write_bool(writer, !bad);
    if (!bad)
        return;
    coffer__json_key(writer, "lost_blocks");
    coffer__json_write_u64(writer, blocks);
    coffer__json_key(writer, "lost_events");
    coffer__json_write_u64(writer, events);
}

void flame_put_json(coffer__buffer *out, const flame_page *page, unsigned indent)
{
    coffer__json_writer writer;
    uint32_t open = 0;
    coffer__json_writer_init(&writer, out, indent);
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(page->tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, at);
        close_nodes(&writer, open - node->depth);
        coffer__json_open_object(&writer);
        coffer__json_key(&writer, "name");
        coffer__json_string(&writer, node->name);
        coffer__json_key(&writer, "value");
        coffer__json_write_u64(&writer, node->bytes);
        coffer__json_key(&writer, "allocs");
        coffer__json_write_u64(&writer, node->allocs);
        coffer__json_key(&writer, "place");
        coffer__buffer place = COFFER__BUFFER_INIT;
        flame_put_place(&place, page, node);
        coffer__json_string_len(&writer, coffer__buffer_text(&place), place.len);
        coffer__buffer_free(&place);
        if (at == 0 && page->trace)
            put_lost(&writer, page->trace);
        if (page->compares) {
            coffer__json_key(&writer, "before");
            coffer__json_write_u64(&writer, node->before_bytes);
            coffer__json_key(&writer, "after");
            coffer__json_write_u64(&writer, node->after_bytes);
        }
        coffer__json_key(&writer, "children");
        coffer__json_open_array(&writer);
        open = node->depth + 1;
    }
    close_nodes(&writer, open);
}
