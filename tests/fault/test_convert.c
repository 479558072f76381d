/* Every allocation and every file operation of a conversion fails once: no leak, no partial output. */
#include "support/fault.h"

#include "coffer/coffer.h"

#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    const char *in, *out; /* names in the folder */
    const coffer_setting *settings;
    size_t setting_count;
    bool writes_metadata;
} scenario;

static const char rows_csv[] = "token_idx,param_name,block_idx,activation,grad_norm,sequence\n"
                               "0,\"a, b\",0,0.5,1,0\n1,c,1,-3.25,2,0\n2,c,2,7,3,1\n";
static const char rows_jsonl[] =
    "{\"token_idx\":0,\"param_id\":1,\"block_idx\":2,\"activation\":3,\"grad_norm\":4}\n";
static const char metadata_path[] = "meta.json";

static void setup(const char *folder, void *context)
{
    (void)context;
    temp_copy(COFFER_TEST_DATA "/vectors/mscan/two-sequences.mscan", temp_path(folder, "s.mscan"));
    temp_write(temp_path(folder, "rows.csv"), rows_csv, sizeof rows_csv - 1);
    temp_write(temp_path(folder, "rows.jsonl"), rows_jsonl, sizeof rows_jsonl - 1);
    temp_write(temp_path(folder, "names.txt"), "first\nsecond\n", 13);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    const scenario *of = context;
    coffer_source *src = NULL;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_setting settings[4];
    /* Settings that name a file get the folder in front. */
    for (size_t i = 0; i < of->setting_count; i++) {
        settings[i] = of->settings[i];
        if (strcmp(settings[i].name, "metadata") == 0 || strcmp(settings[i].name, "param-names") == 0)
            settings[i].value = temp_path(folder, settings[i].value);
    }
    opts.settings = settings;
    opts.setting_count = of->setting_count;
    coffer_status status = coffer_source_open(&src, temp_path(folder, of->in), NULL, err);
    if (status == COFFER_OK)
        status = coffer_convert(src, temp_path(folder, of->out), &opts, err);
    coffer_source_close(src);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    bool is_there = temp_exists(temp_path(folder, of->out));
    if (which->status == COFFER_OK && !is_there)
        return "reported as done, and is not";
    if (which->status == COFFER_OK && of->writes_metadata && !temp_exists(temp_path(folder, metadata_path)))
        return "the metadata is missing";
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, "s.mscan", "rows.csv", "rows.jsonl", "names.txt", of->out,
                              metadata_path, NULL);
    return NULL;
}

static void fails_cleanly(scenario of)
{
    fault_test test = { setup, run, verify, &of };
    fault_each(&test);
}

static void a_scan_to_an_array_fails_cleanly(void **state)
{
    (void)state;
    static const coffer_setting settings[] = { { "metadata", metadata_path }, { "param", "*.q_proj.*" } };
    fails_cleanly((scenario){ "s.mscan", "out.npy", settings, 2, true });
}

static void a_scan_to_text_fails_cleanly(void **state)
{
    (void)state;
    static const coffer_setting settings[] = { { "names", NULL }, { "sequence", "1" } };
    fails_cleanly((scenario){ "s.mscan", "out.csv", settings, 2, false });
    fails_cleanly((scenario){ "s.mscan", "out.jsonl", settings, 2, false });
}

static void rows_to_a_scan_fail_cleanly(void **state)
{
    (void)state;
    static const coffer_setting quantize[] = { { "quantize", NULL }, { "model-name", "m" } };
    static const coffer_setting names[] = { { "param-names", "names.txt" }, { "sequence-lengths", "1,2" } };
    fails_cleanly((scenario){ "rows.csv", "out.mscan", quantize, 2, false });
    fails_cleanly((scenario){ "rows.jsonl", "out.mscan", names, 2, false });
}

/* ---- Comparing and walking write nothing, but may run out of memory ---- */

static coffer_status compare(const char *folder, void *context, coffer_error *err)
{
    coffer_source *a = NULL, *b = NULL;
    coffer_node *root = NULL;
    (void)context;
    coffer_status status = coffer_source_open(&a, temp_path(folder, "s.mscan"), NULL, err);
    if (status == COFFER_OK)
        status =
            coffer_source_open(&b, COFFER_TEST_DATA "/vectors/mscan/tokens-without-records.mscan", NULL, err);
    if (status == COFFER_OK)
        status = coffer_node_new(&root, err);
    if (status == COFFER_OK)
        status = coffer_diff(root, a, b, NULL, err);
    coffer_node_free(root);
    coffer_source_close(a);
    coffer_source_close(b);
    return status;
}

static coffer_status walk(const char *folder, void *context, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mscan *scan = NULL;
    coffer_mscan_replay *replay = NULL;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    bool more = true;
    (void)context;
    coffer_status status = coffer_source_open(&src, temp_path(folder, "s.mscan"), NULL, err);
    if (status == COFFER_OK)
        status = coffer_mscan_open(&scan, src, NULL, err);
    if (status == COFFER_OK)
        status = coffer_mscan_replay_new(&replay, scan, NULL, err);
    while (status == COFFER_OK && more)
        status = coffer_mscan_replay_next(&more, &step, replay, err);
    coffer_mscan_replay_free(replay);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    return status;
}

static const char *nothing_to_verify(const char *folder, void *context, const fault_case *which)
{
    (void)folder;
    (void)context;
    (void)which;
    return NULL;
}

static void a_comparison_fails_cleanly(void **state)
{
    (void)state;
    fault_test test = { setup, compare, nothing_to_verify, NULL };
    fault_each(&test);
}

static void a_walk_fails_cleanly(void **state)
{
    (void)state;
    fault_test test = { setup, walk, nothing_to_verify, NULL };
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_to_an_array_fails_cleanly),
        cmocka_unit_test(a_scan_to_text_fails_cleanly),
        cmocka_unit_test(rows_to_a_scan_fail_cleanly),
        cmocka_unit_test(a_comparison_fails_cleanly),
        cmocka_unit_test(a_walk_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
