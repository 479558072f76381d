#include "io/file.h"

#include "support/temp.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    temp_write(temp_path(folder, "file"), "x", 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_remove(folder);
    return 0;
}

static void a_second_writer_is_turned_away_until_the_first_is_done(void **state)
{
    (void)state;
    int first = -1, second = -1;
    coffer_error err = COFFER_ERROR_INIT;
    const char *path = temp_path(folder, "file");
    assert_int_equal(coffer__lock_open(&first, path, NULL), COFFER_OK);
    assert_int_equal(coffer__lock_open(&second, path, &err), COFFER_E_LOCKED);
    assert_non_null(strstr(err.text, "locked by another writer"));
    assert_int_equal(second, -1);
    close(first);
    assert_int_equal(coffer__lock_open(&second, path, NULL), COFFER_OK);
    close(second);
}

static void another_process_is_turned_away_too(void **state)
{
    (void)state;
    int fd = -1, status = 0;
    const char *path = temp_path(folder, "file");
    assert_int_equal(coffer__lock_open(&fd, path, NULL), COFFER_OK);
    pid_t child = fork();
    if (child == 0) {
        int other = -1;
        _exit(coffer__lock_open(&other, path, NULL) == COFFER_E_LOCKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd);
}

static void only_a_regular_file_can_be_locked(void **state)
{
    (void)state;
    int fd = -1;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__lock_open(&fd, temp_path(folder, "missing"), &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "No such file or directory"));
    assert_int_equal(coffer__lock_open(&fd, folder, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "Is a directory"));
    assert_int_equal(coffer__lock_open(&fd, "/dev/null", &err), COFFER_E_UNSUPPORTED);
    assert_string_equal(err.text, "not a regular file, it cannot be updated in place");
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_writer_is_turned_away_until_the_first_is_done),
        cmocka_unit_test(another_process_is_turned_away_too),
        cmocka_unit_test(only_a_regular_file_can_be_locked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
