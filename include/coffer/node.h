#ifndef COFFER_NODE_H
#define COFFER_NODE_H

#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* Nodes: a small tree of named values. The library returns summaries, lists and differences as trees; the
 * command prints them and writes them as JSON. Thread safety: after the last change, a tree may be read by
 * any number of threads. */

typedef enum coffer_node_kind {
    COFFER_NODE_NULL = 0,
    COFFER_NODE_BOOL,
    COFFER_NODE_U64,
    COFFER_NODE_I64,
    COFFER_NODE_F64,
    COFFER_NODE_TEXT,
    COFFER_NODE_LIST,
    COFFER_NODE_MAP
} coffer_node_kind;

typedef enum coffer_unit {
    COFFER_UNIT_NONE = 0,
    COFFER_UNIT_BYTES,
    COFFER_UNIT_MICROSECONDS,
    COFFER_UNIT_OFFSET, /* a position in the file */
    COFFER_UNIT_FLAGS   /* a bit set, shown in hexadecimal */
} coffer_unit;

typedef struct coffer_node coffer_node;

/* A new tree: a map without a name. Its children are freed with it. */
COFFER_API_STATUS coffer_node_new(coffer_node **out, coffer_error *err);
COFFER_API void coffer_node_free(coffer_node *root);

/* ---- Building ---- */

/* Each call appends a child to `parent`, a map or a list. Names and texts are copied. name : NULL in a list.
 * Running out of memory is remembered by the tree: later calls do nothing, coffer_node_add_map and _list
 * return NULL, and a NULL parent is accepted everywhere. So build the whole tree, then check
 * coffer_node_status once. */
COFFER_API coffer_node *coffer_node_add_map(coffer_node *parent, const char *name);
COFFER_API coffer_node *coffer_node_add_list(coffer_node *parent, const char *name);
COFFER_API void coffer_node_add_null(coffer_node *parent, const char *name);
COFFER_API void coffer_node_add_bool(coffer_node *parent, const char *name, bool value);
COFFER_API void coffer_node_add_u64(coffer_node *parent, const char *name, uint64_t value, coffer_unit unit);
COFFER_API void coffer_node_add_i64(coffer_node *parent, const char *name, int64_t value, coffer_unit unit);
/* A place in a file; COFFER_OFFSET_NONE adds a null node. */
COFFER_API void coffer_node_add_offset(coffer_node *parent, const char *name, uint64_t offset);
COFFER_API void coffer_node_add_f64(coffer_node *parent, const char *name, double value, coffer_unit unit);
/* text : UTF-8; NULL adds a null node. */
COFFER_API void coffer_node_add_text(coffer_node *parent, const char *name, const char *text);
COFFER_API void coffer_node_add_text_len(coffer_node *parent, const char *name, const char *text, size_t len);
COFFER_API void coffer_node_add_printf(coffer_node *parent, const char *name, const char *format, ...)
    COFFER_PRINTF(3, 4);
/* A copy of a node of any tree, with all below it. node : NULL adds a null node. */
COFFER_API void coffer_node_add_copy(coffer_node *parent, const char *name, const coffer_node *node);

/* COFFER_E_NO_MEMORY when the tree of `node` is incomplete, and for NULL: a child that could not be added. */
COFFER_API_STATUS coffer_node_status(const coffer_node *node, coffer_error *err);

/* Sorts the list `name` of a map; equal items keep their order. Does nothing when the map has no such list.
 */
typedef int (*coffer_node_compare)(const coffer_node *a, const coffer_node *b, const void *context);
COFFER_API void coffer_node_sort(coffer_node *map, const char *name, coffer_node_compare compare,
                                 const void *context);

/* ---- Reading ---- */

/* The value of a node of another kind is 0, false or "". */
COFFER_API coffer_node_kind coffer_node_get_kind(const coffer_node *node);
COFFER_API coffer_unit coffer_node_get_unit(const coffer_node *node);
COFFER_API const char *coffer_node_get_name(const coffer_node *node); /* "" in lists and for the root */
COFFER_API bool coffer_node_get_bool(const coffer_node *node);
COFFER_API uint64_t coffer_node_get_u64(const coffer_node *node);
COFFER_API int64_t coffer_node_get_i64(const coffer_node *node);
COFFER_API double coffer_node_get_f64(const coffer_node *node); /* any number */
/* UTF-8 with a NUL at the end; may also contain NULs, therefore *len. len : may be NULL. */
COFFER_API const char *coffer_node_get_text(const coffer_node *node, size_t *len);
COFFER_API const coffer_node *coffer_node_first(const coffer_node *node); /* first child or NULL */
COFFER_API const coffer_node *coffer_node_next(const coffer_node *node);  /* next sibling or NULL */
COFFER_API size_t coffer_node_count(const coffer_node *node);
/* The first child of that name, or NULL. O(children). */
/* True for an internal of the file: `coffer info` shows it only with -v. JSON has it always. */
COFFER_API bool coffer_node_is_detail(const coffer_node *node);
COFFER_API const coffer_node *coffer_node_find(const coffer_node *map, const char *name);

COFFER_END_DECLS

#endif
