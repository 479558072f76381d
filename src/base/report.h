/* Adding findings to a report. */
#ifndef COFFER_BASE_REPORT_H
#define COFFER_BASE_REPORT_H

#include "base/fail.h"
#include "coffer/report.h"

/* Adds a finding. Returns false when the report is full: the check may stop. Out of memory counts the
 * finding and is remembered for coffer__report_status. */
bool coffer__report_add(coffer_report *report, coffer_status code, coffer_severity severity, uint64_t offset,
                        const char *format, ...) COFFER_PRINTF(5, 6);
/* Adds the error of a failed call. */
bool coffer__report_add_error(coffer_report *report, coffer_severity severity, const coffer_error *err);
/* Adds an error about the file and returns COFFER_OK; a failure of memory, disk or caller is passed on. */
coffer_status coffer__report_take(coffer_report *report, coffer_severity severity, const coffer_error *found,
                                  coffer_error *err);
bool coffer__report_full(const coffer_report *report);
/* COFFER_E_NO_MEMORY when a finding could not be kept. */
coffer_status coffer__report_status(const coffer_report *report, coffer_error *err);

/* A value that is known later: null until it is set. NULL when the tree ran out of memory. */
coffer_node *coffer__node_hold(coffer_node *parent, const char *name);
void coffer__node_set_bool(coffer_node *held, bool value); /* NULL allowed */

/* Older names of the public builders. */
#define coffer__node_map coffer_node_add_map
#define coffer__node_list coffer_node_add_list
#define coffer__node_null coffer_node_add_null
#define coffer__node_bool coffer_node_add_bool
#define coffer__node_u64 coffer_node_add_u64
#define coffer__node_i64 coffer_node_add_i64
#define coffer__node_f64 coffer_node_add_f64
#define coffer__node_text coffer_node_add_text
#define coffer__node_text_len coffer_node_add_text_len
#define coffer__node_printf coffer_node_add_printf
#define coffer__node_status coffer_node_status
#define coffer__node_sort coffer_node_sort

#endif
