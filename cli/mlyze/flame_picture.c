/* The parts that both kinds of pictures of a flame graph share, and the one of pixels. */
#include "base/fail.h"
#include "base/utf8.h"
#include "draw/picture.h"
#include "flame_page.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static rgb color_of_name(const char *name)
{
    uint32_t mixed = 2166136261u;
    for (const char *at = name; *at; at++)
        mixed = (mixed ^ (uint8_t)*at) * 16777619u;
    unsigned a = mixed >> 24, b = (mixed >> 12) & 0xff;
    return (rgb){ (uint8_t)(200 + a * 50 / 255), (uint8_t)(120 + b * 90 / 255),
                  (uint8_t)(60 + a * 50 / 255) };
}

/* One color for one name, so that a function is found again in another graph. In a comparison the square root
 * makes small changes visible. */
static rgb flame_color(const flame_page *page, const coffer_mlyze_tree_node *node)
{
    if (!page->compares)
        return color_of_name(node->name);
    bool grew = node->after_bytes > node->before_bytes;
    uint64_t change = grew ? node->after_bytes - node->before_bytes : node->before_bytes - node->after_bytes;
    if (change == 0 || page->most_change == 0)
        return (rgb){ 226, 226, 230 };
    double share = sqrt((double)change / (double)page->most_change);
    uint8_t rest = (uint8_t)(215 - 145 * share);
    return grew ? (rgb){ 244, rest, rest } : (rgb){ rest, (uint8_t)(rest + 20), 244 };
}

/* "12.0 KiB, 3.1 %, 4 blocks", or in a comparison "8.0 KiB → 12.0 KiB, +4.0 KiB". */
static void flame_put_amount(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node)
{
    const coffer_mlyze_tree_node *root = coffer_mlyze_tree_at(page->tree, 0);
    term_text before, after, count;
    if (!page->compares && node == root) {
        coffer__buffer_printf(out, "%s in %s block%s", term_bytes(after, node->bytes),
                              term_count(count, node->allocs), term_plural(node->allocs));
        return;
    }
    if (!page->compares) {
        coffer__buffer_printf(out, "%s, %.2f %%, %s block%s", term_bytes(after, node->bytes),
                              root->bytes ? 100.0 * (double)node->bytes / (double)root->bytes : 0,
                              term_count(count, node->allocs), term_plural(node->allocs));
        return;
    }
    bool grew = node->after_bytes >= node->before_bytes;
    uint64_t change = grew ? node->after_bytes - node->before_bytes : node->before_bytes - node->after_bytes;
    coffer__buffer_printf(out, "%s → %s, %c%s", term_bytes(before, node->before_bytes),
                          term_bytes(after, node->after_bytes), grew ? '+' : '-', term_bytes(count, change));
}

void flame_put_place(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node)
{
    if (page->trace)
        trace_put_place(out, page->trace, &node->frame);
    else
        coffer__buffer_append(out, node->place, strlen(node->place));
}

/* How many levels have frames that can be seen. */
static uint32_t flame_visible_depth(const flame_page *page, double scale)
{
    uint32_t depth = 0;
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(page->tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, at);
        if (node->depth > depth && (double)node->bytes * scale >= FLAME_NARROWEST)
            depth = node->depth;
    }
    return depth;
}

/* A frame in a picture: `draw` gets it from left to right and from the root on. */
typedef void flame_frame_drawer(void *canvas, const flame_page *page, const coffer_mlyze_tree_node *node,
                                picture_box box);

/* Calls `draw` for every frame wide enough to be seen; `bottom` is the lower edge of the root. */
static void flame_place_frames(const flame_page *page, double scale, double bottom, flame_frame_drawer *draw,
                               void *canvas)
{
    double starts[FLAME_DEPTH_MAX + 2] = { FLAME_MARGIN }; /* where the next frame of each level begins */
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(page->tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, at);
        double x = starts[node->depth], width = (double)node->bytes * scale;
        starts[node->depth + 1] = x;
        starts[node->depth] = x + width;
        if (width >= FLAME_NARROWEST)
            draw(canvas, page, node,
                 (picture_box){ x, bottom - FLAME_ROW * (double)(node->depth + 1), fmax(width - 0.5, 0.3),
                                FLAME_ROW - 1 });
    }
}

/* ---- Pixels ---- */

static const picture_font title_font = { 16, true, { 0, 0, 0 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 112 } };
static const picture_font frame_font = { 11, false, { 0, 0, 0 } };

static void draw_frame(void *onto, const flame_page *page, const coffer_mlyze_tree_node *node,
                       picture_box box)
{
    picture *canvas = onto;
    char label[256];
    picture_fill(canvas, box, flame_color(page, node));
    if (box.width < 24)
        return;
    picture_fit_text(label, sizeof label, canvas, &frame_font, PICTURE_CUT_END, node->name, box.width - 6);
    picture_text(canvas, box.x + 3, box.y + FLAME_ROW - 5, PICTURE_LEFT, &frame_font, label);
}

