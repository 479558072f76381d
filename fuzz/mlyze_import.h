/* Every importer of traces writes a trace without findings, or fails with a message and leaves no file. */
#ifndef COFFER_FUZZ_MLYZE_IMPORT_H
#define COFFER_FUZZ_MLYZE_IMPORT_H

#include "coffer/coffer.h"
#include "coffer/mlyze.h"
#include "must.h"

#include <string.h>
#include <unistd.h>

static inline void must_be_a_clean_trace(const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *source = NULL;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_stats *stats = NULL;
    opts.full = true;
    opts.threads = 1;
    query.threads = 1;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_check(report, source, &opts, NULL) == COFFER_OK);
    MUST(coffer_report_total(report, COFFER_ERROR) == 0);
    MUST(coffer_mlyze_open(&trace, source, NULL, NULL) == COFFER_OK);
    MUST(coffer_mlyze_stats_new(&stats, trace, &query, NULL) == COFFER_OK);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(source);
    coffer_report_free(report);
}

static inline void import_any(const uint8_t *data, size_t size, const char *kind)
{
    static const coffer_setting partial = { "partial", NULL };
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *source = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char path[64], index[80];
    limits.json_bytes = 1 << 22;
    limits.memory_bytes = 1 << 22;
    limits.entries = 1 << 14;
    opts.from = kind;
    opts.to = "mlyze";
    opts.limits = &limits;
    opts.settings = &partial;
    opts.setting_count = size % 2;
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-import.mlyze",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    snprintf(index, sizeof index, "%s.idx", path);
    MUST(coffer_source_from_memory(&source, data, size, NULL) == COFFER_OK);
    if (coffer_convert(source, path, &opts, &err) == COFFER_OK) {
        must_be_a_clean_trace(path);
        unlink(path);
        unlink(index);
    } else {
        MUST(err.text[0] != 0);
        MUST(access(path, F_OK) != 0);
    }
    coffer_source_close(source);
}

#endif
