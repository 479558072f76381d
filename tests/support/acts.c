#include "support/acts.h"

#include "support/temp.h"

coffer_report *acts_check(coffer_source *src, bool full)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    opts.full = full;
    opts.threads = 2;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_check(report, src, &opts, &err) != COFFER_OK)
        fail_msg("%s: %s", coffer_source_name(src), err.text);
    return report;
}

bool acts_found(const coffer_report *report, coffer_status code, coffer_severity severity)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->code == code && finding->severity == severity)
            return true;
    }
    return false;
}

const char *acts_text(const coffer_report *report, coffer_status code)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (coffer_report_at(report, i)->code == code)
            return coffer_report_at(report, i)->text;
    }
    return "";
}

coffer_status acts_compact(const char *path, coffer_error *err)
{
    coffer_node *out = NULL;
    coffer_status status = coffer_node_new(&out, err);
    if (!status)
        status = coffer_compact(out, path, NULL, NULL, err);
    coffer_node_free(out);
    return status;
}

coffer_status acts_repair(const char *path, const uint8_t *key, coffer_error *err)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.overwrite = true;
    opts.key = key;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_report_new(&report, 0, err);
    if (!status)
        status = coffer_repair(report, src, path, &opts, err);
    coffer_report_free(report);
    coffer_source_close(src);
    return status;
}
