/* Writes the tree of a flame graph as a picture, a page, JSON or collapsed stacks. */
#ifndef COFFER_CLI_FLAME_PAGE_H
#define COFFER_CLI_FLAME_PAGE_H

#include "base/buffer.h"
#include "cli.h"
#include "trace_names.h"

enum { FLAME_DEPTH_MAX = 512 }; /* of the trees that these functions take */

typedef struct flame_page {
    const coffer_mlyze_tree *tree;
    const coffer_mlyze *trace;
    const char *title;
    unsigned width;
    bool lines; /* of the options of the tree */
} flame_page;

/* Each appends a whole file; the buffer remembers failures. */
void flame_put_svg(coffer__buffer *out, const flame_page *page);
void flame_put_html(coffer__buffer *out, const flame_page *page);
void flame_put_json(coffer__buffer *out, const flame_page *page, unsigned indent);
/* "main;load;read 4096", one line for each stack that allocated memory itself. */
void flame_put_collapsed(coffer__buffer *out, const flame_page *page);

#endif
