/* The flame graph as a page that needs nothing else, as collapsed stacks, and as a tree in JSON. */
#include "flame_page.h"
#include "base/json_write.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* The flame graph as a page that needs nothing else: click a frame to look closer, type to search. */

static const char before_title[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>\n"
    "body{font:14px sans-serif;margin:16px;color:#1a1a20}\n"
    "h1{font-size:18px;margin:0 0 4px}\n"
    "header{position:sticky;top:0;background:#fff;z-index:2;padding:8px 0 6px;border-bottom:1px solid "
    "#d8d8de;"
    "margin-bottom:6px}\n"
    "#bar{display:flex;gap:12px;align-items:center;margin:8px 0}\n"
    "#bar input{font:inherit;padding:3px 6px;width:22em}\n"
    "#graph{position:relative;overflow:hidden}\n"
    "#graph div{position:absolute;height:17px;overflow:hidden;white-space:nowrap;box-sizing:border-box;"
    "font:11px/17px monospace;padding:0 3px;cursor:pointer;border-right:1px solid #fff}\n"
    "#graph div:hover{outline:1px solid #1a1a20;z-index:1}\n"
    "#graph .faded{opacity:.45}\n"
    "#graph .found{background:#c04fd8!important;color:#fff}\n"
    "#about{height:3em;color:#40404a;font:12px/1.5em monospace;white-space:pre-wrap;overflow:hidden}\n"
    "</style>\n<title>";

static const char before_data[] =
    "</h1>\n<div id=\"bar\"><button id=\"reset\">whole</button>"
    "<input id=\"search\" placeholder=\"search functions and files\" aria-label=\"search\">"
    "<span id=\"hits\"></span></div>\n"
    "<div id=\"about\"></div></header>\n<div id=\"graph\"></div>\n"
    "<script id=\"data\" type=\"application/json\">";

static const char after_data[] =
    "</script>\n<script>\n"
    "'use strict';\n"
    "const root = JSON.parse(document.getElementById('data').textContent);\n"
    "const graph = document.getElementById('graph'), about = document.getElementById('about');\n"
    "const ROW = 18;\n"
    "const compares = 'after' in root;\n"
    "let zoom = root, pattern = '', most = 0;\n"
    "(function link(start) {\n"
    "  const todo = [[start, null]];\n"
    "  while (todo.length) {\n"
    "    const [node, parent] = todo.pop();\n"
    "    node.parent = parent;\n"
    "    if (parent && 'after' in node) most = Math.max(most, Math.abs(node.after - node.before));\n"
    "    for (const child of node.children) todo.push([child, node]);\n"
    "  }\n"
    "})(root);\n"
    "function bytes(n) {\n"
    "  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];\n"
    "  let i = 0;\n"
    "  for (; n >= 1024 && i < 4; i++) n /= 1024;\n"
    "  return (i ? n.toFixed(1) : n) + ' ' + units[i];\n"
    "}\n"
    "function change(node) { return node.after - node.before; }\n"
    "function signed(n) { return (n < 0 ? '-' : '+') + bytes(Math.abs(n)); }\n"
    "function describe(node) {\n"
    "  if (compares)\n"
    "    return node.name + (node.place ? ' (' + node.place + ')' : '') + '\\n' + bytes(node.before) + ' → ' "
    "+\n"
    "      bytes(node.after) + ', ' + signed(change(node));\n"
    "  const share = root.value ? (100 * node.value / root.value).toFixed(2) : '0';\n"
    "  return node.name + (node.place && node.place !== node.name ? ' (' + node.place + ')' : '') + '\\n' +\n"
    "    bytes(node.value) + ', ' + share + ' %, ' + node.allocs.toLocaleString() + ' blocks';\n"
    "}\n"
    "function paint(node) {\n"
    "  if (!compares) return color(node.name);\n"
    "  const n = change(node), rest = 215 - 145 * Math.sqrt(most ? Math.abs(n) / most : 0) | 0;\n"
    "  return n === 0 ? '#e2e2e6' : n > 0 ? `rgb(244,${rest},${rest})` : `rgb(${rest},${rest + 20},244)`;\n"
    "}\n"
    "function color(name) {\n"
    "  let h = 2166136261;\n"
    "  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619) >>> 0;\n"
    "  const a = h >>> 24, b = (h >>> 12) & 255;\n"
    "  return `rgb(${200 + a * 50 / 255 | 0},${120 + b * 90 / 255 | 0},${60 + a * 50 / 255 | 0})`;\n"
    "}\n"
    "function matches(node) {\n"
    "  return pattern && (node.name + ' ' + node.place).toLowerCase().includes(pattern);\n"
    "}\n"
    "function place(node, x, width, level, faded, boxes) {\n"
    "  const box = document.createElement('div');\n"
    "  box.style.left = x + 'px';\n"
    "  box.style.width = width + 'px';\n"
    "  box.style.top = level * ROW + 'px';\n"
    "  box.style.background = paint(node);\n"
    "  box.textContent = width > 20 ? node.name : '';\n"
    "  if (faded) box.classList.add('faded');\n"
    "  if (matches(node)) box.classList.add('found');\n"
    "  box.onclick = () => { zoom = node; draw(); };\n"
    "  box.onmouseenter = () => { about.textContent = describe(node); };\n"
    "  boxes.push(box);\n"
    "}\n"
    "function draw() {\n"
    "  const width = graph.clientWidth, boxes = [], above = [];\n"
    "  for (let node = zoom.parent; node; node = node.parent) above.unshift(node);\n"
    "  above.forEach((node, level) => place(node, 0, width, level, true, boxes));\n"
    "  let deepest = above.length, found = 0;\n"
    "  const todo = [[zoom, 0, above.length, false]];\n"
    "  while (todo.length) {\n"
    "    const [node, x, level, counted] = todo.pop();\n"
    "    const wide = zoom.value ? node.value / zoom.value * width : 0;\n"
    "    const hit = !counted && matches(node);\n"
    "    if (hit) found += node.value;\n"
    "    if (wide < 0.5) continue;\n"
    "    deepest = Math.max(deepest, level);\n"
    "    place(node, x, wide, level, false, boxes);\n"
    "    let at = x;\n"
    "    for (const child of node.children) {\n"
    "      todo.push([child, at, level + 1, counted || hit]);\n"
    "      at += zoom.value ? child.value / zoom.value * width : 0;\n"
    "    }\n"
    "  }\n"
    "  graph.style.height = (deepest + 1) * ROW + 'px';\n"
    "  graph.replaceChildren(...boxes);\n"
    "  about.textContent = describe(zoom);\n"
    "  document.getElementById('hits').textContent = pattern ? bytes(found) + ' found' : '';\n"
    "}\n"
    "document.getElementById('reset').onclick = () => { zoom = root; draw(); };\n"
    "document.getElementById('search').oninput = e => { pattern = e.target.value.toLowerCase(); draw(); };\n"
    "addEventListener('resize', draw);\n"
    "draw();\n"
    "</script>\n</body></html>\n";

static void put_escape(coffer__buffer *out, uint32_t code_point)
{
    if (code_point > 0xffff) {
        uint32_t rest = code_point - 0x10000;
        coffer__buffer_printf(out, "\\u%04" PRIx32, 0xd800 + (rest >> 10));
        code_point = 0xdc00 + (rest & 0x3ff);
    }
    coffer__buffer_printf(out, "\\u%04" PRIx32, code_point);
}

/* Inside a script element nothing may look like its end. Characters that the page must not contain become
 * escapes, which are the same to JSON. */
static void put_data(coffer__buffer *out, const flame_page *page)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    flame_put_json(&json, page, 0);
    const uint8_t *at = json.data, *end = at + json.len;
    while (at < end) {
        uint32_t code_point = 0;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0)
            coffer__buffer_printf(out, "?");
        else if (code_point == '<' || coffer__utf8_is_harmful(code_point) ||
                 coffer__utf8_is_noncharacter(code_point))
            put_escape(out, code_point);
        else
            coffer__buffer_append(out, at, step);
        at += step ? step : 1;
    }
    out->failed |= json.failed;
    coffer__buffer_free(&json);
}

