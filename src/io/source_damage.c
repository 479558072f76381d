/* Damage that a caller accepts: readers report it and continue. */
#include "base/fail.h"
#include "base/report.h"
#include "io/source_struct.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { COMPARED = 150 }; /* bytes of two findings: the report may shorten long ones */

/* Readers of one source may run in several threads, and sources may share a report. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(coffer_report *) default_report;
static atomic_bool refused;

void coffer_source_keep_damaged(coffer_source *src, coffer_report *out)
{
    src->damage = out;
}

void coffer_keep_damaged(coffer_report *out)
{
    atomic_store(&default_report, out);
}

coffer_report *coffer__source_default_damage_report(void)
{
    return atomic_load(&default_report);
}

bool coffer_stopped_at_damage(void)
{
    return atomic_load(&refused);
}

coffer_report *coffer__source_damage_report(const coffer_source *src)
{
    return src->damage;
}

static bool is_reported(const coffer_report *report, uint64_t offset, const char *text)
{
    for (size_t i = coffer_report_count(report); i > 0; i--) {
        const coffer_finding *finding = coffer_report_at(report, i - 1);
        if (finding->offset == offset && strncmp(finding->text, text, COMPARED) == 0)
            return true;
    }
    return false;
}

coffer_status coffer__source_accept_damage(const coffer_source *src, const coffer_error *found,
                                           coffer_error *err)
{
    char text[sizeof found->text + 64];
    if (!src->damage) {
        atomic_store(&refused, true);
        return coffer__fail_copy(err, found);
    }
    /* The default report is that of all sources: its findings name the file. */
    bool shared = src->damage == coffer__source_default_damage_report();
    snprintf(text, sizeof text, "%.60s%s%s", shared ? src->name : "", shared ? ": " : "", found->text);
    pthread_mutex_lock(&mutex);
    if (!is_reported(src->damage, found->offset, text))
        coffer__report_add(src->damage, found->status, COFFER_ERROR, found->offset, "%s", text);
    pthread_mutex_unlock(&mutex);
    return COFFER_OK;
}

coffer_status coffer__source_describe_damage(coffer_node *out, const coffer_report *damage, coffer_error *err)
{
    if (coffer_report_count(damage) > 0)
        coffer_report_describe(out, "damaged", damage);
    return coffer_node_status(out, err);
}
