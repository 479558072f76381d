/* An importer of scans writes a scan without findings, or fails with an error. */
#include "clean.h"
#include "coffer/coffer.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *kind_of(const uint8_t *data, size_t size)
{
    if (size && data[0] == 0x93)
        return "npy";
    return size && data[0] == '{' ? "jsonl" : "csv";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const coffer_setting quantize = { "quantize", NULL };
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *source = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char path[64];

    limits.json_bytes = 1 << 20;
    limits.memory_bytes = 1 << 24;
    opts.from = kind_of(data, size);
    opts.to = "mscan";
    opts.limits = &limits;
    opts.settings = &quantize;
    opts.setting_count = size % 2;
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-import",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    MUST(coffer_source_from_memory(&source, data, size, NULL) == COFFER_OK);
    if (coffer_convert(source, path, &opts, &err) == COFFER_OK) {
        fuzz_must_be_clean(path);
        unlink(path);
    } else {
        MUST(err.text[0] != 0);
        MUST(access(path, F_OK) != 0);
    }
    coffer_source_close(source);
    return 0;
}
