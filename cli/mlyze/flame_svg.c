/* The flame graph as a picture: the root below, every frame on top of its caller, as wide as its bytes. */
#include "base/utf8.h"
#include "flame_page.h"

#include <math.h>
#include <string.h>

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

static void put_frame(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node,
                      double x, double y, double width)
{
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
                          x, y, fmax(width - 0.5, 0.3), ROW - 1, color.red, color.green, color.blue);
    if (width > 3 * LETTER) {
        size_t room = (size_t)((width - 6) / LETTER);
        coffer__buffer_printf(out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5);
        put_label(out, node->name, room < LETTERS_MAX ? room : LETTERS_MAX);
        coffer__buffer_printf(out, "</text>");
    }
    coffer__buffer_printf(out, "</g>\n");
}

static void put_frames(coffer__buffer *out, const flame_page *page, double scale, double bottom)
{
    const coffer_mlyze_tree *tree = page->tree;
    double starts[FLAME_DEPTH_MAX + 2] = { MARGIN }; /* where the next frame of each level begins */
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, at);
        double x = starts[node->depth], width = (double)node->bytes * scale;
        starts[node->depth + 1] = x;
        starts[node->depth] = x + width;
        if (width >= FLAME_NARROWEST)
            put_frame(out, page, node, x, bottom - ROW * (double)(node->depth + 1), width);
    }
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
    put_frames(out, page, scale, height - MARGIN);
    coffer__buffer_printf(out, "</svg>\n");
}
