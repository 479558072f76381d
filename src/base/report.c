#include "base/report.h"
#include "base/buffer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>

#define SEVERITIES 3

struct coffer_report {
    coffer_finding *findings;
    size_t count, capacity, max;
    uint64_t total[SEVERITIES];
    bool no_memory;
    char limits[120]; /* "" when everything was verified */
};

coffer_status coffer_report_new(coffer_report **out, size_t max_findings, coffer_error *err)
{
    coffer_report *report = coffer__calloc(1, sizeof *report);
    if (!report)
        return coffer__fail_no_memory(err, sizeof *report);
    report->max = max_findings ? max_findings : coffer__limits(NULL).findings;
    *out = report;
    return COFFER_OK;
}

void coffer_report_free(coffer_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->count; i++)
        coffer__free(report->findings[i].text);
    coffer__free(report->findings);
    coffer__free(report);
}

void coffer_report_describe(coffer_node *parent, const char *name, const coffer_report *report)
{
    coffer_node *list = coffer_node_add_list(parent, name);
    for (size_t i = 0; i < report->count; i++) {
        const coffer_finding *finding = &report->findings[i];
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "code", coffer_status_name(finding->code));
        coffer_node_add_text(map, "severity", coffer_severity_name(finding->severity));
        coffer_node_add_offset(map, "offset", finding->offset);
        coffer_node_add_text(map, "text", finding->text);
    }
    uint64_t total = report->total[COFFER_NOTE] + report->total[COFFER_WARNING] + report->total[COFFER_ERROR];
    char key[64];
    snprintf(key, sizeof key, "%s_not_listed", name);
    if (total > report->count)
        coffer_node_add_u64(parent, key, total - report->count, COFFER_UNIT_NONE);
}

const char *coffer_report_limits(const coffer_report *report)
{
    return report->limits[0] ? report->limits : NULL;
}

void coffer__report_set_limits(coffer_report *report, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(report->limits, sizeof report->limits, format, list);
    va_end(list);
}

size_t coffer_report_count(const coffer_report *report)
{
    return report->count;
}

const coffer_finding *coffer_report_at(const coffer_report *report, size_t index)
{
    return index < report->count ? &report->findings[index] : NULL;
}

uint64_t coffer_report_total(const coffer_report *report, coffer_severity severity)
{
    return (unsigned)severity < SEVERITIES ? report->total[severity] : 0;
}

const char *coffer_severity_name(coffer_severity severity)
{
    static const char *const names[SEVERITIES] = { "note", "warning", "error" };
    return (unsigned)severity < SEVERITIES ? names[severity] : "unknown";
}

coffer_status coffer__report_take(coffer_report *report, coffer_severity severity, const coffer_error *found,
                                  coffer_error *err)
{
    if (!coffer__is_about_file(found->status))
        return coffer__fail_copy(err, found);
    coffer__report_add_error(report, severity, found);
    return COFFER_OK;
}

bool coffer__report_full(const coffer_report *report)
{
    return report->count >= report->max;
}

static bool make_room(coffer_report *report)
{
    return coffer__array_reserve_one(&report->findings, &report->capacity, report->count,
                                     sizeof *report->findings, NULL) == COFFER_OK;
}

/* Counts the finding, and keeps it if there is room. */
static bool add(coffer_report *report, coffer_status code, coffer_severity severity, uint64_t offset,
                const char *text)
{
    report->total[severity]++;
    if (coffer__report_full(report))
        return false;
    char *copy = make_room(report) ? coffer__strdup(text) : NULL;
    if (copy)
        report->findings[report->count++] = (coffer_finding){ code, severity, offset, copy };
    else
        report->no_memory = true;
    return !coffer__report_full(report);
}

bool coffer__report_add(coffer_report *report, coffer_status code, coffer_severity severity, uint64_t offset,
                        const char *format, ...)
{
    char text[sizeof((coffer_error *)NULL)->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    return add(report, code, severity, offset, text);
}

bool coffer__report_add_error(coffer_report *report, coffer_severity severity, const coffer_error *err)
{
    return add(report, err->status, severity, err->offset, err->text);
}

coffer_status coffer__report_status(const coffer_report *report, coffer_error *err)
{
    if (!report->no_memory)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE,
                        "out of memory for the findings: %zu were kept", report->count);
}