void flame_put_html(coffer__buffer *out, const flame_page *page)
{
    coffer__buffer_append(out, before_title, sizeof before_title - 1);
    flame_put_markup(out, page->title, strlen(page->title));
    coffer__buffer_printf(out, "</title></head><body>\n<header><h1>");
    flame_put_markup(out, page->title, strlen(page->title));
    coffer__buffer_append(out, before_data, sizeof before_data - 1);
    put_data(out, page);
    coffer__buffer_append(out, after_data, sizeof after_data - 1);
}

/* The flame graph for other programs: collapsed stacks, and a tree in JSON. */

/* Semicolons separate the frames of a line, so those in names become spaces. */
static void put_frame_text(coffer__buffer *out, const char *text)
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
        put_frame_text(out, node->name);
        return;
    }
    const coffer_mlyze_frame *frame = &node->frame;
    const char *function = coffer_mlyze_function_name(page->trace, frame->func_id);
    const char *file = coffer_mlyze_file_name(page->trace, frame->file_id);
    bool has_file = file && *file;
    put_frame_text(out, function && *function ? function : has_file ? file : "?");
    if (!page->lines || !has_file)
        return;
    coffer__buffer_printf(out, frame->line ? " (" : " (in ");
    put_frame_text(out, file);
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
        if (page->trace && coffer_mlyze_sampling_bytes(page->trace) > 0) {
            coffer__json_key(&writer, "error_bytes");
            coffer__json_write_u64(&writer, coffer_mlyze_sampling_error(page->trace, node->allocs));
        }
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
