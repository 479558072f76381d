#include "io/sink.h"

#include "base/crc32.h"
#include "coffer/source.h"
#include "io/journal.h"
#include "support/temp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BIG = 3 << 20 }; /* larger than the sink's buffer */

static char *folder;
static uint8_t *big;

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    big = malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i * 31 >> 3);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_remove(folder);
    free(big);
    return 0;
}

static int empty_folder(void **state)
{
    (void)state;
    temp_empty(folder);
    return 0;
}

static coffer__sink *create(const char *name)
{
    coffer__sink *sink = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer__sink_create(&sink, temp_path(folder, name), NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return sink;
}

static void write_text(coffer__sink *sink, const char *text)
{
    assert_int_equal(coffer__sink_write(sink, text, strlen(text), NULL), COFFER_OK);
}

static void assert_file(const char *name, const char *text)
{
    assert_true(temp_holds(temp_path(folder, name), text, strlen(text)));
}

/* ---- Taking the name ---- */

static void a_file_appears_only_when_it_is_complete(void **state)
{
    (void)state;
    coffer__sink *sink = create("new");
    write_text(sink, "hello");
    assert_false(temp_exists(temp_path(folder, "new")));
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_file("new", "hello");
    temp_assert_only(folder, "new", NULL);
}

static void what_is_discarded_leaves_nothing(void **state)
{
    (void)state;
    temp_write(temp_path(folder, "old"), "old", 3);
    coffer__sink *sink = create("old");
    write_text(sink, "new");
    coffer__sink_discard(sink);
    coffer__sink_discard(NULL);
    assert_file("old", "old");
    temp_assert_only(folder, "old", NULL);
}

static void a_dying_program_leaves_nothing(void **state)
{
    (void)state;
    coffer__sink *sink = create("new");
    coffer_remove_temporaries();
    temp_assert_only(folder, NULL);
    coffer__sink_discard(sink);
}

static void the_mode_of_a_replaced_file_is_kept(void **state)
{
    (void)state;
    struct stat st;
    const char *path = temp_path(folder, "mode");
    temp_write(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    coffer__sink *sink = create("mode");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_size, 0);
}

static void a_new_file_has_the_mode_that_the_umask_leaves(void **state)
{
    (void)state;
    struct stat st;
    mode_t mask = umask(027);
    coffer__sink *sink = create("new");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    umask(mask);
    assert_int_equal(stat(temp_path(folder, "new"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_symbolic_link_is_followed(void **state)
{
    (void)state;
    struct stat st;
    temp_write(temp_path(folder, "target"), "old", 3);
    assert_int_equal(symlink("target", temp_path(folder, "link")), 0);
    assert_int_equal(symlink("absent", temp_path(folder, "dangling")), 0);
    coffer__sink *sink = create("link");
    write_text(sink, "new");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    sink = create("dangling");
    write_text(sink, "there");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(lstat(temp_path(folder, "link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file("target", "new");
    assert_file("absent", "there");
}

static void an_exclusive_sink_replaces_nothing(void **state)
{
    (void)state;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = true };
    coffer_error err = COFFER_ERROR_INIT;
    const char *path = temp_path(folder, "file");
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_OK);
    temp_write(path, "first", 5); /* someone else was faster */
    assert_int_equal(coffer__sink_commit(sink, &err), COFFER_E_EXISTS);
    assert_non_null(strstr(err.text, "already exists"));
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_E_EXISTS);
    assert_file("file", "first");
    temp_assert_only(folder, "file", NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    temp_assert_only(folder, "file", NULL);
}

static void without_syncs_the_name_is_still_taken_at_the_end(void **state)
{
    (void)state;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .no_sync = true };
    assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "scratch"), &opts, NULL), COFFER_OK);
    write_text(sink, "scratch");
    assert_false(temp_exists(temp_path(folder, "scratch")));
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_file("scratch", "scratch");
}

static void a_file_can_be_locked_from_its_first_moment_and_stay_open(void **state)
{
    (void)state;
    int fd = -1, other;
    char byte = 0;
    coffer__sink *sink = create("locked");
    assert_int_equal(coffer__sink_lock(sink, NULL), COFFER_OK);
    write_text(sink, "x");
    assert_int_equal(coffer__sink_commit_open(sink, &fd, NULL), COFFER_OK);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    other = open(temp_path(folder, "locked"), O_RDWR);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
    close(fd);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
}

static void a_partial_file_stays_and_is_resumed(void **state)
{
    (void)state;
    coffer__sink *sink = NULL, *second = NULL;
    coffer__sink_opts opts = { .partial = true };
    const char *path = temp_path(folder, "file");
    int fd = -1;
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_OK);
    write_text(sink, "hello, ");
    assert_int_equal(coffer__sink_create(&second, path, &opts, NULL), COFFER_E_LOCKED);
    assert_int_equal(coffer__sink_read_back(&fd, sink, NULL), COFFER_OK);
    coffer__sink_discard(sink);
    temp_assert_only(folder, "file.partial", NULL);
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_position(sink), 7);
    write_text(sink, "world");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_file("file", "hello, world");
    temp_assert_only(folder, "file", NULL);
}

