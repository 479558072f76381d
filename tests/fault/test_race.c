/* Others that are faster, and systems that know less. */
#include "coffer/source.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/temporary.h"
#include "support/shim.h"
#include "support/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;
static char file[4096];

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    snprintf(file, sizeof file, "%s/file", folder);
    temp_write(file, "old", 3);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    shim_observe(NULL);
    shim_refuse(NULL, 0);
    temp_remove(folder);
    return 0;
}

/* Plays the other one: does something each time, or the first few times, that a file is opened. */
struct other {
    const char *name; /* of the file whose opening it waits for */
    void (*act)(void);
    int times;
};

static void opened(void *context, const char *path, int flags, int fd)
{
    struct other *other = context;
    size_t len = strlen(path), name_len = strlen(other->name);
    (void)flags;
    (void)fd;
    if (len < name_len || strcmp(path + len - name_len, other->name) != 0 || other->times == 0)
        return;
    other->times--;
    other->act();
}

static void replace_file(void)
{
    temp_write(temp_path(folder, "other"), "new", 3);
    rename(temp_path(folder, "other"), file);
}

static void remove_file(void)
{
    unlink(file);
}

static void a_file_replaced_while_it_is_locked_is_opened_anew(void **state)
{
    (void)state;
    struct other other = { "/file", replace_file, 3 };
    shim_observer observer = { .opened = opened, .context = &other };
    int fd = -1;
    char bytes[4] = "";
    shim_observe(&observer);
    assert_int_equal(coffer__lock_open(&fd, file, NULL), COFFER_OK);
    assert_int_equal(other.times, 0);
    assert_int_equal(pread(fd, bytes, 3, 0), 3);
    assert_string_equal(bytes, "new");
    close(fd);
}

static void a_file_that_is_always_replaced_or_goes_cannot_be_locked(void **state)
{
    (void)state;
    struct other other = { "/file", replace_file, 1000 };
    shim_observer observer = { .opened = opened, .context = &other };
    int fd = -1;
    coffer_error err = COFFER_ERROR_INIT;
    shim_observe(&observer);
    assert_int_equal(coffer__lock_open(&fd, file, &err), COFFER_E_LOCKED);
    assert_non_null(strstr(err.text, "replaced 100 times"));
    other.act = remove_file;
    assert_int_equal(coffer__lock_open(&fd, file, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "No such file or directory"));
    assert_int_equal(fd, -1);
}

static void commit(void)
{
    temp_write(file, "newer", 5);
    unlink(temp_path(folder, "file-journal"));
}

static void a_reader_that_a_commit_overtakes_opens_again(void **state)
{
    (void)state;
    struct other other = { "-journal", commit, 1 };
    shim_observer observer = { .opened = opened, .context = &other };
    coffer_source *src;
    temp_write(temp_path(folder, "file-journal"), "unfinished", 10);
    shim_observe(&observer);
    assert_int_equal(coffer_source_open(&src, file, NULL, NULL), COFFER_OK);
    assert_int_equal(other.times, 0);
    assert_int_equal(coffer_source_size(src), 5);
    coffer_source_close(src);
}

static void rewrite_journal(void)
{
    static char text[] = "journal A";
    text[8]++;
    temp_write(temp_path(folder, "file-journal"), text, sizeof text);
}

static void a_file_that_never_comes_to_rest_is_an_error(void **state)
{
    (void)state;
    struct other other = { "-journal", rewrite_journal, 1000 };
    shim_observer observer = { .opened = opened, .context = &other };
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    rewrite_journal();
    shim_observe(&observer);
    assert_int_equal(coffer_source_open(&src, file, NULL, &err), COFFER_E_CHANGED);
    assert_non_null(strstr(err.text, "changed 100 times while it was opened"));
    assert_null(src);
}

/* A new file takes the name and is itself being updated: the journal speaks of it, not of the one before. */
static const char *successor;
static coffer__update *under_way;

