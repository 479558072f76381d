/* Adding findings and nodes: the writing half of coffer/report.h. */
#ifndef COFFER_BASE_REPORT_H
#define COFFER_BASE_REPORT_H

#include "base/fail.h"
#include "coffer/report.h"

/* Adds a finding. Gives false when the report is full: the check may stop. Never fails otherwise (out of
 * memory counts the finding and keeps coffer__report_status). */
bool coffer__report_add(coffer_report *report, coffer_status code, coffer_severity severity, uint64_t offset,
                        const char *format, ...) COFFER_PRINTF(5, 6);
/* Adds what a failed call said. */
bool coffer__report_add_error(coffer_report *report, coffer_severity severity, const coffer_error *err);
/* The same when it is about the file, and gives COFFER_OK; a failure of memory, disk or caller is passed on.
 */
coffer_status coffer__report_take(coffer_report *report, coffer_severity severity, const coffer_error *found,
                                  coffer_error *err);
bool coffer__report_full(const coffer_report *report);
/* COFFER_E_NO_MEMORY when a finding could not be kept. */
coffer_status coffer__report_status(const coffer_report *report, coffer_error *err);

/* Nodes: a failed allocation sticks in the root and later calls do nothing; NULL parents are accepted. Names
 * and texts are copied. In a list, pass NULL as name. */
coffer_node *coffer__node_map(coffer_node *parent, const char *name);
coffer_node *coffer__node_list(coffer_node *parent, const char *name);
void coffer__node_bool(coffer_node *parent, const char *name, bool value);
void coffer__node_u64(coffer_node *parent, const char *name, uint64_t value, coffer_unit unit);
void coffer__node_i64(coffer_node *parent, const char *name, int64_t value, coffer_unit unit);
void coffer__node_f64(coffer_node *parent, const char *name, double value, coffer_unit unit);
void coffer__node_text(coffer_node *parent, const char *name, const char *text); /* NULL gives a null node */
void coffer__node_text_len(coffer_node *parent, const char *name, const char *text, size_t len);
void coffer__node_printf(coffer_node *parent, const char *name, const char *format, ...) COFFER_PRINTF(3, 4);
void coffer__node_null(coffer_node *parent, const char *name);
/* A place for a value that is known later: null until it is set. NULL when the tree has failed. */
coffer_node *coffer__node_hold(coffer_node *parent, const char *name);
void coffer__node_set_bool(coffer_node *held, bool value); /* NULL allowed */
/* Puts the items of the list `name` of a map into another order; equal ones stay as they were. */
typedef int coffer__node_compare(const coffer_node *a, const coffer_node *b, const void *context);
void coffer__node_sort(coffer_node *map, const char *name, coffer__node_compare *compare,
                       const void *context);
coffer_status coffer__node_status(const coffer_node *root, coffer_error *err);

#endif