static void a_file_that_is_being_updated_is_not_replaced(void **state)
{
    (void)state;
    coffer__update *update;
    const coffer__range range = { 0, 1 };
    const char *path = temp_path(folder, "file");
    temp_write(path, "old", 3);
    assert_int_equal(coffer__update_open(&update, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(update, &range, 1, NULL), COFFER_OK);
    coffer__sink *sink = create("file");
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_E_LOCKED);
    coffer__update_close(update);
    assert_file("file", "old");
    temp_assert_only(folder, "file", NULL);
}

static void what_was_written_can_be_read_back(void **state)
{
    (void)state;
    int fd = -1;
    char bytes[6] = "";
    coffer__sink *sink = create("file");
    write_text(sink, "hello");
    assert_int_equal(coffer__sink_read_back(&fd, sink, NULL), COFFER_OK);
    assert_int_equal(pread(fd, bytes, 5, 0), 5);
    assert_string_equal(bytes, "hello");
    coffer__sink_discard(sink);
    assert_int_equal(coffer__sink_create(&sink, "/dev/null", NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_read_back(&fd, sink, NULL), COFFER_E_UNSUPPORTED);
    coffer__sink_discard(sink);
}

static void a_path_that_cannot_be_written_says_why(void **state)
{
    (void)state;
    coffer__sink *sink = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__sink_create(&sink, folder, NULL, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "Is a directory"));
    assert_int_equal(coffer__sink_create(&sink, "/no/such/file", NULL, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "No such file or directory"));
    temp_write(temp_path(folder, "plain"), "", 0);
    assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "plain/file"), NULL, &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "Not a directory"));
    assert_null(sink);
}

static void a_name_that_a_folder_took_meanwhile_is_an_error(void **state)
{
    (void)state;
    coffer__sink *sink = create("name");
    assert_int_equal(mkdir(temp_path(folder, "name"), 0700), 0);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_E_IO);
    temp_assert_only(folder, "name", NULL);
}

/* ---- Content ---- */

/* Writes the big sample in pieces around the size of the buffer, with patches before and after the buffer. */
static void write_big(coffer__sink *sink)
{
    const size_t pieces[] = { 1, (1 << 20) - 1, 1 << 20, 5, (1 << 20) - 7 };
    size_t at = 0;
    coffer__sink_crc_begin(sink);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        assert_int_equal(coffer__sink_write(sink, big + at, pieces[i], NULL), COFFER_OK);
        at += pieces[i];
        assert_int_equal(coffer__sink_position(sink), at);
    }
    assert_int_equal(coffer__sink_write(sink, big + at, BIG - at, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_crc(sink), coffer__crc32(0, big, BIG));
}

