#include "coffer/coffer.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS COFFER_TEST_DATA "/compat/mlyze-tools/"

static coffer_file *open_file(const char *path)
{
    coffer_file *file = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_file_open(&file, path, &err) != COFFER_OK)
        fail_msg("%s: %s", path, err.text);
    return file;
}

static uint64_t described(const char *path, const char *kind, const char *key)
{
    coffer_file *file = open_file(path);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *out = NULL;
    assert_null(coffer_file_unknown(file));
    assert_string_equal(coffer_file_kind(file), kind);
    assert_null(coffer_file_format(file));
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    if (coffer_file_describe(out, file, NULL, &err) != COFFER_OK)
        fail_msg("%s: %s", path, err.text);
    const coffer_node *value = coffer_node_find(out, key);
    assert_non_null(value);
    uint64_t number = coffer_node_get_u64(value);
    coffer_node_free(out);
    coffer_file_close(file);
    return number;
}

static uint64_t errors_of(const char *path, bool full)
{
    coffer_file *file = open_file(path);
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = full;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_file_check(report, file, &opts, NULL), COFFER_OK);
    uint64_t errors = coffer_report_total(report, COFFER_ERROR);
    coffer_report_free(report);
    coffer_file_close(file);
    return errors;
}

static size_t entries_of(const char *path, const char *glob)
{
    coffer_file *file = open_file(path);
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *out = NULL;
    opts.glob = glob;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_file_list(out, file, &opts, NULL), COFFER_OK);
    size_t count = coffer_node_count(coffer_node_find(out, "entries"));
    coffer_node_free(out);
    coffer_file_close(file);
    return count;
}

static void put_text(const char *name, const char *text)
{
    temp_write(temp_path(temp_folder, name), text, strlen(text));
}

static void a_matrix_market_file_is_described_and_checked(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 2\n1 1 2.5\n3 4 1\n");
    const char *path = temp_path(temp_folder, "m.mtx");
    assert_int_equal(described(path, "mtx", "rows"), 3);
    assert_int_equal(described(path, "mtx", "entries"), 2);
    assert_int_equal(errors_of(path, true), 0);
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 2\n1 1 2.5\n3 5 1\n");
    assert_int_equal(errors_of(path, false), 1);
    assert_int_equal(errors_of(path, true), 1);
}

static void profiles_of_other_programs_are_described_and_checked(void **state)
{
    (void)state;
    assert_true(described(TOOLS "grow.massif", "massif", "snapshots") > 0);
    assert_true(described(TOOLS "grow.massif", "massif", "peak") > 0);
    assert_true(described(TOOLS "grow.dhat", "dhat", "program_points") > 0);
    assert_true(described(TOOLS "grow.heaptrack.zst", "heaptrack", "allocations") > 0);
    assert_true(described(TOOLS "grow-raw.heaptrack.zst", "heaptrack", "modules") > 0);
    assert_true(described(TOOLS "grow.pb.gz", "pprof", "functions") > 0);
    static const char *const names[] = { "grow.massif", "grow.dhat", "grow.heaptrack.zst", "grow.pb.gz" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, TOOLS "%s", names[i]);
        assert_int_equal(errors_of(path, true), 0);
    }
}

static void a_profile_that_is_cut_off_has_a_finding(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    put_text("a.massif", "desc: x\ncmd: y\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=0\n");
    assert_int_equal(errors_of(temp_path(temp_folder, "a.massif"), false), 1);
    put_text("a.dhat", "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"pps\":[{\"tb\":1,\"fs\":[3]}],"
                       "\"ftbl\":[\"[root]\"]}");
    assert_int_equal(errors_of(temp_path(temp_folder, "a.dhat"), false), 1);
    put_text("a.heaptrack", "v 10400 3\nX prog\nI 1000 10\n+ \n");
    assert_int_equal(errors_of(temp_path(temp_folder, "a.heaptrack"), false), 1);
}

static void entries_of_profiles_are_listed(void **state)
{
    (void)state;
    assert_int_equal(entries_of(TOOLS "grow.massif", NULL),
                     described(TOOLS "grow.massif", "massif", "snapshots"));
    assert_int_equal(entries_of(TOOLS "grow.massif", "0"), 1);
    assert_int_equal(entries_of(TOOLS "grow.dhat", NULL),
                     described(TOOLS "grow.dhat", "dhat", "program_points"));
    assert_int_equal(entries_of(TOOLS "grow.pb.gz", NULL),
                     described(TOOLS "grow.pb.gz", "pprof", "functions"));
    assert_int_equal(entries_of(TOOLS "grow.pb.gz", "no such function"), 0);
}

static void a_file_of_the_library_is_opened_by_its_format(void **state)
{
    coffer_file *file = open_file(COFFER_TEST_DATA "/vectors/mscan/two-sequences.mscan");
    coffer_node *out = NULL;
    (void)state;
    assert_ptr_equal(coffer_file_format(file), coffer_format_by_name("mscan"));
    assert_string_equal(coffer_file_title(file), "neural-network scan");
    assert_int_equal(coffer_file_size(file), coffer_source_size(coffer_file_source(file)));
    assert_null(coffer_file_tensors(file));
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_file_diff(out, file, file, NULL, NULL), COFFER_OK);
    assert_true(coffer_node_get_bool(coffer_node_find(out, "equal")));
    coffer_node_free(out);
    coffer_file_close(file);
}

static void a_file_that_is_not_recognized_is_open_and_has_a_finding(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    put_text("x", "no format begins like this");
    const char *path = temp_path(temp_folder, "x");
    coffer_file *file = open_file(path);
    coffer_node *out = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_file_unknown(file)->status, COFFER_E_NOT_RECOGNISED);
    assert_null(coffer_file_kind(file));
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_file_describe(out, file, NULL, &err), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_file_list(out, file, NULL, &err), COFFER_E_NOT_RECOGNISED);
    coffer_node_free(out);
    coffer_file_close(file);
    assert_int_equal(errors_of(path, false), 1);
}

static void files_without_common_content_are_not_compared(void **state)
{
    coffer_file *scan = open_file(COFFER_TEST_DATA "/vectors/mscan/two-sequences.mscan");
    coffer_file *profile = open_file(TOOLS "grow.massif");
    coffer_node *out = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_file_diff(out, scan, profile, NULL, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(out);
    coffer_file_close(scan);
    coffer_file_close(profile);
}

static void a_value_that_is_not_one_of_the_choices_is_refused(void **state)
{
    const coffer_setting setting = { "what", "most" };
    coffer_convert_opts opts;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    (void)state;
    temp_empty(temp_folder);
    coffer_convert_opts_init(&opts, sizeof opts);
    opts.from = "mlyze";
    opts.settings = &setting;
    opts.setting_count = 1;
    assert_int_equal(coffer_source_from_memory(&src, "x", 1, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, temp_path(temp_folder, "a.dhat"), &opts, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "peak, leaks, total, temporaries"));
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_market_file_is_described_and_checked),
        cmocka_unit_test(profiles_of_other_programs_are_described_and_checked),
        cmocka_unit_test(a_profile_that_is_cut_off_has_a_finding),
        cmocka_unit_test(entries_of_profiles_are_listed),
        cmocka_unit_test(a_file_of_the_library_is_opened_by_its_format),
        cmocka_unit_test(a_file_that_is_not_recognized_is_open_and_has_a_finding),
        cmocka_unit_test(files_without_common_content_are_not_compared),
        cmocka_unit_test(a_value_that_is_not_one_of_the_choices_is_refused),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
