/* Every allocation and every file operation of reading, writing, editing, compacting and repairing fails
 * once.
 */
#include "support/fault.h"
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    bool exists; /* the path has a model before the write */
    bool damaged;
    const char *old_name, *new_name; /* of the model, in the file after */
    coffer_status (*act)(const char *path, coffer_error *err);
} scenario;

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    const char *path = temp_path(folder, "m.mcf");
    if (of->exists)
        assert_int_equal(model_create(path, NULL, NULL), COFFER_OK);
    if (of->damaged) {
        size_t len = 0;
        uint8_t *bytes = temp_read(path, &len);
        bytes[24] ^= 1; /* the file size in the header */
        temp_write(path, bytes, len);
        free(bytes);
    }
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    return ((const scenario *)context)->act(temp_path(folder, "m.mcf"), err);
}

/* The name a reader sees; "none" without a file, "damaged" when it is. The caller keeps the text. */
static void name_in(char *out, size_t size, const char *path)
{
    const coffer_mcf_model_info *info = NULL;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    snprintf(out, size, "none");
    if (!temp_exists(path))
        return;
    snprintf(out, size, "damaged");
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_mcf_open(&model, src, NULL, NULL) == COFFER_OK) {
        coffer_report *report = model_check(src, true);
        if (coffer_report_total(report, COFFER_ERROR) == 0 &&
            coffer_mcf_get_model_info(&info, model, NULL) == COFFER_OK)
            snprintf(out, size, "%s", info->model_name);
        coffer_report_free(report);
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
}

/* A temporary file may stay when it cannot be removed: on a dead disk, or when the removal fails. */
static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    char now[64];
    name_in(now, sizeof now, temp_path(folder, "m.mcf"));
    if (strcmp(now, of->old_name) != 0 && strcmp(now, of->new_name) != 0)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && strcmp(now, of->new_name) != 0)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "m.mcf", NULL);
    return NULL;
}

static coffer_status create(const char *path, coffer_error *err)
{
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.threads = 1;
    return model_create(path, &opts, err);
}

static coffer_status edit(const char *path, coffer_error *err)
{
    coffer_mcf_editor *editor = NULL;
    coffer_status status = coffer_mcf_editor_open(&editor, path, NULL, err);
    if (status)
        return status;
    if (!(status = coffer_mcf_editor_set_model_info(editor, "model_name", "edited", 0, err)) &&
        !(status = coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "{}", 2, err)) &&
        !(status = coffer_mcf_editor_set_checksums(
              editor, &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 },
              err)))
        status = coffer_mcf_editor_commit(editor, err);
    coffer_mcf_editor_close(editor);
    return status;
}

static coffer_status repair(const char *path, coffer_error *err)
{
    return acts_repair(path, NULL, err);
}

/* Opens, looks up, decodes, hashes, describes, lists, checks. */
static coffer_status read_all(const char *path, coffer_error *err)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    const coffer_mcf_model_info *info = NULL;
    coffer_source_opts access = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    coffer_report *report = NULL;
    coffer_node *node = NULL, *list = NULL;
    uint8_t hash[32];
    float rows[6];
    coffer_status status;
    opts.verify = true;
    check_opts.full = true;
    check_opts.threads = 1;
    access.access = COFFER_ACCESS_READ;
    if ((status = coffer_source_open(&src, path, &access, err)) ||
        (status = coffer_mcf_open(&model, src, &opts, err)) ||
        (status = coffer_mcf_get_model_info(&info, model, err)) ||
        (status = coffer_mcf_read_rows_f32(rows, model, 0, 0, 2, err)) ||
        (status = coffer_mcf_content_hash(
             hash, model,
             &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 }, err)) ||
        (status = coffer_report_new(&report, 0, err)) ||
        (status = coffer_check(report, src, &check_opts, err)) || (status = coffer_node_new(&node, err)) ||
        (status = coffer_describe(node, src, NULL, err)) || (status = coffer_node_new(&list, err)) ||
        (status = coffer_list(list, src, NULL, err)))
        goto out;
out:
    coffer_node_free(list);
    coffer_node_free(node);
    coffer_report_free(report);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return status;
}

static void try_all(const scenario *of)
{
    scenario copy = *of;
    fault_test test = { setup, run, verify, &copy };
    fault_each(&test);
}

static void a_new_model_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ false, false, "none", "small", create });
}

static void an_edit_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, false, "small", "edited", edit });
}

static void compacting_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, false, "small", "small", acts_compact });
}

static void repairing_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, true, "damaged", "small", repair });
}

static void reading_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, false, "small", "small", read_all });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_model_survives_every_failure),
        cmocka_unit_test(an_edit_survives_every_failure),
        cmocka_unit_test(compacting_survives_every_failure),
        cmocka_unit_test(repairing_survives_every_failure),
        cmocka_unit_test(reading_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
