/* A crash at any point of writing, editing, compacting or repairing a model leaves the old state or the new
 * one. */
#include "support/crash.h"
#include "support/model.h"

#include <string.h>

typedef struct scenario {
    bool exists; /* the path has a model before the write */
    const char *old_name, *new_name;
    bool dead_before; /* an edit has left bytes behind */
} scenario;

static void edit_name(const char *path, const char *name)
{
    coffer_mcf_editor *editor = NULL;
    assert_int_equal(coffer_mcf_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "model_name", name, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_GENERATION_CONFIG, "{\"top_k\": 40}",
                                                   13, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
}

static void write_old(const char *folder, void *context)
{
    const scenario *of = context;
    const char *path = temp_path(folder, "m.mcf");
    if (of->exists)
        assert_int_equal(model_create(path, NULL, NULL), COFFER_OK);
    if (of->dead_before)
        edit_name(path, of->old_name);
}

static void edit(const char *folder, void *context)
{
    edit_name(temp_path(folder, "m.mcf"), ((const scenario *)context)->new_name);
}

static void create(const char *folder, void *context)
{
    (void)context;
    assert_int_equal(model_create(temp_path(folder, "m.mcf"), NULL, NULL), COFFER_OK);
}

static void compact(const char *folder, void *context)
{
    coffer_node *out = NULL;
    (void)context;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(out, temp_path(folder, "m.mcf"), NULL, NULL, NULL), COFFER_OK);
    coffer_node_free(out);
}

static void repair(const char *folder, void *context)
{
    const char *path = temp_path(folder, "m.mcf");
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = model_source(path);
    (void)context;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, path, &opts, NULL), COFFER_OK);
    coffer_report_free(report);
    coffer_source_close(src);
}

/* Readers see it without a writer having tidied up, and again after one has. */
static const char *look(const char *path, const scenario *of, bool finished)
{
    const coffer_mcf_model_info *info = NULL;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    const char *wrong = NULL;
    if (!temp_exists(path))
        return !of->exists && !finished ? NULL : "the file is gone";
    if (coffer_source_open(&src, path, NULL, NULL) != COFFER_OK)
        return "the file cannot be opened";
    if (coffer_mcf_open(&model, src, NULL, NULL) != COFFER_OK) {
        coffer_source_close(src);
        return "the model cannot be opened";
    }
    coffer_report *report = model_check(src, true);
    if (coffer_report_total(report, COFFER_ERROR) > 0 || coffer_report_total(report, COFFER_WARNING) > 0)
        wrong = "check finds something";
    else if (coffer_mcf_get_model_info(&info, model, NULL) != COFFER_OK)
        wrong = "there is no ModelInfo";
    else if (strcmp(info->model_name, of->new_name) != 0 &&
             (finished || strcmp(info->model_name, of->old_name) != 0))
        wrong = "neither the old state nor the new one";
    coffer_report_free(report);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return wrong;
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *of = context;
    const char *path = temp_path(folder, "m.mcf");
    const char *wrong = look(path, of, finished);
    if (wrong || !temp_exists(path))
        return wrong;
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back";
    return look(path, of, finished);
}

static void an_edit_in_place_is_all_or_nothing(void **state)
{
    scenario of = { true, "small", "edited", false };
    crash_test test = { write_old, edit, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 20);
}

static void a_new_model_appears_whole_or_not_at_all(void **state)
{
    scenario of = { false, "small", "small", false };
    crash_test test = { write_old, create, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

static void a_model_that_is_compacted_stays_until_the_new_one_is_whole(void **state)
{
    scenario of = { true, "edited", "edited", true };
    crash_test test = { write_old, compact, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

static void a_model_that_is_repaired_stays_until_the_new_one_is_whole(void **state)
{
    scenario of = { true, "edited", "edited", true };
    crash_test test = { write_old, repair, verify, &of };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_in_place_is_all_or_nothing),
        cmocka_unit_test(a_new_model_appears_whole_or_not_at_all),
        cmocka_unit_test(a_model_that_is_compacted_stays_until_the_new_one_is_whole),
        cmocka_unit_test(a_model_that_is_repaired_stays_until_the_new_one_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
