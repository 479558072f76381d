/* Every allocation and every file operation of reading, checking and comparing fails once; and where nothing
 * may be allocated, nothing is. */
#include "support/dataset.h"
#include "support/fault.h"

#include <stdlib.h>

enum { SAMPLES = 12 };

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "fault";

static void setup(const char *folder, void *context)
{
    dataset_opts opts = { .checksummed = true, .key = key, .unsized = *(bool *)context };
    dataset *made = dataset_small(SAMPLES, &opts);
    size_t len;
    uint8_t *bytes = dataset_make(&len, NULL, made);
    temp_write(temp_path(folder, "s.mldf"), bytes, len);
    free(bytes);
    dataset_free(made);
}

static coffer_status read_values(const coffer_mldf *set, coffer_error *err)
{
    const coffer_mldf_column_opts column = { sizeof column, 1 };
    coffer_bytes found = COFFER_BYTES_INIT;
    int64_t labels[SAMPLES];
    coffer_status status = coffer_mldf_read_column(labels, set, SMALL_LABEL, 0, SAMPLES, &column, err);
    for (uint64_t i = 0; status == COFFER_OK && i < SAMPLES; i++) {
        for (size_t f = 0; status == COFFER_OK && f < SMALL_FIELDS; f++)
            status = coffer_mldf_read(&found, NULL, set, i, f, err);
    }
    if (status == COFFER_OK)
        status = coffer_mldf_get_text(&found, set, 1, SMALL_CAPTION, err);
    coffer_free(found.data);
    return status;
}

static coffer_status read_batch(coffer_mldf_batch *batch, coffer_error *err)
{
    static uint8_t data[SMALL_FIELDS][SAMPLES * 256];
    static uint64_t offsets[SMALL_FIELDS][SAMPLES + 1];
    static const uint64_t samples[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
    coffer_mldf_target targets[SMALL_FIELDS];
    for (size_t f = 0; f < SMALL_FIELDS; f++)
        targets[f] = (coffer_mldf_target){
            sizeof(coffer_mldf_target), f, data[f], sizeof data[f], 0, offsets[f], NULL
        };
    return coffer_mldf_batch_read(batch, samples, 8, targets, SMALL_FIELDS, err);
}

static coffer_status open_and_read(coffer_source *src, coffer_error *err)
{
    const coffer_mldf_find_damaged_opts damage = { sizeof damage, 1, NULL };
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_batch_opts batch_opts = COFFER_MLDF_BATCH_OPTS_INIT;
    coffer_mldf_batch *batch = NULL;
    coffer_mldf *set = NULL;
    uint64_t *damaged = NULL, count;
    coffer_status status;
    opts.verify = true;
    opts.key = key;
    batch_opts.threads = 1;
    if (!(status = coffer_mldf_open(&set, src, &opts, err)) && !(status = read_values(set, err)) &&
        !(status = coffer_mldf_batch_new(&batch, set, &batch_opts, err)) &&
        !(status = read_batch(batch, err)))
        status = coffer_mldf_find_damaged(&damaged, &count, set, &damage, err);
    coffer_free(damaged);
    coffer_mldf_batch_free(batch);
    coffer_mldf_close(set);
    return status;
}

static coffer_status use_verbs(coffer_source *src, coffer_error *err)
{
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    coffer_diff_opts diff_opts = COFFER_DIFF_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_node *node = NULL;
    coffer_status status;
    check_opts.full = true;
    check_opts.key = diff_opts.key = key;
    check_opts.threads = diff_opts.threads = 1;
    if (!(status = coffer_report_new(&report, 0, err)) && !(status = coffer_node_new(&node, err)) &&
        !(status = coffer_check(report, src, &check_opts, err)) &&
        !(status = coffer_describe(node, src, NULL, err)) && !(status = coffer_list(node, src, NULL, err)))
        status = coffer_diff(node, src, src, &diff_opts, err);
    if (status == COFFER_OK && coffer_report_total(report, COFFER_ERROR) > 0)
        fail_msg("%s", coffer_report_at(report, 0)->text);
    coffer_report_free(report);
    coffer_node_free(node);
    return status;
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_status status;
    (void)context;
    opts.access = COFFER_ACCESS_READ;
    if (!(status = coffer_source_open(&src, temp_path(folder, "s.mldf"), &opts, err)) &&
        !(status = open_and_read(src, err)))
        status = use_verbs(src, err);
    coffer_source_close(src);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    (void)which;
    temp_assert_only(folder, "s.mldf", NULL);
    return NULL;
}

static void reading_survives_every_failure(void **state)
{
    bool unsized = false;
    fault_test test = { setup, run, verify, &unsized };
    (void)state;
    fault_each(&test);
}

static void reading_frames_of_unknown_size_survives_every_failure(void **state)
{
    bool unsized = true;
    fault_test test = { setup, run, verify, &unsized };
    (void)state;
    fault_each(&test);
}

/* One thread: with two, the memory of a worker grows when it first gets the largest share. */
static void batches_allocate_nothing_after_the_first_calls(void **state)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_batch_opts batch_opts = COFFER_MLDF_BATCH_OPTS_INIT;
    char *folder = temp_make();
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool unsized = i & 1;
        coffer_source_opts access = COFFER_SOURCE_OPTS_INIT;
        coffer_source *src = NULL;
        coffer_mldf *set = NULL;
        coffer_mldf_batch *batch = NULL;
        setup(folder, &unsized);
        access.access = i & 2 ? COFFER_ACCESS_READ : COFFER_ACCESS_MAP;
        assert_int_equal(coffer_source_open(&src, temp_path(folder, "s.mldf"), &access, NULL), COFFER_OK);
        opts.verify = true;
        opts.key = key;
        batch_opts.threads = 1;
        assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_batch_new(&batch, set, &batch_opts, NULL), COFFER_OK);
        for (int warm = 0; warm < 2; warm++)
            assert_int_equal(read_batch(batch, NULL), COFFER_OK);
        shim_arm(SHIM_NO_MEMORY, 1);
        for (int round = 0; round < 20; round++)
            assert_int_equal(read_batch(batch, NULL), COFFER_OK);
        assert_false(shim_fired());
        shim_disarm();
        coffer_mldf_batch_free(batch);
        coffer_mldf_close(set);
        coffer_source_close(src);
    }
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_every_failure),
        cmocka_unit_test(reading_frames_of_unknown_size_survives_every_failure),
        cmocka_unit_test(batches_allocate_nothing_after_the_first_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
