/* Adding findings to a report. */
#ifndef COFFER_BASE_REPORT_H
#define COFFER_BASE_REPORT_H

#include "base/fail.h"
#include "coffer/report.h"

/* Adds a finding. Returns false when the report is full: the check may stop. Out of memory counts the
 * finding and is remembered for coffer__report_status. */
bool coffer__report_add(coffer_report *report, coffer_status code, coffer_severity severity, uint64_t offset,
                        const char *format, ...) COFFER_PRINTF(5, 6);
/* Says what the check did not verify (coffer_report_limits). A later text replaces an earlier one. */
void coffer__report_set_limits(coffer_report *report, const char *format, ...) COFFER_PRINTF(2, 3);
/* Adds the error of a failed call. */
bool coffer__report_add_error(coffer_report *report, coffer_severity severity, const coffer_error *err);
/* Adds an error about the file and returns COFFER_OK; a failure of memory, disk or caller is passed on. */
coffer_status coffer__report_take(coffer_report *report, coffer_severity severity, const coffer_error *found,
                                  coffer_error *err);
bool coffer__report_full(const coffer_report *report);
/* COFFER_E_NO_MEMORY when a finding could not be kept. */
coffer_status coffer__report_status(const coffer_report *report, coffer_error *err);

/* Sorts a list of maps by their "name" in the order in which people count: layer.2 before layer.10. */
void coffer__node_sort_by_name(coffer_node *root, const char *list);
/* Marks the child of `parent` that was added last (coffer_node_is_detail). */
void coffer__node_mark_detail(coffer_node *parent);
/* A value that is known later: null until it is set. NULL when the tree ran out of memory. */
coffer_node *coffer__node_hold(coffer_node *parent, const char *name);
void coffer__node_set_bool(coffer_node *held, bool value); /* NULL allowed */

#endif
