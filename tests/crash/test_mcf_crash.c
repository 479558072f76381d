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
    (void)context;
    assert_int_equal(acts_compact(temp_path(folder, "m.mcf"), NULL), COFFER_OK);
}

static void repair(const char *folder, void *context)
{
    (void)context;
    assert_int_equal(acts_repair(temp_path(folder, "m.mcf"), NULL, NULL), COFFER_OK);
}

static const char *look(coffer_source *src, const void *context, bool finished)
{
    const scenario *names = context;
    const coffer_mcf_model_info *info = NULL;
    coffer_mcf *model = NULL;
    const char *wrong = NULL;
    if (coffer_mcf_open(&model, src, NULL, NULL) != COFFER_OK)
        return "the model cannot be opened";
    if (coffer_mcf_get_model_info(&info, model, NULL) != COFFER_OK)
        wrong = "ModelInfo is missing";
    else if (strcmp(info->model_name, names->new_name) != 0 &&
             (finished || strcmp(info->model_name, names->old_name) != 0))
        wrong = "neither the old state nor the new one";
    coffer_mcf_close(model);
    return wrong;
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *names = context;
    return crash_verify_file(temp_path(folder, "m.mcf"), !names->exists, finished, look, context);
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
