/* Stacks merged from the outside in: what each function asked for, itself and through those it called. */
#ifndef COFFER_CLI_FLAME_TREE_H
#define COFFER_CLI_FLAME_TREE_H

#include "base/buffer.h"
#include "cli.h"
#include "trace_names.h"

#define FLAME_NONE UINT32_MAX
enum { FLAME_DEEPEST = 512 }; /* what lies deeper is counted with the last frame shown */

typedef struct flame_node {
    uint32_t parent, first_child, next_sibling; /* FLAME_NONE = none; children with the most bytes first */
    uint32_t depth, child_count;
    trace_amount amount; /* with all children */
    uint64_t own_bytes;
    const char *name; /* "function", lives as long as the tree */
    coffer_mlyze_frame frame;
} flame_node;

typedef struct flame_tree flame_tree;

typedef struct flame_settings {
    coffer_mlyze_measure measure;
    bool lines;    /* functions called from different lines are different */
    bool inverted; /* the innermost frame is the root: who asked for memory, and from where */
} flame_settings;

coffer_status flame_tree_new(flame_tree **out, const coffer_mlyze *trace, const coffer_mlyze_stats *analysis,
                             const flame_settings *settings, coffer_error *err);
void flame_tree_free(flame_tree *tree);
const flame_node *flame_tree_at(const flame_tree *tree, uint32_t index); /* 0 is the root, named "all" */
uint32_t flame_tree_depth(const flame_tree *tree);                       /* levels below the root */

/* Every node, each before its children; FLAME_NONE at the end. */
uint32_t flame_first(const flame_tree *tree);
uint32_t flame_next(const flame_tree *tree, uint32_t index);

/* ---- Output ---- */

typedef struct flame_page {
    const flame_tree *tree;
    const coffer_mlyze *trace;
    const char *title;
    unsigned width;
    bool lines; /* as the tree was made with */
} flame_page;

/* Each appends a whole file; failures stick in the buffer. */
void flame_put_svg(coffer__buffer *out, const flame_page *page);
void flame_put_html(coffer__buffer *out, const flame_page *page);
void flame_put_json(coffer__buffer *out, const flame_page *page, unsigned indent);
/* "main;load;read 4096", one line for each stack that asked for memory itself. */
void flame_put_collapsed(coffer__buffer *out, const flame_page *page);

#endif
