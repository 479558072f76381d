/* An importer of matrices writes a matrix without findings, or fails with an error. */
#include "clean.h"
#include "coffer/coffer.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Without HDF5: this target is not meant to find errors of libhdf5. */
static const char *kind_of(const uint8_t *data, size_t size)
{
    if (size && data[0] == 0x93)
        return "npy";
    if (size > 1 && data[0] == 'P' && data[1] == 'K')
        return "npz";
    if (size && data[0] == '%')
        return "mtx";
    return size && data[0] == 0 ? "raw" : "csv";
}

/* Some settings, by the size of the input, so that an input stays the same case. */
static size_t choose_settings(coffer_setting *settings, const char *kind, size_t size)
{
    static const char *const types[] = { "dense", "triangular", "symmetric", "antisymmetric", "causal" };
    static const char *const dtypes[] = { "f32", "bit", "u8", "c32", "i64" };
    size_t count = 0;
    bool is_raw = strcmp(kind, "raw") == 0;
    if (is_raw || size % 4 == 1)
        settings[count++] = (coffer_setting){ "dtype", dtypes[size / 4 % 5] };
    if (size % 3 == 1)
        settings[count++] = (coffer_setting){ "type", types[size / 3 % 5] };
    if (size % 5 == 1)
        settings[count++] = (coffer_setting){ "checksum", NULL };
    if (is_raw && size % 2)
        settings[count++] = (coffer_setting){ "cols", "3" };
    if (strcmp(kind, "npz") == 0)
        settings[count++] = (coffer_setting){ "member", "a" };
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_setting settings[8];
    coffer_source *source = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char path[64];

    limits.json_bytes = 1 << 20;
    limits.memory_bytes = 1 << 20;
    opts.from = kind_of(data, size);
    opts.to = "pycauset";
    opts.limits = &limits;
    opts.settings = settings;
    opts.setting_count = choose_settings(settings, opts.from, size);
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-matrix",
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
