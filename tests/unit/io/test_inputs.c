/* No sink replaces a file that is read. */
#include "io/inputs.h"

#include "io/sink.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_remove(folder);
    return 0;
}

static void make_file(const char *name)
{
    FILE *file = fopen(temp_path(folder, name), "w");
    assert_non_null(file);
    fputs(name, file);
    assert_int_equal(fclose(file), 0);
}

static coffer_status replace(const char *name, bool rewrites)
{
    const coffer__sink_opts opts = { .rewrites = rewrites };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create(&sink, temp_path(folder, name), &opts, &err);
    if (status) {
        assert_int_equal(err.subject, COFFER_SUBJECT_OUTPUT);
        return status;
    }
    return coffer__sink_commit(sink, NULL);
}

static coffer_source *open_source(const char *name)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, temp_path(folder, name), NULL, NULL), COFFER_OK);
    return src;
}

static void an_operation_protects_its_input_while_it_runs(void **state)
{
    (void)state;
    coffer__inputs_scope scope, inner;
    make_file("a");
    make_file("b");
    coffer_source *a = open_source("a"), *b = open_source("b");
    coffer__inputs_enter(&scope, a);
    coffer__inputs_enter(&inner, b);
    assert_int_equal(replace("a", false), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(replace("b", false), COFFER_E_INVALID_ARGUMENT);
    coffer__inputs_leave(&scope);
    assert_int_equal(replace("b", false), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(replace("a", false), COFFER_OK);
    assert_int_equal(replace("b", true), COFFER_OK);
    coffer__inputs_leave(&inner);
    coffer_source_close(a);
    coffer_source_close(b);
}

static void a_source_in_memory_protects_nothing(void **state)
{
    (void)state;
    coffer__inputs_scope scope;
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, "x", 1, NULL), COFFER_OK);
    coffer__inputs_enter(&scope, src);
    make_file("c");
    assert_int_equal(replace("c", false), COFFER_OK);
    coffer__inputs_leave(&scope);
    coffer_source_close(src);
}

/* The last test: protecting cannot be undone. */
static void a_protected_program_replaces_nothing_that_it_read(void **state)
{
    (void)state;
    coffer__sink *sink = NULL;
    make_file("old");
    make_file("read");
    make_file("later");
    assert_int_equal(link(temp_path(folder, "read"), temp_path(folder, "hard")), 0);
    coffer_protect_inputs();
    coffer_source_close(open_source("read"));
    assert_int_equal(replace("read", false), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(replace("hard", false), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(replace("old", false), COFFER_OK);
    /* An input that is opened after the output counts as well. */
    assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "later"), NULL, NULL), COFFER_OK);
    coffer_source_close(open_source("later"));
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer__inputs_allow(temp_path(folder, "read"));
    assert_int_equal(replace("read", false), COFFER_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_protects_its_input_while_it_runs),
        cmocka_unit_test(a_source_in_memory_protects_nothing),
        cmocka_unit_test(a_protected_program_replaces_nothing_that_it_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
