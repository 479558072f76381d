/* Every allocation and every file operation of committing to, looking at, compacting and repairing a matrix
 * fails once. */
#include "support/container.h"
#include "support/fault.h"

#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    const char *name; /* of the file that is looked at */
    uint64_t old_value, new_value;
    bool damaged;
    coffer_status (*act)(const char *folder, coffer_error *err);
} scenario;

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    const char *path = temp_path(folder, "m.pycauset");
    container file = container_make("{\"properties\":{\"v\":1,\"list\":[1,2]}}");
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    container_commit(path, "properties.v", 2);
    if (of->damaged) {
        size_t len;
        container damaged = { temp_read(path, &len), 0 };
        damaged.len = len;
        damaged.bytes[len - 1] ^= 1; /* the metadata of generation 2 */
        temp_write(path, damaged.bytes, damaged.len);
        container_free(&damaged);
    }
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    return ((const scenario *)context)->act(folder, err);
}

/* properties.v as a reader sees it; −1 without a file, −2 when it is damaged. */
static int64_t value_in(const char *path)
{
    coffer_source *src = NULL;
    coffer_pycauset *matrix = NULL;
    int64_t value = -2;
    if (!temp_exists(path))
        return -1;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_pycauset_open(&matrix, src, NULL, NULL) == COFFER_OK) {
        coffer_report *report = scan_check(src, true);
        if (coffer_report_total(report, COFFER_ERROR) == 0)
            value = coffer_pycauset_value_i64(
                coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.v"));
        coffer_report_free(report);
    }
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return value;
}

static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    int64_t before = of->old_value ? (int64_t)of->old_value : -1;
    int64_t now = value_in(temp_path(folder, of->name));
    if (now != before && now != (int64_t)of->new_value)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && now != (int64_t)of->new_value)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "m.pycauset", of->name, NULL);
    return NULL;
}

static coffer_status fill(coffer_pycauset_changes *changes, coffer_error *err)
{
    static const char json[] = "{\"z\":[1,-2,2.5,true],\"a\":{\"b\":\"c\"}}";
    coffer_status status;
    if ((status = coffer_pycauset_changes_set_u64(changes, "properties.v", 3, err)) ||
        (status = coffer_pycauset_changes_set_json(changes, "properties.j", json, sizeof json - 1, err)) ||
        (status = coffer_pycauset_changes_set_string(changes, "new.map.text", "text", 4, err)) ||
        (status = coffer_pycauset_changes_set_cached(changes, "trace", 1.5, err)) ||
        (status = coffer_pycauset_changes_set_checksums(changes, err)) ||
        (status = coffer_pycauset_changes_set_bool(changes, "view.is_transposed", true, err)))
        return status;
    return coffer_pycauset_changes_delete(changes, "properties.list.0", err);
}

static coffer_status set(const char *folder, coffer_error *err)
{
    coffer_pycauset_changes *changes = NULL;
    coffer_pycauset_editor *editor = NULL;
    coffer_status status;
    if ((status = coffer_pycauset_changes_new(&changes, err)) || (status = fill(changes, err)) ||
        (status = coffer_pycauset_editor_open(&editor, temp_path(folder, "m.pycauset"), NULL, err)))
        goto out;
    status = coffer_pycauset_editor_commit(NULL, editor, changes, err);
out:
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    return status;
}

static coffer_status compact(const char *folder, coffer_error *err)
{
    coffer_node *said = NULL;
    coffer_status status = coffer_node_new(&said, err);
    if (status == COFFER_OK)
        status = coffer_compact(said, temp_path(folder, "m.pycauset"), NULL, NULL, err);
    coffer_node_free(said);
    return status;
}

static coffer_status repair(const char *folder, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_status status;
    if ((status = coffer_source_open(&src, temp_path(folder, "m.pycauset"), NULL, err)) ||
        (status = coffer_report_new(&report, 0, err)))
        goto out;
    status = coffer_repair(report, src, temp_path(folder, "out.pycauset"), NULL, err);
out:
    coffer_report_free(report);
    coffer_source_close(src);
    return status;
}

