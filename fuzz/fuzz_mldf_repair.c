/* The output of repair has no errors, and sets without errors stay so when they are changed and compacted. */
#include "clean.h"
#include "mldf_input.h"
#include "must.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *path_in(char *out, size_t size, const char *name)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, size, "%s/fuzz-mldf-%ld-%s", folder, (long)getpid(), name);
    return out;
}

static bool is_clean(const char *path, const coffer_limits *limits, uint64_t *samples)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    opts.limits = limits;
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    bool clean = fuzz_is_clean(src, limits);
    if (clean) {
        MUST(coffer_mldf_open(&set, src, &opts, NULL) == COFFER_OK);
        *samples = coffer_mldf_sample_count(set);
        coffer_mldf_close(set);
    }
    coffer_source_close(src);
    return clean;
}

/* Values may break the rules of their types in a file whose sums are right: repair saves bytes, it does not
 * judge them. Small files have their values checked too, so only what is not about a value must be right. */
static bool only_values_are_wrong(const coffer_report *report)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->severity == COFFER_ERROR && strncmp(finding->text, "sample", 6) != 0)
            return false;
    }
    return true;
}

static void try_repair(const fuzz_input *input, const uint8_t *key, const char *path)
{
    coffer_mldf_repair_opts opts = COFFER_MLDF_REPAIR_OPTS_INIT;
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.limits = check_opts.limits = &input->limits;
    opts.key = key;
    opts.overwrite = true;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_mldf_repair(report, input->source, path, &opts, NULL) == COFFER_OK) {
        coffer_report *after = NULL;
        MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
        MUST(coffer_report_new(&after, 0, NULL) == COFFER_OK);
        MUST(coffer_check(after, src, &check_opts, NULL) == COFFER_OK);
        MUST(only_values_are_wrong(after));
        coffer_report_free(after);
        coffer_source_close(src);
    }
    coffer_report_free(report);
}

static void try_extract(const fuzz_input *input, const uint8_t *data, size_t size, const char *path)
{
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_extract_opts extract = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf *set = fuzz_open_set(input, data, size);
    extract.write = &opts;
    opts.overwrite = true;
    opts.limits = &input->limits;
    opts.threads = 1;
    opts.page_size = 4096;
    if (set)
        MAY_FAIL(coffer_mldf_extract(path, set, &extract, NULL));
    coffer_mldf_close(set);
}

static void try_changes(const char *path, const coffer_limits *limits, uint64_t samples)
{
    static const uint64_t first = 0;
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_compact_opts compact_opts = COFFER_COMPACT_OPTS_INIT;
    coffer_mldf_update_opts update = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_node *out = NULL;
    uint64_t now = 0;
    opts.threads = 1;
    opts.limits = compact_opts.limits = limits;
    opts.dedup = true;
    update.threads = 1;
    update.limits = limits;
    update.dedup = true;
    if (coffer_mldf_writer_append_to(&writer, path, &opts, NULL) != COFFER_OK)
        return;
    MUST(coffer_mldf_writer_end_sample(writer, NULL) == COFFER_OK);
    if (coffer_mldf_writer_commit(writer, NULL) != COFFER_OK)
        return;
    MUST(is_clean(path, limits, &now) && now == samples + 1);
    if (coffer_mldf_update_delete(path, &first, 1, &update, NULL) == COFFER_OK)
        MUST(is_clean(path, limits, &now) && now == samples);
    MUST(coffer_node_new(&out, NULL) == COFFER_OK);
    if (coffer_compact(out, path, NULL, &compact_opts, NULL) == COFFER_OK)
        MUST(is_clean(path, limits, &samples) && now == samples);
    coffer_node_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256], repaired[256];
    uint64_t samples = 0;
    fuzz_input input;
    FILE *file;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    path_in(path, sizeof path, "input");
    path_in(repaired, sizeof repaired, "repaired");
    try_repair(&input, fuzz_key(data, size), repaired);
    try_extract(&input, data, size, repaired);
    file = fopen(path, "wb");
    MUST(file && fwrite(input.bytes, 1, input.size, file) == input.size);
    fclose(file);
    if (is_clean(path, &input.limits, &samples) && samples < 1000)
        try_changes(path, &input.limits, samples);
    unlink(path);
    unlink(repaired);
    fuzz_input_close(&input);
    return 0;
}
