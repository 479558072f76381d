/* The parts that both kinds of pictures of a flame graph share, and the one of pixels. */
#include "base/fail.h"
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
rgb flame_color(const flame_page *page, const coffer_mlyze_tree_node *node)
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

void flame_put_amount(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node)
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

uint32_t flame_visible_depth(const flame_page *page, double scale)
{
    uint32_t depth = 0;
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(page->tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(page->tree, at);
        if (node->depth > depth && (double)node->bytes * scale >= FLAME_NARROWEST)
            depth = node->depth;
    }
    return depth;
}

/* ---- Pixels ---- */

static const picture_font title_font = { 16, true, { 0, 0, 0 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 112 } };
static const picture_font frame_font = { 11, false, { 0, 0, 0 } };

static void draw_frame(picture *canvas, const flame_page *page, const coffer_mlyze_tree_node *node,
                       picture_box box)
{
    char label[256];
    picture_fill(canvas, box, flame_color(page, node));
    if (box.width < 24)
        return;
    picture_fit_text(label, sizeof label, canvas, &frame_font, PICTURE_CUT_END, node->name, box.width - 6);
    picture_text(canvas, box.x + 3, box.y + FLAME_ROW - 5, PICTURE_LEFT, &frame_font, label);
}

static void draw_frames(picture *canvas, const flame_page *page, double scale, double bottom)
{
    const coffer_mlyze_tree *tree = page->tree;
    double starts[FLAME_DEPTH_MAX + 2] = { FLAME_MARGIN }; /* where the next frame of each level begins */
    for (size_t at = 0; at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(tree, at)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, at);
        double x = starts[node->depth], width = (double)node->bytes * scale;
        starts[node->depth + 1] = x;
        starts[node->depth] = x + width;
        if (width >= FLAME_NARROWEST)
            draw_frame(canvas, page, node,
                       (picture_box){ x, bottom - FLAME_ROW * (double)(node->depth + 1),
                                      fmax(width - 0.5, 0.3), FLAME_ROW - 1 });
    }
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
    draw_frames(canvas, page, scale, height - FLAME_MARGIN);
    return picture_save(canvas, err);
}