/* Reading in every way there is. */
static coffer_status look(const char *folder, coffer_error *err)
{
    coffer_list_opts list = COFFER_LIST_OPTS_INIT;
    coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_node *node = NULL;
    coffer_pycauset_history *history = NULL;
    coffer_status status;
    list.what = "generations";
    describe.generation = 1;
    if ((status = coffer_source_open(&src, temp_path(folder, "m.pycauset"), NULL, err)) ||
        (status = coffer_report_new(&report, 0, err)) || (status = coffer_check(report, src, NULL, err)) ||
        (status = coffer_node_new(&node, err)) || (status = coffer_describe(node, src, &describe, err)) ||
        (status = coffer_list(node, src, &list, err)) || (status = coffer_list(node, src, NULL, err)) ||
        (status = coffer_pycauset_history_open(&history, src, NULL, err)))
        goto out;
    status = coffer_pycauset_value_diff(node, coffer_pycauset_history_at(history, 0)->metadata,
                                        coffer_pycauset_history_at(history, 1)->metadata, err);
out:
    coffer_pycauset_history_close(history);
    coffer_node_free(node);
    coffer_report_free(report);
    coffer_source_close(src);
    return status;
}

static void try_every_fault(scenario of)
{
    fault_test test = { setup, run, verify, &of };
    fault_each(&test);
}

static void a_commit_that_fails_leaves_the_old_state_or_the_new(void **state)
{
    (void)state;
    try_every_fault((scenario){ "m.pycauset", 2, 3, false, set });
}

static void a_compact_that_fails_leaves_the_file_as_it_was(void **state)
{
    (void)state;
    try_every_fault((scenario){ "m.pycauset", 2, 2, false, compact });
}

static void a_repair_that_fails_leaves_no_part_of_a_file(void **state)
{
    (void)state;
    try_every_fault((scenario){ "out.pycauset", 0, 1, true, repair });
}

static void looking_fails_cleanly(void **state)
{
    (void)state;
    try_every_fault((scenario){ "m.pycauset", 2, 2, false, look });
}

/* ---- An editor after a failure ---- */

static void after_a_failed_sync_an_editor_refuses_to_continue(void **state)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    coffer_pycauset_changes *changes = NULL;
    coffer_pycauset_editor *editor = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    scenario of = { "m.pycauset", 2, 3, false, NULL };
    (void)state;
    setup(temp_folder, &of);
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.v", 3, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    shim_refuse("coffer__os_sync_data", 5);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, &err), COFFER_E_IO);
    shim_refuse(NULL, 0);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, &err), COFFER_E_IO);
    coffer_pycauset_editor_close(editor);
    assert_int_equal(value_in(path), 2);
    assert_int_equal(container_commit(path, "properties.v", 4), 3);
    assert_int_equal(value_in(path), 4);
    coffer_pycauset_changes_free(changes);
}

static void count_sync(void *context, int fd)
{
    (void)fd;
    ++*(uint64_t *)context;
}

static void a_commit_syncs_as_often_as_its_durability_says(void **state)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    static const struct {
        coffer_durability durability;
        uint64_t syncs;
    } kinds[] = { { COFFER_DURABILITY_FULL, 2 },
                  { COFFER_DURABILITY_ORDERED, 1 },
                  { COFFER_DURABILITY_NONE, 0 } };
    coffer_pycauset_changes *changes = NULL;
    scenario of = { "m.pycauset", 2, 3, false, NULL };
    (void)state;
    setup(temp_folder, &of);
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.v", 3, NULL), COFFER_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        coffer_pycauset_editor_opts opts = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
        coffer_pycauset_editor *editor = NULL;
        uint64_t syncs = 0;
        shim_observer observer = { .synced = count_sync, .context = &syncs };
        opts.durability = kinds[i].durability;
        assert_int_equal(coffer_pycauset_editor_open(&editor, path, &opts, NULL), COFFER_OK);
        shim_observe(&observer);
        assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, NULL), COFFER_OK);
        shim_observe(NULL);
        assert_int_equal(syncs, kinds[i].syncs);
        coffer_pycauset_editor_close(editor);
    }
    coffer_pycauset_changes_free(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_that_fails_leaves_the_old_state_or_the_new),
        cmocka_unit_test(a_compact_that_fails_leaves_the_file_as_it_was),
        cmocka_unit_test(a_repair_that_fails_leaves_no_part_of_a_file),
        cmocka_unit_test(looking_fails_cleanly),
        cmocka_unit_test(after_a_failed_sync_an_editor_refuses_to_continue),
        cmocka_unit_test(a_commit_syncs_as_often_as_its_durability_says),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
