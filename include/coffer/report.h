#ifndef COFFER_REPORT_H
#define COFFER_REPORT_H

#include "coffer/error.h"
#include "coffer/node.h"

COFFER_BEGIN_DECLS

/* Findings of `check` and `repair`. */
typedef enum coffer_severity { COFFER_NOTE = 0, COFFER_WARNING = 1, COFFER_ERROR = 2 } coffer_severity;

typedef struct coffer_finding {
    coffer_status code;
    coffer_severity severity;
    uint64_t offset;  /* or COFFER_OFFSET_NONE */
    const char *text; /* borrowed from the report */
} coffer_finding;

typedef struct coffer_report coffer_report;

/* max_findings : later ones are counted, not kept; 0 = the default of coffer_limits. */
COFFER_API_STATUS coffer_report_new(coffer_report **out, size_t max_findings, coffer_error *err);
COFFER_API void coffer_report_free(coffer_report *report);
COFFER_API size_t coffer_report_count(const coffer_report *report); /* findings kept */
COFFER_API const coffer_finding *coffer_report_at(const coffer_report *report,
                                                  size_t index); /* NULL past the end */
/* Number of findings of this severity, kept or not. */
COFFER_API uint64_t coffer_report_total(const coffer_report *report, coffer_severity severity);

/* Adds the findings kept to `parent` as a list of maps with code, severity, offset and text, and the number
 * of the others as "<name>_not_listed". */
COFFER_API void coffer_report_describe(coffer_node *parent, const char *name, const coffer_report *report);

/* The part that a check could not verify, for people: "no checksums in this format", "structure only;
 * --full verifies 3.1 GiB". NULL when it verified everything. */
COFFER_API const char *coffer_report_limits(const coffer_report *report);

/* "note", "warning", "error". */
COFFER_API const char *coffer_severity_name(coffer_severity severity);

COFFER_END_DECLS

#endif
