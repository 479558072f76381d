/* A crash at any point of a commit, a compact or a repair of a matrix leaves the old state or the new one. */
#include "support/container.h"
#include "support/crash.h"

#include <string.h>

typedef struct scenario {
    const char *name;              /* of the file that is looked at */
    uint64_t old_value, new_value; /* of properties.v; an old one of 0: no file before */
    bool damaged;                  /* the file before has a broken slot */
    bool unfinished;               /* and an uncommitted block at its end */
} scenario;

static void write_old(const char *folder, void *context)
{
    const scenario *of = context;
    container file = container_make("{\"properties\":{\"v\":1}}");
    if (of->unfinished)
        container_append_block(&file, "{\"properties\":{\"v\":77}}");
    if (of->damaged)
        file.bytes[CONTAINER_SLOT_B] ^= 1;
    temp_write(temp_path(folder, "m.pycauset"), file.bytes, file.len);
    container_free(&file);
}

static void write_old_with_history(const char *folder, void *context)
{
    write_old(folder, context);
    for (uint64_t v = 2; v < 5; v++)
        container_commit(temp_path(folder, "m.pycauset"), "properties.v", v);
}

/* Sets v with a text that takes the block over several sectors. */
static void commit(coffer_pycauset_editor *editor, uint64_t v)
{
    coffer_pycauset_changes *changes = NULL;
    char text[2000];
    memset(text, 'x', sizeof text);
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.v", v, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_string(changes, "properties.text", text, sizeof text, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, NULL), COFFER_OK);
    coffer_pycauset_changes_free(changes);
}

static void set(const char *folder, void *context)
{
    const scenario *of = context;
    coffer_pycauset_editor *editor = NULL;
    assert_int_equal(coffer_pycauset_editor_open(&editor, temp_path(folder, "m.pycauset"), NULL, NULL),
                     COFFER_OK);
    commit(editor, of->new_value);
    coffer_pycauset_editor_close(editor);
}

/* The second commit flips the slot that the first left alone. */
static void set_twice(const char *folder, void *context)
{
    const scenario *of = context;
    coffer_pycauset_editor *editor = NULL;
    assert_int_equal(coffer_pycauset_editor_open(&editor, temp_path(folder, "m.pycauset"), NULL, NULL),
                     COFFER_OK);
    commit(editor, of->old_value + 1);
    commit(editor, of->new_value);
    coffer_pycauset_editor_close(editor);
}

static void compact(const char *folder, void *context)
{
    coffer_node *said = NULL;
    (void)context;
    assert_int_equal(coffer_node_new(&said, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(said, temp_path(folder, "m.pycauset"), NULL, NULL, NULL), COFFER_OK);
    coffer_node_free(said);
}

static void repair_to(const char *path, const char *out_path)
{
    coffer_source *src = scan_source(path);
    coffer_report *report = NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, out_path, NULL, NULL), COFFER_OK);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void repair(const char *folder, void *context)
{
    (void)context;
    repair_to(temp_path(folder, "m.pycauset"), temp_path(folder, "out.pycauset"));
}

static bool newer_is_lost(const char *path)
{
    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    bool lost = coffer_pycauset_get_info(matrix)->newer_lost;
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return lost;
}

