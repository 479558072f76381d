/* An importer of training sets writes a set without findings, or fails with an error. */
#ifndef COFFER_FUZZ_MLDF_IMPORT_H
#define COFFER_FUZZ_MLDF_IMPORT_H

#include "coffer/coffer.h"
#include "coffer/mldf.h"
#include "must.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must_be_clean_set(const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *source = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.full = true;
    opts.threads = 1;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_check(report, source, &opts, &err) == COFFER_OK);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->severity == COFFER_ERROR)
            fprintf(stderr, "%s\n", finding->text);
    }
    MUST(coffer_report_total(report, COFFER_ERROR) == 0);
    coffer_source_close(source);
    coffer_report_free(report);
}

static inline int fuzz_import(const char *kind, const uint8_t *data, size_t size)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *source = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char path[64];
    limits.json_bytes = 1 << 20;
    limits.memory_bytes = 1 << 24;
    opts.from = kind;
    opts.to = "mldf";
    opts.limits = &limits;
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid(), kind);
    MUST(coffer_source_from_memory(&source, data, size, NULL) == COFFER_OK);
    if (coffer_convert(source, path, &opts, &err) == COFFER_OK) {
        must_be_clean_set(path);
        unlink(path);
    } else {
        MUST(err.text[0] != 0);
        MUST(access(path, F_OK) != 0);
    }
    coffer_source_close(source);
    return 0;
}

#endif
