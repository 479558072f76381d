/* Every schema that is accepted gives a set without findings. */
#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "fuzz";
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    char path[256];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/fuzz-mldf-schema-%ld", folder, (long)getpid());
    opts.page_size = 4096;
    opts.key = key;
    opts.threads = 1;
    if (coffer_mldf_writer_create_json(&writer, path, (const char *)data, size, &opts, NULL) != COFFER_OK)
        return 0;
    MUST(coffer_mldf_writer_end_sample(writer, NULL) == COFFER_OK);
    MUST(coffer_mldf_writer_commit(writer, NULL) == COFFER_OK);
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    MUST(coffer_check(report, src, NULL, NULL) == COFFER_OK);
    MUST(coffer_report_total(report, COFFER_ERROR) == 0);
    coffer_report_free(report);
    coffer_source_close(src);
    unlink(path);
    return 0;
}
