/* Files that a target has written must have no findings. */
#ifndef COFFER_FUZZ_CLEAN_H
#define COFFER_FUZZ_CLEAN_H

#include "coffer/coffer.h"
#include "must.h"

/* limits : may be NULL. */
static inline bool fuzz_is_clean(coffer_source *src, const coffer_limits *limits)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    opts.threads = 1;
    opts.limits = limits;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    bool clean =
        coffer_check(report, src, &opts, NULL) == COFFER_OK && coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    return clean;
}

static inline void fuzz_must_be_clean(const char *path)
{
    coffer_source *src = NULL;
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    MUST(fuzz_is_clean(src, NULL));
    coffer_source_close(src);
}

#endif
