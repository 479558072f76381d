#include "io/temporary.h"

#include "base/memory.h"
#include "coffer/source.h"
#include "io/file.h"
#include "io/sink.h"
#include "support/temp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *create(const char *name, int *fd)
{
    char *path = NULL;
    assert_int_equal(coffer__temporary_create(fd, &path, temp_path(temp_folder, name), NULL), COFFER_OK);
    return path;
}

static void discard(char *path, int fd)
{
    close(fd);
    unlink(path);
    coffer__temporary_forget(path);
    coffer__free(path);
}

static void the_name_is_hidden_and_tells_whose_it_is(void **state)
{
    (void)state;
    int fd = -1;
    char *path = create("data.mscan", &fd);
    const char *name = path + coffer__file_folder_len(path);
    assert_int_equal(strncmp(name, ".data.mscan.", 12), 0);
    assert_string_equal(name + 12 + 8, ".tmp");
    assert_true(temp_exists(path));
    assert_int_equal(write(fd, "x", 1), 1);
    discard(path, fd);
}

static void a_long_name_is_cut_to_what_the_system_takes(void **state)
{
    (void)state;
    char name[256];
    int fd = -1;
    memset(name, 'n', 255);
    name[255] = '\0';
    char *path = create(name, &fd);
    assert_int_equal(strlen(path + coffer__file_folder_len(path)), 255);
    discard(path, fd);
}

static void a_dying_program_removes_what_it_was_writing(void **state)
{
    (void)state;
    int kept_fd = -1, lost_fd = -1;
    char *kept = create("kept", &kept_fd), *lost = create("lost", &lost_fd);
    coffer__temporary_forget(kept);
    coffer_remove_temporaries();
    assert_true(temp_exists(kept));
    assert_false(temp_exists(lost));
    discard(kept, kept_fd);
    discard(lost, lost_fd);
}

static void a_child_does_not_remove_what_its_parent_writes(void **state)
{
    (void)state;
    int fd = -1, status = 0;
    char *path = create("parent", &fd);
    pid_t child = fork();
    if (child == 0) {
        coffer_remove_temporaries();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(temp_exists(path));
    discard(path, fd);
}

static void more_files_than_the_table_holds_are_still_written(void **state)
{
    (void)state;
    enum { MANY = 70 };
    char *paths[MANY];
    int fds[MANY], left = 0;
    for (int i = 0; i < MANY; i++)
        paths[i] = create("many", &fds[i]);
    coffer_remove_temporaries();
    for (int i = 0; i < MANY; i++) {
        left += temp_exists(paths[i]);
        discard(paths[i], fds[i]);
    }
    assert_int_equal(left, MANY - 64);
    temp_assert_only(temp_folder, NULL);
}

static void a_missing_folder_is_an_error(void **state)
{
    (void)state;
    int fd = -1;
    char *path = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__temporary_create(&fd, &path, "/no/such/file", &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot create a file in the folder: No such file or directory");
    assert_null(path);
    setenv("TMPDIR", "/no/such", 1);
    assert_int_equal(coffer__temporary_unnamed(&fd, &err), COFFER_E_IO);
    unsetenv("TMPDIR");
    assert_int_equal(fd, -1);
}

static void a_file_without_a_name_leaves_nothing(void **state)
{
    (void)state;
    int fd = -1;
    struct stat st;
    setenv("TMPDIR", temp_folder, 1);
    assert_int_equal(coffer__temporary_unnamed(&fd, NULL), COFFER_OK);
    unsetenv("TMPDIR");
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    temp_assert_only(temp_folder, NULL);
    close(fd);
}

static void files_of_dead_processes_are_removed(void **state)
{
    (void)state;
    int fd = -1, live_fd = -1;
    const char *stale = temp_path(temp_folder, ".set.mldf.0123abcd.tmp");
    char *live = create("set.mldf", &live_fd);
    temp_write(stale, "x", 1);
    /* The lock stays with the name, also when the descriptor is closed. */
    close(live_fd);
    char *path = create("set.mldf", &fd);
    assert_false(temp_exists(temp_path(temp_folder, ".set.mldf.0123abcd.tmp")));
    assert_true(temp_exists(live));
    coffer__temporary_forget(live);
    int next_fd = -1;
    char *next = create("set.mldf", &next_fd);
    assert_false(temp_exists(live));
    assert_true(temp_exists(path));
    coffer__free(live);
    discard(path, fd);
    discard(next, next_fd);
}

static void a_sink_writes_to_a_temporary_file_directly(void **state)
{
    (void)state;
    int fd = -1;
    char *path = create("repaired", &fd);
    coffer__sink *first = NULL, *second = NULL;
    struct stat before, after;
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(coffer__sink_create(&first, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_write(first, "first", 5, NULL), COFFER_OK);
    /* Only one: the second gets a name of its own and replaces the file. */
    assert_int_equal(coffer__sink_create(&second, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(first, NULL), COFFER_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_true(temp_holds(path, "first", 5));
    assert_int_equal(coffer__sink_write(second, "next", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(second, NULL), COFFER_OK);
    assert_true(temp_holds(path, "next", 4));
    discard(path, fd);
}

static void a_caller_removes_its_temporary_file_and_still_reads_it(void **state)
{
    (void)state;
    char *name = NULL, byte;
    coffer_source *src = NULL;
    coffer__sink *sink = NULL;
    assert_int_equal(coffer_temporary_create(&name, temp_path(temp_folder, "mine"), NULL), COFFER_OK);
    assert_true(temp_exists(name));
    assert_int_equal(coffer__sink_create(&sink, name, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_write(sink, "x", 1, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, name, NULL, NULL), COFFER_OK);
    char *path = strdup(name);
    coffer_temporary_remove(name);
    assert_false(temp_exists(path));
    free(path);
    assert_int_equal(coffer_source_read_at(&byte, src, 0, 1, NULL), COFFER_OK);
    assert_int_equal(byte, 'x');
    coffer_source_close(src);
    coffer_temporary_remove(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_hidden_and_tells_whose_it_is),
        cmocka_unit_test(a_long_name_is_cut_to_what_the_system_takes),
        cmocka_unit_test(a_dying_program_removes_what_it_was_writing),
        cmocka_unit_test(files_of_dead_processes_are_removed),
        cmocka_unit_test(a_sink_writes_to_a_temporary_file_directly),
        cmocka_unit_test(a_child_does_not_remove_what_its_parent_writes),
        cmocka_unit_test(more_files_than_the_table_holds_are_still_written),
        cmocka_unit_test(a_caller_removes_its_temporary_file_and_still_reads_it),
        cmocka_unit_test(a_missing_folder_is_an_error),
        cmocka_unit_test(a_file_without_a_name_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
