/* The GGUF reader accepts a file or fails with an error; an accepted model has no findings and survives a
 * round trip. */
#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const coffer_limits *limits(void)
{
    static coffer_limits small = COFFER_LIMITS_INIT;
    small.json_bytes = 1 << 20;
    small.memory_bytes = 1 << 24;
    return &small;
}

static coffer_tensors *open_set(const char *path)
{
    coffer_tensors *set = NULL;
    MUST(coffer_tensors_open_path(&set, path, NULL, NULL) == COFFER_OK);
    return set;
}

static void must_count_all(const coffer_tensor_stats *stats)
{
    uint64_t in_bins = 0;
    for (size_t i = 0; i < COFFER_TENSOR_HISTOGRAM_BINS; i++)
        in_bins += stats->histogram[i];
    MUST(in_bins == stats->elements - stats->nans - stats->infinities);
}

static void must_describe(const coffer_tensors *set)
{
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    opts.threads = 1;
    MUST(coffer_node_new(&root, NULL) == COFFER_OK);
    MUST(coffer_tensors_metadata(root, set, &err) == COFFER_OK || err.status == COFFER_E_LIMIT);
    coffer_node_free(root);
    coffer_status status = coffer_tensors_stats_new(&stats, set, &opts, &err);
    MUST(status == COFFER_OK || status == COFFER_E_UNSUPPORTED || status == COFFER_E_LIMIT);
    for (size_t i = 0; !status && i < coffer_tensors_stats_count(stats); i++)
        must_count_all(coffer_tensors_stats_at(stats, i));
    coffer_tensors_stats_free(stats);
}

static void must_be_clean(const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.full = true;
    opts.threads = 1;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_check(report, src, &opts, NULL) == COFFER_OK);
    MUST(coffer_report_total(report, COFFER_ERROR) == 0);
    coffer_source_close(src);
    coffer_report_free(report);
}

static coffer_status convert(coffer_source *in, const char *to, coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    opts.limits = limits();
    /* Otherwise floats of one dimension are rounded to F32, as llama.cpp requires. */
    static const coffer_setting as_is = { "as-is", NULL };
    size_t len = strlen(to);
    opts.settings = &as_is;
    opts.setting_count = len > 5 && strcmp(to + len - 5, ".gguf") == 0;
    coffer_status status = coffer_convert(in, to, &opts, err);
    MUST(status == COFFER_OK || (err->text[0] != 0 && access(to, F_OK) != 0));
    return status;
}

static void must_hold_the_same(const coffer_tensors *set, const char *path)
{
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    coffer_tensors *other = open_set(path);
    coffer_node *root = NULL;
    opts.threads = 1;
    MUST(coffer_node_new(&root, NULL) == COFFER_OK);
    MUST(coffer_tensors_diff(root, set, other, &opts, NULL) == COFFER_OK);
    const coffer_node *tensors = coffer_node_find(root, "tensors");
    MUST(coffer_node_get_u64(coffer_node_find(tensors, "identical")) == coffer_tensors_count(set));
    coffer_node_free(root);
    coffer_tensors_close(other);
}

static void must_round_trip(coffer_source *src, const coffer_tensors *set)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *model_src = NULL;
    char model[64], back[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(model, sizeof model, "%s/coffer-fuzz-%d.mcf", folder, (int)getpid());
    snprintf(back, sizeof back, "%s/coffer-fuzz-%d.gguf", folder, (int)getpid());
    if (convert(src, model, &err) != COFFER_OK)
        return;
    must_be_clean(model);
    must_hold_the_same(set, model);
    MUST(coffer_source_open(&model_src, model, NULL, NULL) == COFFER_OK);
    if (convert(model_src, back, &err) == COFFER_OK) {
        must_hold_the_same(set, back);
        unlink(back);
    }
    coffer_source_close(model_src);
    unlink(model);
}

/* Whatever is saved of a damaged file is a file without damage. */
static void must_repair(const uint8_t *data, size_t size)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_tensors *set = NULL;
    char in[64], out[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(in, sizeof in, "%s/coffer-fuzz-%d-in.gguf", folder, (int)getpid());
    snprintf(out, sizeof out, "%s/coffer-fuzz-%d-out.gguf", folder, (int)getpid());
    FILE *file = fopen(in, "wb");
    MUST(file);
    MUST(fwrite(data, 1, size, file) == size);
    MUST(fclose(file) == 0);
    opts.overwrite = true;
    opts.limits = limits();
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_tensors_repair(report, in, out, &opts, &err) == COFFER_OK) {
        MUST(coffer_tensors_open_path(&set, out, NULL, NULL) == COFFER_OK);
        coffer_tensors_close(set);
        unlink(out);
    } else {
        MUST(err.text[0] != 0 && access(out, F_OK) != 0);
    }
    coffer_report_free(report);
    unlink(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *set = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.limits = limits();
    MUST(coffer_source_from_memory(&src, data, size, NULL) == COFFER_OK);
    if (coffer_tensors_open(&set, src, &opts, &err) != COFFER_OK) {
        MUST(err.text[0] != 0);
        must_repair(data, size);
    } else if (strcmp(coffer_tensors_kind(set), "gguf") == 0) {
        must_describe(set);
        must_round_trip(src, set);
    }
    coffer_tensors_close(set);
    coffer_source_close(src);
    return 0;
}
