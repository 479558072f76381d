/* Acts that all formats have in common, as tests need them. */
#ifndef SUPPORT_ACTS_H
#define SUPPORT_ACTS_H

#include "coffer/format.h"

/* The findings of check; coffer_report_free. The test fails when the check cannot run. */
coffer_report *acts_check(coffer_source *src, bool full);
bool acts_found(const coffer_report *report, coffer_status code, coffer_severity severity);
/* The text of the first finding with this code, or "". */
const char *acts_text(const coffer_report *report, coffer_status code);

/* In place. key : may be NULL. */
coffer_status acts_compact(const char *path, coffer_error *err);
coffer_status acts_repair(const char *path, const uint8_t *key, coffer_error *err);

#endif