static void patches_reach_what_was_written_and_what_is_buffered(void **state)
{
    (void)state;
    coffer__sink *sink = create("patched");
    uint8_t *expected = malloc(BIG + 100), patch[3000];
    memset(patch, 'P', sizeof patch);
    write_big(sink);
    assert_int_equal(coffer__sink_fill(sink, 'F', 100, NULL), COFFER_OK);
    assert_true(coffer__sink_can_patch(sink));
    assert_int_equal(coffer__sink_patch(sink, 0, patch, 10, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_patch(sink, BIG - 2900, patch, 3000, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_patch(sink, (2 << 20) - 1500, patch, 3000, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_patch(sink, BIG + 99, patch, 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    memcpy(expected, big, BIG);
    memset(expected + BIG, 'F', 100);
    memcpy(expected, patch, 10);
    memcpy(expected + BIG - 2900, patch, 3000);
    memcpy(expected + (2 << 20) - 1500, patch, 3000);
    assert_true(temp_holds(temp_path(folder, "patched"), expected, BIG + 100));
    free(expected);
}

static void what_was_written_can_be_taken_back(void **state)
{
    static const size_t lens[] = { 0, 5, 1 << 20, BIG - 1, BIG };
    (void)state;
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        coffer__sink *sink = NULL;
        size_t len = 0;
        assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "cut"), NULL, NULL), COFFER_OK);
        for (size_t at = 0; at < BIG; at += BIG / 8) /* a part of it stays in the buffer */
            assert_int_equal(coffer__sink_write(sink, big + at, BIG / 8, NULL), COFFER_OK);
        assert_int_equal(coffer__sink_cut(sink, BIG + 1, NULL), COFFER_E_INVALID_ARGUMENT);
        assert_int_equal(coffer__sink_cut(sink, lens[i], NULL), COFFER_OK);
        assert_int_equal(coffer__sink_position(sink), lens[i]);
        write_text(sink, "end");
        assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
        uint8_t *bytes = temp_read(temp_path(folder, "cut"), &len);
        assert_int_equal(len, lens[i] + 3);
        assert_memory_equal(bytes, big, lens[i]);
        assert_memory_equal(bytes + lens[i], "end", 3);
        free(bytes);
    }
}

static void memory_takes_bytes_like_a_file(void **state)
{
    (void)state;
    coffer__sink *sink;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    int fd = -1;
    assert_true(coffer__buffer_append(&buffer, "before", 6));
    assert_int_equal(coffer__sink_to_buffer(&sink, &buffer, NULL), COFFER_OK);
    write_big(sink);
    assert_true(coffer__sink_can_patch(sink));
    assert_int_equal(coffer__sink_patch(sink, 0, big, 100, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_lock(sink, NULL), COFFER_E_UNSUPPORTED);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(buffer.len, BIG + 6);
    assert_memory_equal(buffer.data, "before", 6);
    assert_memory_equal(buffer.data + 6, big, BIG);
    assert_int_equal(coffer__sink_to_buffer(&sink, &buffer, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit_open(sink, &fd, NULL), COFFER_E_UNSUPPORTED);
    coffer__buffer_free(&buffer);
}

static void a_failure_sticks(void **state)
{
    (void)state;
    coffer__sink *sink;
    coffer__buffer buffer;
    coffer_error first = COFFER_ERROR_INIT, later = COFFER_ERROR_INIT;
    coffer__buffer_init(&buffer, 1000);
    assert_int_equal(coffer__sink_to_buffer(&sink, &buffer, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_write(sink, big, BIG, &first), COFFER_E_NO_MEMORY);
    assert_int_equal(coffer__sink_write(sink, "x", 1, &later), COFFER_E_NO_MEMORY);
    assert_string_equal(first.text, later.text);
    assert_int_equal(coffer__sink_fill(sink, 0, 1, NULL), COFFER_E_NO_MEMORY);
    assert_int_equal(coffer__sink_patch(sink, 0, "", 0, NULL), COFFER_E_NO_MEMORY);
    assert_int_equal(coffer__sink_copy_file(sink, 0, 0, 1, "x", NULL), COFFER_E_NO_MEMORY);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_E_NO_MEMORY);
    coffer__buffer_free(&buffer);
}

static void copy_range(coffer__sink *sink, const char *from)
{
    int fd = open(from, O_RDONLY);
    assert_true(fd >= 0);
    write_text(sink, "<");
    assert_int_equal(coffer__sink_copy_file(sink, fd, 10, BIG - 20, from, NULL), COFFER_OK);
    write_text(sink, ">");
    assert_int_equal(coffer__sink_position(sink), BIG - 18);
    assert_int_equal(coffer__sink_copy_file(sink, fd, 0, 0, from, NULL), COFFER_OK);
    close(fd);
}

static void assert_copied(const uint8_t *bytes)
{
    assert_int_equal(bytes[0], '<');
    assert_memory_equal(bytes + 1, big + 10, BIG - 20);
    assert_int_equal(bytes[BIG - 19], '>');
}

static void a_range_of_a_file_is_copied_to_every_kind_of_sink(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    char from[4096];
    size_t len = 0;
    coffer__sink *sink = create("copy");
    snprintf(from, sizeof from, "%s", temp_path(folder, "from"));
    temp_write(from, big, BIG);
    copy_range(sink, from);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    uint8_t *copied = temp_read(temp_path(folder, "copy"), &len);
    assert_int_equal(len, BIG - 18);
    assert_copied(copied);
    free(copied);

    assert_int_equal(coffer__sink_to_buffer(&sink, &buffer, NULL), COFFER_OK);
    coffer__sink_crc_begin(sink);
    copy_range(sink, from);
    uint32_t crc = coffer__sink_crc(sink);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(buffer.len, BIG - 18);
    assert_copied(buffer.data);
    assert_int_equal(crc, coffer__crc32(0, buffer.data, buffer.len));
    coffer__buffer_free(&buffer);
}

static void copying_past_the_end_of_a_file_is_an_error(void **state)
{
    (void)state;
    coffer__sink *sink = create("copy");
    temp_write(temp_path(folder, "from"), "12345", 5);
    int fd = open(temp_path(folder, "from"), O_RDONLY);
    assert_int_equal(coffer__sink_copy_file(sink, fd, 0, 10, "from", NULL), COFFER_E_CHANGED);
    coffer__sink_discard(sink);
    close(fd);
}

/* ---- Streams ---- */

static void a_pipe_is_written_straight_through(void **state)
{
    (void)state;
    int ends[2], fd = -1;
    char path[64], bytes[10] = "";
    coffer__sink *sink;
    coffer__sink_opts opts = { .exclusive = true };
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    assert_int_equal(coffer__sink_create(&sink, path, &opts, NULL), COFFER_OK);
    assert_false(coffer__sink_can_patch(sink));
    write_text(sink, "hello");
    assert_int_equal(coffer__sink_patch(sink, 0, "H", 1, NULL), COFFER_E_UNSUPPORTED);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
    assert_int_equal(read(ends[0], bytes, sizeof bytes), 5);
    assert_string_equal(bytes, "hello");
    assert_int_equal(coffer__sink_create(&sink, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit_open(sink, &fd, NULL), COFFER_E_UNSUPPORTED);
    close(ends[0]);
    close(ends[1]);
}

static void a_dash_is_standard_output(void **state)
{
    (void)state;
    coffer__sink *sink;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), fd = open(temp_path(folder, "out"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    coffer_status created = coffer__sink_create(&sink, "-", NULL, NULL);
    coffer_status written = created == COFFER_OK ? coffer__sink_write(sink, "hello", 5, NULL) : created;
    coffer_status committed = created == COFFER_OK ? coffer__sink_commit(sink, NULL) : created;
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(written, COFFER_OK);
    assert_int_equal(committed, COFFER_OK);
    assert_file("out", "hello");
}

static void a_full_device_is_an_error(void **state)
{
    (void)state;
    coffer__sink *sink;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__sink_create(&sink, "/dev/full", NULL, NULL), COFFER_OK);
    write_text(sink, "hello");
    assert_int_equal(coffer__sink_commit(sink, &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot write: No space left on device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_file_appears_only_when_it_is_complete, empty_folder),
        cmocka_unit_test_setup(what_is_discarded_leaves_nothing, empty_folder),
        cmocka_unit_test_setup(a_dying_program_leaves_nothing, empty_folder),
        cmocka_unit_test_setup(the_mode_of_a_replaced_file_is_kept, empty_folder),
        cmocka_unit_test_setup(a_new_file_has_the_mode_that_the_umask_leaves, empty_folder),
        cmocka_unit_test_setup(a_symbolic_link_is_followed, empty_folder),
        cmocka_unit_test_setup(an_exclusive_sink_replaces_nothing, empty_folder),
        cmocka_unit_test_setup(without_syncs_the_name_is_still_taken_at_the_end, empty_folder),
        cmocka_unit_test_setup(a_file_can_be_locked_from_its_first_moment_and_stay_open, empty_folder),
        cmocka_unit_test_setup(a_partial_file_stays_and_is_resumed, empty_folder),
        cmocka_unit_test_setup(a_file_that_is_being_updated_is_not_replaced, empty_folder),
        cmocka_unit_test_setup(what_was_written_can_be_read_back, empty_folder),
        cmocka_unit_test_setup(a_path_that_cannot_be_written_says_why, empty_folder),
        cmocka_unit_test_setup(a_name_that_a_folder_took_meanwhile_is_an_error, empty_folder),
        cmocka_unit_test_setup(patches_reach_what_was_written_and_what_is_buffered, empty_folder),
        cmocka_unit_test_setup(what_was_written_can_be_taken_back, empty_folder),
        cmocka_unit_test_setup(memory_takes_bytes_like_a_file, empty_folder),
        cmocka_unit_test_setup(a_failure_sticks, empty_folder),
        cmocka_unit_test_setup(a_range_of_a_file_is_copied_to_every_kind_of_sink, empty_folder),
        cmocka_unit_test_setup(copying_past_the_end_of_a_file_is_an_error, empty_folder),
        cmocka_unit_test_setup(a_pipe_is_written_straight_through, empty_folder),
        cmocka_unit_test_setup(a_dash_is_standard_output, empty_folder),
        cmocka_unit_test_setup(a_full_device_is_an_error, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
