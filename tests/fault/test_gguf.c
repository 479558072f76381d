/* Every allocation and every file operation of GGUF conversions, statistics and comparison fails once: no
 * leak, no litter, the old file as it was. */
#include "support/fault.h"
#include "support/gguf.h"

#include "coffer/coffer.h"

#include <string.h>

static const char old_bytes[] = "what was there before";

static void setup(const char *folder, void *context)
{
    const char *const *files = context;
    temp_copy(COFFER_TEST_DATA "/compat/gguf/plain.gguf", temp_path(folder, "plain.gguf"));
    temp_copy(COFFER_TEST_DATA "/compat/gguf/blocks.gguf", temp_path(folder, "blocks.gguf"));
    temp_copy(COFFER_TEST_DATA "/vectors/mcf/quantised.mcf", temp_path(folder, "quantised.mcf"));
    temp_copy(COFFER_TEST_DATA "/compat/models/qwen3.mcf", temp_path(folder, "pack.mcf"));
    if (files[1])
        temp_write(temp_path(folder, files[1]), old_bytes, sizeof old_bytes);
}

static coffer_status convert(const char *folder, void *context, coffer_error *err)
{
    const char *const *files = context;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, temp_path(folder, files[0]), NULL, err);
    if (!status)
        status = coffer_convert(src, temp_path(folder, files[1]), &opts, err);
    coffer_source_close(src);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const char *const *files = context;
    const char *out = temp_path(folder, files[1]);
    coffer_tensors *set = NULL;
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, "plain.gguf", "blocks.gguf", "quantised.mcf", "pack.mcf", files[1],
                              NULL);
    if (temp_holds(out, old_bytes, sizeof old_bytes))
        return which->status == COFFER_OK ? "reported as done, and is not" : NULL;
    /* A failure after the rename leaves the new file, whole. */
    if (coffer_tensors_open_path(&set, out, NULL, NULL))
        return "neither old nor new";
    coffer_tensors_close(set);
    return NULL;
}

static void fails_cleanly(const char *in, const char *out)
{
    const char *files[2] = { in, out };
    fault_test test = { setup, convert, verify, files };
    fault_each(&test);
}

static void gguf_to_a_model_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("plain.gguf", "out.mcf");
    fails_cleanly("blocks.gguf", "out.mcf");
}

static void a_model_to_gguf_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("quantised.mcf", "out.gguf");
    fails_cleanly("pack.mcf", "out.gguf");
}

static coffer_status measure(const char *folder, void *context, coffer_error *err)
{
    coffer_tensors_stats_opts stats_opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_diff_opts diff_opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *a = NULL, *b = NULL;
    coffer_node *root = NULL;
    (void)context;
    stats_opts.threads = 1;
    diff_opts.threads = 1;
    opts.access = COFFER_ACCESS_READ;
    coffer_status status = coffer_node_new(&root, err);
    if (!status)
        status = coffer_tensors_open_path(&a, temp_path(folder, "plain.gguf"), &opts, err);
    if (!status)
        status = coffer_tensors_open_path(&b, temp_path(folder, "blocks.gguf"), &opts, err);
    if (!status)
        status = coffer_tensors_stats_new(&stats, b, &stats_opts, err);
    if (!status)
        status = coffer_tensors_diff(root, a, b, &diff_opts, err);
    if (!status)
        status = coffer_tensors_diff(root, b, b, &diff_opts, err);
    coffer_tensors_stats_free(stats);
    coffer_tensors_close(a);
    coffer_tensors_close(b);
    coffer_node_free(root);
    return status;
}

static const char *verify_nothing(const char *folder, void *context, const fault_case *which)
{
    (void)folder;
    (void)context;
    (void)which;
    return NULL;
}

static void statistics_and_comparison_fail_cleanly(void **state)
{
    const char *files[2] = { NULL, NULL };
    fault_test test = { setup, measure, verify_nothing, files };
    (void)state;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_to_a_model_fails_cleanly),
        cmocka_unit_test(a_model_to_gguf_fails_cleanly),
        cmocka_unit_test(statistics_and_comparison_fail_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