coffer_status flame_draw(const flame_page *page, const char *path, coffer_error *err)
{
    const coffer_mlyze_tree_node *root = coffer_mlyze_tree_at(page->tree, 0);
    double scale = root->bytes ? (page->width - 2.0 * FLAME_MARGIN) / (double)root->bytes : 0;
    unsigned height = FLAME_HEAD + (flame_visible_depth(page, scale) + 1) * FLAME_ROW + FLAME_MARGIN;
    coffer__buffer amount = COFFER__BUFFER_INIT;
    picture *canvas = NULL;
    coffer_status status = picture_new(&canvas, path, page->width, height, err);
    if (status)
        return status;
    flame_put_amount(&amount, page, root);
    picture_text(canvas, FLAME_MARGIN, 24, PICTURE_LEFT, &title_font, page->title);
    picture_text(canvas, FLAME_MARGIN, 42, PICTURE_LEFT, &subtitle_font, coffer__buffer_text(&amount));
    coffer__buffer_free(&amount);
    flame_place_frames(page, scale, height - FLAME_MARGIN, draw_frame, canvas);
    return picture_save(canvas, err);
}

/* The flame graph as a picture: the root below, every frame on top of its caller, as wide as its bytes. */

enum { ROW = FLAME_ROW, MARGIN = FLAME_MARGIN, HEAD = FLAME_HEAD, LETTER = 7, LETTERS_MAX = 400 };

void flame_put_markup(coffer__buffer *out, const char *text, size_t len)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + len;
    while (at < end) {
        uint32_t code_point = 0;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0 || coffer__utf8_is_harmful(code_point) || coffer__utf8_is_noncharacter(code_point))
            coffer__buffer_printf(out, "?");
        else if (code_point == '<')
            coffer__buffer_printf(out, "&lt;");
        else if (code_point == '>')
            coffer__buffer_printf(out, "&gt;");
        else if (code_point == '&')
            coffer__buffer_printf(out, "&amp;");
        else if (code_point == '"')
            coffer__buffer_printf(out, "&quot;");
        else
            coffer__buffer_append(out, at, step);
        at += step ? step : 1;
    }
}

/* The first letters of a name, as many as there is room for. */
static void put_label(coffer__buffer *out, const char *name, size_t room)
{
    const uint8_t *at = (const uint8_t *)name, *end = at + strlen(name);
    size_t letters = 0;
    while (at < end && letters + 1 < room) {
        uint32_t code_point;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        at += step ? step : 1;
        letters++;
    }
    bool cut = (size_t)(end - at) > 1;
    flame_put_markup(out, name, (size_t)((cut ? at : end) - (const uint8_t *)name));
    if (cut)
        coffer__buffer_printf(out, "…");
}

static void put_frame(void *onto, const flame_page *page, const coffer_mlyze_tree_node *node, picture_box box)
{
    coffer__buffer *out = onto;
    coffer__buffer place = COFFER__BUFFER_INIT;
    rgb color = flame_color(page, node);
    flame_put_place(&place, page, node);
    coffer__buffer_printf(out, "<g><title>");
    flame_put_markup(out, node->name, strlen(node->name));
    if (place.len && strcmp(coffer__buffer_text(&place), node->name) != 0) {
        coffer__buffer_printf(out, " (");
        flame_put_markup(out, coffer__buffer_text(&place), place.len);
        coffer__buffer_printf(out, ")");
    }
    coffer__buffer_free(&place);
    coffer__buffer_printf(out, "\n");
    flame_put_amount(out, page, node);
    coffer__buffer_printf(out, "</title>");
    coffer__buffer_printf(out,
                          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"#%02x%02x%02x\"/>",
                          box.x, box.y, box.width, ROW - 1, color.red, color.green, color.blue);
    if (box.width > 3 * LETTER) {
        size_t room = (size_t)((box.width - 6) / LETTER);
        coffer__buffer_printf(out, "<text x=\"%.2f\" y=\"%.1f\">", box.x + 3, box.y + ROW - 5);
        put_label(out, node->name, room < LETTERS_MAX ? room : LETTERS_MAX);
        coffer__buffer_printf(out, "</text>");
    }
    coffer__buffer_printf(out, "</g>\n");
}

void flame_put_svg(coffer__buffer *out, const flame_page *page)
{
    const coffer_mlyze_tree_node *root = coffer_mlyze_tree_at(page->tree, 0);
    double scale = root->bytes ? (page->width - 2.0 * MARGIN) / (double)root->bytes : 0;
    unsigned height = HEAD + (flame_visible_depth(page, scale) + 1) * ROW + MARGIN;
    coffer__buffer_printf(out,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                          "viewBox=\"0 0 %u %u\" font-family=\"monospace\" font-size=\"11\">\n"
                          "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                          "<text x=\"%d\" y=\"24\" font-family=\"sans-serif\" font-size=\"16\" "
                          "font-weight=\"bold\">",
                          page->width, height, page->width, height, MARGIN);
    flame_put_markup(out, page->title, strlen(page->title));
    coffer__buffer_printf(out,
                          "</text>\n<text x=\"%d\" y=\"42\" font-family=\"sans-serif\" fill=\"#646470\">",
                          MARGIN);
    flame_put_amount(out, page, root);
    coffer__buffer_printf(out, "</text>\n");
    flame_place_frames(page, scale, height - MARGIN, put_frame, out);
    coffer__buffer_printf(out, "</svg>\n");
}
