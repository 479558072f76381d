#include "io/file.h"

#include "base/memory.h"
#include "support/temp.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    int fd = -1;
    uint64_t size = 0;
    char bytes[6] = "";
    const char *path = temp_path(temp_folder, "file");
    assert_int_equal(coffer__file_open(&fd, path, O_RDWR | O_CREAT, 0600, NULL), COFFER_OK);
    assert_int_equal(coffer__file_write(fd, "hello", 5, path, NULL), COFFER_OK);
    assert_int_equal(coffer__file_write_at(fd, "EL", 2, 1, path, NULL), COFFER_OK);
    assert_int_equal(coffer__file_read_at(fd, bytes, 5, 0, path, NULL), COFFER_OK);
    assert_string_equal(bytes, "hELlo");
    assert_int_equal(coffer__file_truncate(fd, 3, path, NULL), COFFER_OK);
    assert_int_equal(coffer__file_size(&size, fd, path, NULL), COFFER_OK);
    assert_int_equal(size, 3);
    assert_int_equal(coffer__file_sync(fd, path, NULL), COFFER_OK);
    assert_int_equal(coffer__file_sync_data(fd, path, NULL), COFFER_OK);
    coffer__file_close(fd);
}

static void a_file_that_ends_too_early_has_changed(void **state)
{
    (void)state;
    int fd = -1;
    char bytes[10];
    coffer_error err = COFFER_ERROR_INIT;
    const char *path = temp_path(temp_folder, "short");
    temp_write(path, "1234", 4);
    assert_int_equal(coffer__file_open(&fd, path, O_RDONLY, 0, NULL), COFFER_OK);
    assert_int_equal(coffer__file_read_at(fd, bytes, 10, 0, "short", &err), COFFER_E_CHANGED);
    assert_int_equal(err.offset, 4);
    assert_string_equal(
        err.text, "short: ends at 4, 6 bytes before the end of the range that existed when it was opened");
    coffer__file_close(fd);
}

static void errors_name_the_file_and_the_reason(void **state)
{
    (void)state;
    int fd = -1;
    uint64_t size;
    size_t got;
    char byte = 'x';
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__file_open(&fd, "/no/such", O_RDONLY, 0, &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot open: No such file or directory");
    assert_int_equal(fd, -1);
    assert_int_equal(coffer__file_read_at(-1, &byte, 1, 0, "f", &err), COFFER_E_IO);
    assert_string_equal(err.text, "f: cannot read: Bad file descriptor");
    assert_int_equal(coffer__file_read_some(-1, &byte, 1, &got, "f", &err), COFFER_E_IO);
    assert_string_equal(err.text, "f: cannot read: Bad file descriptor");
    assert_int_equal(coffer__file_write(-1, &byte, 1, "f", &err), COFFER_E_IO);
    assert_string_equal(err.text, "f: cannot write: Bad file descriptor");
    assert_int_equal(coffer__file_write_at(-1, &byte, 1, 0, "f", &err), COFFER_E_IO);
    assert_int_equal(coffer__file_truncate(-1, 0, "f", &err), COFFER_E_IO);
    assert_string_equal(err.text, "f: cannot truncate: Bad file descriptor");
    assert_int_equal(coffer__file_sync(-1, "f", &err), COFFER_E_IO);
    assert_int_equal(coffer__file_sync_data(-1, "f", &err), COFFER_E_IO);
    assert_string_equal(err.text, "f: cannot sync: Bad file descriptor");
    assert_int_equal(coffer__file_size(&size, -1, "f", &err), COFFER_E_IO);
    assert_int_equal(coffer__file_unlink("/no/such", &err), COFFER_E_IO);
    assert_int_equal(coffer__file_sync_folder("/no/such", &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot open the folder: No such file or directory");
}

static void the_folder_of_a_bare_name_is_synced(void **state)
{
    (void)state;
    assert_int_equal(coffer__file_sync_folder("bare", NULL), COFFER_OK);
    assert_int_equal(coffer__file_sync_folder(temp_path(temp_folder, "any"), NULL), COFFER_OK);
}

static void assert_resolves(const char *path, const char *expected)
{
    char *resolved = NULL;
    assert_int_equal(coffer__file_resolve(&resolved, path, NULL), COFFER_OK);
    assert_string_equal(resolved, expected);
    coffer__free(resolved);
}

static void links_are_followed_to_files_that_need_not_exist(void **state)
{
    (void)state;
    char target[4096];
    snprintf(target, sizeof target, "%s", temp_path(temp_folder, "target"));
    assert_int_equal(symlink("target", temp_path(temp_folder, "relative")), 0);
    assert_int_equal(symlink(temp_path(temp_folder, "relative"), temp_path(temp_folder, "absolute")), 0);
    assert_resolves(temp_path(temp_folder, "target"), target);
    assert_resolves(temp_path(temp_folder, "relative"), target);
    assert_resolves(temp_path(temp_folder, "absolute"), target);
    temp_write(target, "x", 1);
    assert_resolves(temp_path(temp_folder, "absolute"), target);
}

static void links_in_a_circle_are_an_error(void **state)
{
    (void)state;
    char *resolved = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(symlink("circle", temp_path(temp_folder, "circle")), 0);
    assert_int_equal(coffer__file_resolve(&resolved, temp_path(temp_folder, "circle"), &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "Too many levels of symbolic links"));
    assert_null(resolved);
}

static void a_link_to_what_has_no_path_stays_itself(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_resolves(path, path);
    close(ends[0]);
    close(ends[1]);
}

static void a_file_takes_after_another(void **state)
{
    (void)state;
    int fd = -1;
    struct stat st = { .st_mode = S_IFREG | 0640, .st_uid = getuid(), .st_gid = getgid() };
    const char *path = temp_path(temp_folder, "mode");
    assert_int_equal(coffer__file_open(&fd, path, O_RDWR | O_CREAT, 0600, NULL), COFFER_OK);
    assert_int_equal(coffer__file_take_after(fd, &st, path, NULL), COFFER_OK);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    coffer__file_close(fd);
    assert_int_equal(coffer__file_take_after(-1, &st, path, NULL), COFFER_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_that_ends_too_early_has_changed),
        cmocka_unit_test(errors_name_the_file_and_the_reason),
        cmocka_unit_test(the_folder_of_a_bare_name_is_synced),
        cmocka_unit_test(links_are_followed_to_files_that_need_not_exist),
        cmocka_unit_test(links_in_a_circle_are_an_error),
        cmocka_unit_test(a_link_to_what_has_no_path_stays_itself),
        cmocka_unit_test(a_file_takes_after_another),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
