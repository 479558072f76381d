/* Writes the tree of a flame graph as a picture, a page, JSON or collapsed stacks. */
#ifndef COFFER_CLI_FLAME_PAGE_H
#define COFFER_CLI_FLAME_PAGE_H

#include "base/buffer.h"
#include "cli.h"
#include "draw/picture.h"
#include "trace_names.h"

enum { FLAME_DEPTH_MAX = 512 }; /* of the trees that these functions take */

typedef struct flame_page {
    const coffer_mlyze_tree *tree;
    const coffer_mlyze *trace;
    const char *title;
    unsigned width;
    bool lines;           /* of the options of the tree */
    uint64_t most_change; /* of a node, in a comparison; 0 = no comparison. Then `trace` is NULL */
    bool compares;
} flame_page;

/* Whether a file of that name can be written, after a message: .svg, .png, .html, .json, or collapsed stacks.
 */
bool flame_can_write(const cli_args *args, const char *option, const char *path);
/* Writes the page to a file by the extension of its name; path : NULL = collapsed stacks on standard output.
 */
int flame_write(const cli_args *args, const flame_page *page, const char *path, bool json);
/* "grow.c:9", or "". */
void flame_put_place(coffer__buffer *out, const flame_page *page, const coffer_mlyze_tree_node *node);
coffer_status flame_draw(const flame_page *page, const char *path, coffer_error *err);

/* Pixels, in both kinds of pictures. */
enum { FLAME_ROW = 18, FLAME_MARGIN = 12, FLAME_HEAD = 56 };
#define FLAME_NARROWEST 0.4 /* less cannot be seen */

/* Each appends a whole file; the buffer remembers failures. */
void flame_put_svg(coffer__buffer *out, const flame_page *page);
void flame_put_html(coffer__buffer *out, const flame_page *page);
void flame_put_json(coffer__buffer *out, const flame_page *page, unsigned indent);
/* "main;load;read 4096", one line for each stack that allocated memory itself. */
void flame_put_collapsed(coffer__buffer *out, const flame_page *page);

#endif