static const char *look(const char *path, const scenario *of, bool finished)
{
    coffer_source *src = NULL;
    coffer_pycauset *matrix = NULL;
    const char *wrong = NULL;
    double real = 0, imag;
    if (!temp_exists(path))
        return of->old_value == 0 && !finished ? NULL : "the file is gone";
    if (coffer_source_open(&src, path, NULL, NULL) != COFFER_OK)
        return "the file cannot be opened";
    if (coffer_pycauset_open(&matrix, src, NULL, NULL) != COFFER_OK) {
        coffer_source_close(src);
        return "the matrix cannot be opened";
    }
    coffer_report *report = scan_check(src, true);
    uint64_t v = coffer_pycauset_value_u64(
        coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.v"));
    if (coffer_report_total(report, COFFER_ERROR) > 0)
        wrong = "check finds an error";
    else if (v != of->new_value && (finished || v < of->old_value || v > of->new_value))
        wrong = "neither the old state nor the new one";
    else if (coffer_pycauset_get(&real, &imag, matrix, 1, 2, NULL) != COFFER_OK || real != 5.5)
        wrong = "the payload is not what it was";
    coffer_report_free(report);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return wrong;
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *of = context;
    const char *path = temp_path(folder, of->name);
    const char *wrong = look(path, of, finished);
    if (wrong || !temp_exists(path))
        return wrong;
    /* Next to a damaged slot, a block that no slot names may be a newer state: repair comes first. */
    if (newer_is_lost(path)) {
        repair_to(path, temp_path(folder, "fixed.pycauset"));
        path = temp_path(folder, "fixed.pycauset");
    }
    /* And the next commit finds its way, whatever was left. */
    container_commit(path, "properties.v", 1000);
    return container_read(path, "properties.v", NULL) == 1000 ? NULL : "the next commit was lost";
}

static void a_commit_is_all_or_nothing(void **state)
{
    scenario of = { "m.pycauset", 1, 2, false, false };
    crash_test test = { write_old, set, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 10);
}

static void a_commit_after_an_unfinished_one_is_all_or_nothing(void **state)
{
    scenario of = { "m.pycauset", 1, 2, false, true };
    crash_test test = { write_old, set, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 10);
}

static void a_commit_beside_a_broken_slot_is_all_or_nothing(void **state)
{
    scenario of = { "m.pycauset", 1, 2, true, false };
    crash_test test = { write_old, set, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 10);
}

static void two_commits_in_a_row_are_each_all_or_nothing(void **state)
{
    scenario of = { "m.pycauset", 1, 3, false, false };
    crash_test test = { write_old, set_twice, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 20);
}

static void compact_leaves_the_old_file_or_the_new(void **state)
{
    scenario of = { "m.pycauset", 4, 4, false, false };
    crash_test test = { write_old_with_history, compact, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

static void repair_leaves_a_whole_file_or_none(void **state)
{
    /* The damaged slot can only have named the block at the end, which is intact: it is the newest state. */
    scenario of = { "out.pycauset", 0, 77, true, true };
    crash_test test = { write_old, repair, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

/* Metadata and an element in one commit: the journal undoes both or none. */
static void set_element(const char *folder, void *context)
{
    const scenario *of = context;
    coffer_pycauset_editor *editor = NULL;
    coffer_pycauset_changes *changes = NULL;
    double value = 1000;
    assert_int_equal(coffer_pycauset_editor_open(&editor, temp_path(folder, "m.pycauset"), NULL, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.v", of->new_value, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_element(changes, 0, 1, &value, COFFER_DTYPE_F64, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, NULL), COFFER_OK);
    coffer_pycauset_changes_free(changes);
    coffer_pycauset_editor_close(editor);
}

static const char *verify_element(const char *folder, void *context, bool finished)
{
    const scenario *of = context;
    const char *path = temp_path(folder, of->name);
    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    double value = 0;
    uint64_t v = coffer_pycauset_value_u64(
        coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.v"));
    bool read = coffer_pycauset_get(&value, NULL, matrix, 0, 1, NULL) == COFFER_OK;
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    if (!read)
        return "the element cannot be read";
    if ((value == 1000) != (v == of->new_value))
        return "half of the commit is there";
    return verify(folder, context, finished);
}

static void a_commit_of_an_element_is_all_or_nothing(void **state)
{
    scenario of = { "m.pycauset", 1, 2, false, false };
    crash_test test = { write_old, set_element, verify_element, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_all_or_nothing),
        cmocka_unit_test(a_commit_of_an_element_is_all_or_nothing),
        cmocka_unit_test(a_commit_after_an_unfinished_one_is_all_or_nothing),
        cmocka_unit_test(a_commit_beside_a_broken_slot_is_all_or_nothing),
        cmocka_unit_test(two_commits_in_a_row_are_each_all_or_nothing),
        cmocka_unit_test(compact_leaves_the_old_file_or_the_new),
        cmocka_unit_test(repair_leaves_a_whole_file_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
