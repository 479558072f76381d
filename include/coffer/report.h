#ifndef COFFER_REPORT_H
#define COFFER_REPORT_H

#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* ---- Findings: what `check` and `repair` say about a file ---- */

typedef enum coffer_severity { COFFER_NOTE = 0, COFFER_WARNING = 1, COFFER_ERROR = 2 } coffer_severity;

typedef struct coffer_finding {
    coffer_status code;
    coffer_severity severity;
    uint64_t offset;  /* or COFFER_OFFSET_NONE */
    const char *text; /* borrowed from the report */
} coffer_finding;

typedef struct coffer_report coffer_report;

/* max_findings : later ones are counted, not kept; 0 = the default of coffer_limits. */
COFFER_API coffer_status coffer_report_new(coffer_report **out, size_t max_findings, coffer_error *err);
COFFER_API void coffer_report_free(coffer_report *report);
COFFER_API size_t coffer_report_count(const coffer_report *report); /* findings kept */
COFFER_API const coffer_finding *coffer_report_at(const coffer_report *report,
                                                  size_t index); /* NULL past the end */
/* How many were found in all with this severity, kept or not. */
COFFER_API uint64_t coffer_report_total(const coffer_report *report, coffer_severity severity);

/* "note", "warning", "error". */
COFFER_API const char *coffer_severity_name(coffer_severity severity);

/* ---- Nodes: a small tree of named values, printed by the command, written as JSON, drawn by reports ---- */

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
    COFFER_UNIT_OFFSET, /* a place in the file */
    COFFER_UNIT_FLAGS   /* a bit set, shown in hexadecimal */
} coffer_unit;

typedef struct coffer_node coffer_node;

/* A root is a map without a name; its children live as long as it does. */
COFFER_API coffer_status coffer_node_new(coffer_node **out, coffer_error *err);
COFFER_API void coffer_node_free(coffer_node *root);

/* A value asked for as a kind that it is not is 0, false or "". */
COFFER_API coffer_node_kind coffer_node_get_kind(const coffer_node *node);
COFFER_API coffer_unit coffer_node_get_unit(const coffer_node *node);
COFFER_API const char *coffer_node_get_name(const coffer_node *node); /* "" in lists and for the root */
COFFER_API bool coffer_node_get_bool(const coffer_node *node);
COFFER_API uint64_t coffer_node_get_u64(const coffer_node *node);
COFFER_API int64_t coffer_node_get_i64(const coffer_node *node);
COFFER_API double coffer_node_get_f64(const coffer_node *node); /* any number */
/* UTF-8, NUL-terminated, may hold NULs of its own: len may be NULL. */
COFFER_API const char *coffer_node_get_text(const coffer_node *node, size_t *len);
COFFER_API const coffer_node *coffer_node_first(const coffer_node *node); /* first child or NULL */
COFFER_API const coffer_node *coffer_node_next(const coffer_node *node);  /* next sibling or NULL */
COFFER_API size_t coffer_node_count(const coffer_node *node);
/* The first child of that name, or NULL. O(children). */
COFFER_API const coffer_node *coffer_node_find(const coffer_node *map, const char *name);

COFFER_END_DECLS

#endif
