/* The GGUF reader accepts a file or fails with an error; an accepted model has no findings and survives a
 * round trip. */
#include "clean.h"
#include "tensors_cycle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const coffer_limits *limits(void)
{
    static coffer_limits small = COFFER_LIMITS_INIT;
    small.json_bytes = 1 << 20;
    small.memory_bytes = 1 << 24;
    return &small;
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
    if (strcmp(coffer_tensors_kind(set), "gguf") != 0)
        return;
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

static void must_hold_the_same(const coffer_tensors *set, const char *path, bool model)
{
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    coffer_tensors *other = NULL;
    coffer_node *root = NULL;
    if (model)
        fuzz_must_be_clean(path);
    opts.threads = 1;
    MUST(coffer_tensors_open_path(&other, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_node_new(&root, NULL) == COFFER_OK);
    MUST(coffer_tensors_diff(root, set, other, &opts, NULL) == COFFER_OK);
    const coffer_node *tensors = coffer_node_find(root, "tensors");
    MUST(coffer_node_get_u64(coffer_node_find(tensors, "identical")) == coffer_tensors_count(set));
    coffer_node_free(root);
    coffer_tensors_close(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Otherwise floats of one dimension are rounded to F32, as llama.cpp requires. */
    static const coffer_setting as_is = { "as-is", NULL };
    const tensors_cycle cycle = { "gguf", limits(), &as_is, 1, true, must_hold_the_same };
    must_cycle(&cycle, data, size, must_describe);
    return 0;
}