static void replace_and_begin(void)
{
    const coffer__range front = { 0, 3 };
    temp_write(temp_path(folder, "other"), successor, strlen(successor));
    rename(temp_path(folder, "other"), file);
    assert_int_equal(coffer__update_open(&under_way, file, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(under_way, &front, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(under_way, 0, "XXX", 3, NULL), COFFER_OK);
}

static void a_journal_is_not_laid_over_the_file_that_was_there_before(void **state)
{
    (void)state;
    static const char *const successors[] = { "smaller", "of the same size....",
                                              "quite a bit larger than it was" };
    for (size_t i = 0; i < sizeof successors / sizeof successors[0]; i++) {
        struct other other = { "/file", replace_and_begin, 1 };
        shim_observer observer = { .opened = opened, .context = &other };
        coffer_source *src;
        coffer_error err = COFFER_ERROR_INIT;
        char bytes[64] = "";
        temp_write(file, "the file from before", 20);
        successor = successors[i];
        shim_observe(&observer);
        if (coffer_source_open(&src, file, NULL, &err) != COFFER_OK)
            fail_msg("%s", err.text);
        shim_observe(NULL);
        assert_int_equal(coffer_source_size(src), strlen(successor));
        assert_int_equal(coffer_source_read_at(bytes, src, 0, strlen(successor), NULL), COFFER_OK);
        assert_string_equal(bytes, successor);
        coffer_source_close(src);
        coffer__update_close(under_way);
    }
}

static void with_another_temporary_file_of_that_name_a_new_name_is_tried(void **state)
{
    (void)state;
    int fd = -1;
    char *path = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    shim_refuse("coffer__os_open", EEXIST);
    assert_int_equal(coffer__temporary_create(&fd, &path, file, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "File exists"));
    assert_null(path);
}

/* ---- Exclusive files where the kernel or the file system knows less ---- */

static coffer_status create_exclusively(const char *name, bool too_late)
{
    coffer__sink *sink;
    coffer__sink_opts opts = { .exclusive = true };
    coffer_status status = coffer__sink_create(&sink, temp_path(folder, name), &opts, NULL);
    if (status != COFFER_OK)
        return status;
    assert_int_equal(coffer__sink_write(sink, "mine", 4, NULL), COFFER_OK);
    if (too_late)
        temp_write(temp_path(folder, name), "theirs", 6);
    return coffer__sink_commit(sink, NULL);
}

static void assert_exclusive(void)
{
    assert_int_equal(create_exclusively("a", false), COFFER_OK);
    assert_int_equal(create_exclusively("b", true), COFFER_E_EXISTS);
    assert_true(temp_holds(temp_path(folder, "a"), "mine", 4));
    assert_true(temp_holds(temp_path(folder, "b"), "theirs", 6));
    temp_assert_only(folder, "file", "a", "b", NULL);
    unlink(temp_path(folder, "a"));
    unlink(temp_path(folder, "b"));
}

static void a_file_is_created_exclusively_with_what_the_system_has(void **state)
{
    (void)state;
    assert_exclusive();
    shim_refuse("coffer__os_rename_new", EINVAL);
    assert_exclusive();
    shim_refuse("coffer__os_link", EPERM);
    assert_exclusive();
    shim_refuse(NULL, 0);
    shim_refuse("coffer__os_rename_new", EINVAL);
    shim_refuse("coffer__os_link", EIO);
    assert_int_equal(create_exclusively("a", false), COFFER_E_IO);
    temp_assert_only(folder, "file", NULL);
}

static void a_file_is_copied_where_the_kernel_cannot(void **state)
{
    (void)state;
    coffer__sink *sink;
    int fd = open(file, O_RDONLY);
    shim_refuse("coffer__os_copy_range", EXDEV);
    assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "copy"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_copy_file(sink, fd, 1, 2, "file", NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(folder, "copy"), "ld", 2));
    close(fd);
}

static void permissions_need_not_exist_but_must_not_fail(void **state)
{
    (void)state;
    coffer__sink *sink;
    shim_refuse("coffer__os_chmod", EPERM);
    assert_int_equal(coffer__sink_create(&sink, file, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    shim_refuse(NULL, 0);
    shim_refuse("coffer__os_chmod", EIO);
    assert_int_equal(coffer__sink_create(&sink, file, NULL, NULL), COFFER_E_IO);
    temp_assert_only(folder, "file", NULL);
}

static void a_file_that_cannot_be_mapped_is_read(void **state)
{
    (void)state;
    coffer_source *src;
    shim_refuse("coffer__os_map", ENODEV);
    assert_int_equal(coffer_source_open(&src, file, NULL, NULL), COFFER_OK);
    assert_null(coffer_source_view(src, 0, 1));
    coffer_source_close(src);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_replaced_while_it_is_locked_is_opened_anew),
        TEST(a_file_that_is_always_replaced_or_goes_cannot_be_locked),
        TEST(a_reader_that_a_commit_overtakes_opens_again),
        TEST(a_file_that_never_comes_to_rest_is_an_error),
        TEST(a_journal_is_not_laid_over_the_file_that_was_there_before),
        TEST(with_another_temporary_file_of_that_name_a_new_name_is_tried),
        TEST(a_file_is_created_exclusively_with_what_the_system_has),
        TEST(a_file_is_copied_where_the_kernel_cannot),
        TEST(permissions_need_not_exist_but_must_not_fail),
        TEST(a_file_that_cannot_be_mapped_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
