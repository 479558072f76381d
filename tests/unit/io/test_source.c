#include "coffer/source.h"

#include "base/fail.h"
#include "io/source_private.h"
#include "io/source_struct.h"
#include "support/temp.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 20000 };

static char *folder;
static uint8_t sample[SIZE];

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    for (size_t i = 0; i < SIZE; i++)
        sample[i] = (uint8_t)(i * 7 % 255 + 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_remove(folder);
    return 0;
}

static coffer_source *open_as(const char *path, coffer_access access)
{
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = access;
    if (coffer_source_open(&src, path, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return src;
}

static coffer_source *open_sample(const char *name, coffer_access access)
{
    temp_write(temp_path(folder, name), sample, SIZE);
    return open_as(temp_path(folder, name), access);
}

/* ---- Every kind of source ---- */

static void assert_reads_sample(coffer_source *src)
{
    uint8_t bytes[SIZE];
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_size(src), SIZE);
    assert_int_equal(coffer_source_read_at(bytes, src, 0, SIZE, NULL), COFFER_OK);
    assert_memory_equal(bytes, sample, SIZE);
    assert_int_equal(coffer_source_read_at(bytes, src, 4321, 100, NULL), COFFER_OK);
    assert_memory_equal(bytes, sample + 4321, 100);
    assert_int_equal(coffer_source_read_at(bytes, src, SIZE, 0, NULL), COFFER_OK);

    bytes[0] = 'x';
    assert_int_equal(coffer_source_read_at(bytes, src, SIZE - 1, 2, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(err.offset, SIZE - 1);
    assert_non_null(strstr(err.text, "2 bytes at 19999 requested, the file has 20000"));
    assert_int_equal(coffer_source_read_at(bytes, src, UINT64_MAX, 2, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(bytes[0], 'x');
    assert_int_equal(coffer_source_intact(src, NULL), COFFER_OK);
}

static void assert_views_sample(coffer_source *src)
{
    const uint8_t *view = coffer_source_view(src, 100, SIZE - 100);
    assert_non_null(view);
    assert_memory_equal(view, sample + 100, SIZE - 100);
    assert_non_null(coffer_source_view(src, SIZE, 0));
    assert_null(coffer_source_view(src, 100, SIZE - 99));
    assert_null(coffer_source_view(src, UINT64_MAX, 1));
}

static void a_file_is_mapped_or_read_as_asked(void **state)
{
    (void)state;
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        coffer_source *src = open_sample("file", access);
        assert_string_equal(coffer_source_name(src), temp_path(folder, "file"));
        assert_false(coffer_source_interrupted_update(src));
        assert_reads_sample(src);
        if (access == COFFER_ACCESS_READ)
            assert_null(coffer_source_view(src, 0, 1));
        else
            assert_views_sample(src);
        coffer_source_close(src);
    }
    coffer_source_close(NULL);
}

static void memory_is_a_source(void **state)
{
    (void)state;
    coffer_source *src;
    assert_int_equal(coffer_source_from_memory(&src, sample, SIZE, NULL), COFFER_OK);
    assert_reads_sample(src);
    assert_views_sample(src);
    assert_true(coffer__source_settled(src));
    coffer_source_close(src);

    assert_int_equal(coffer_source_from_memory(&src, NULL, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_size(src), 0);
    assert_non_null(coffer_source_view(src, 0, 0));
    coffer_source_close(src);
}

static void an_empty_file_is_a_source_of_no_bytes(void **state)
{
    (void)state;
    temp_write(temp_path(folder, "empty"), "", 0);
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        coffer_source *src = open_as(temp_path(folder, "empty"), access);
        uint8_t byte;
        assert_int_equal(coffer_source_size(src), 0);
        assert_int_equal(coffer_source_read_at(&byte, src, 0, 0, NULL), COFFER_OK);
        assert_int_equal(coffer_source_read_at(&byte, src, 0, 1, NULL), COFFER_E_OUT_OF_BOUNDS);
        assert_null(coffer_source_view(src, 0, 1));
        assert_int_equal(coffer_source_intact(src, NULL), COFFER_OK);
        coffer_source_close(src);
    }
}

/* ---- A source of the caller's own ---- */

static int closed;

static coffer_status own_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    if (offset == 13)
        return coffer__fail(err, COFFER_E_IO, offset, "unlucky");
    memset(out, *(const char *)context, len);
    return COFFER_OK;
}

static void own_close(void *context)
{
    (void)context;
    closed++;
}

static void a_callers_own_source_works_like_the_others(void **state)
{
    (void)state;
    coffer_source *src;
    char letter = 'q', bytes[4] = "";
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = own_read_at, .close = own_close };
    assert_int_equal(coffer_source_new(&src, &ops, &letter, 20, "own", NULL), COFFER_OK);
    assert_int_equal(coffer_source_read_at(bytes, src, 17, 3, NULL), COFFER_OK);
    assert_string_equal(bytes, "qqq");
    assert_int_equal(coffer_source_read_at(bytes, src, 13, 3, &err), COFFER_E_IO);
    assert_string_equal(err.text, "unlucky");
    assert_null(coffer_source_view(src, 0, 1));
    assert_int_equal(coffer_source_intact(src, NULL), COFFER_OK);
    assert_true(coffer__source_settled(src));
    coffer_source_close(src);
    assert_int_equal(closed, 1);

    ops.read_at = NULL;
    assert_int_equal(coffer_source_new(&src, &ops, &letter, 20, "own", &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(closed, 1);
}

/* ---- Not regular files ---- */

static void what_cannot_be_read_says_why(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_open(&src, "/no/such", NULL, &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot open: No such file or directory");
    assert_int_equal(coffer_source_open(&src, "/", NULL, &err), COFFER_E_IO);
    assert_string_equal(err.text, "cannot read: Is a directory");
    assert_null(src);
}

static void *feed(void *argument)
{
    int fd = *(int *)argument;
    for (size_t done = 0; done < SIZE;) {
        ssize_t n = write(fd, sample + done, SIZE - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    close(fd);
    return NULL;
}

static void a_pipe_is_spooled(void **state)
{
    (void)state;
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        int ends[2];
        char path[64];
        pthread_t writer;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(pthread_create(&writer, NULL, feed, &ends[1]), 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        coffer_source *src = open_as(path, access);
        pthread_join(writer, NULL);
        close(ends[0]);
        assert_reads_sample(src);
        assert_true(coffer__source_settled(src));
        coffer_source_close(src);
    }
}

static void a_dash_is_standard_input(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDIN_FILENO);
    pthread_t writer;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    assert_int_equal(pthread_create(&writer, NULL, feed, &ends[1]), 0);
    coffer_source *src = open_as("-", COFFER_ACCESS_AUTO);
    pthread_join(writer, NULL);
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_string_equal(coffer_source_name(src), "standard input");
    assert_reads_sample(src);
    coffer_source_close(src);
}

/* ---- Files that change ---- */

static void a_file_cut_while_it_is_read_is_an_error(void **state)
{
    (void)state;
    uint8_t bytes[10];
    coffer_source *src = open_sample("cut2", COFFER_ACCESS_READ);
    assert_int_equal(truncate(temp_path(folder, "cut2"), 5000), 0);
    assert_int_equal(coffer_source_read_at(bytes, src, 100, 10, NULL), COFFER_OK);
    assert_int_equal(coffer_source_read_at(bytes, src, 15000, 10, NULL), COFFER_E_CHANGED);
    coffer_source_close(src);
}

static void with_too_many_mappings_files_are_read(void **state)
{
    (void)state;
    int slots[1024], count = 0, slot;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    while ((slot = coffer__guard_add(sample, 1)) >= 0)
        slots[count++] = slot;
    assert_int_equal(count, 1024);
    src = open_sample("many", COFFER_ACCESS_AUTO);
    assert_reads_sample(src);
    assert_null(coffer_source_view(src, 0, 1));
    coffer_source_close(src);
    opts.access = COFFER_ACCESS_MAP;
    assert_int_equal(coffer_source_open(&src, temp_path(folder, "many"), &opts, &err), COFFER_E_LIMIT);
    while (count > 0)
        coffer__guard_remove(slots[--count]);
}

static void a_device_without_an_end_is_refused(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_open(&src, "/dev/zero", NULL, &err), COFFER_E_LIMIT);
    assert_null(src);
}

/* ---- Settled ---- */

/* The rest of the last page is zeros then, and the kernel sends no signal. */
static void a_mapped_file_cut_inside_its_last_page_is_an_error(void **state)
{
    (void)state;
    uint8_t bytes[100];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = open_sample("cut", COFFER_ACCESS_MAP);
    assert_int_equal(truncate(temp_path(folder, "cut"), SIZE - 50), 0);
    assert_int_equal(coffer_source_read_at(bytes, src, 0, 100, NULL), COFFER_OK);
    assert_int_equal(coffer_source_read_at(bytes, src, SIZE - 100, 100, &err), COFFER_E_CHANGED);
    assert_non_null(strstr(err.text, "truncated from 20000 to 19950 bytes while it was read"));
    assert_int_equal(coffer_source_intact(src, &err), COFFER_E_CHANGED);
    coffer_source_close(src);
}

static void a_source_is_settled_until_its_file_changes(void **state)
{
    (void)state;
    coffer_source *src = open_sample("settled", COFFER_ACCESS_AUTO);
    assert_true(coffer__source_settled(src));
    assert_int_equal(truncate(temp_path(folder, "settled"), SIZE + 1), 0);
    assert_false(coffer__source_settled(src));
    coffer_source_close(src);
}

static void a_source_stays_settled_when_its_file_is_replaced_or_removed(void **state)
{
    (void)state;
    coffer_source *src = open_sample("replaced", COFFER_ACCESS_AUTO);
    temp_write(temp_path(folder, "new"), sample, SIZE);
    assert_int_equal(rename(temp_path(folder, "new"), temp_path(folder, "replaced")), 0);
    assert_true(coffer__source_settled(src));
    assert_reads_sample(src);
    coffer_source_close(src);
    src = open_sample("replaced", COFFER_ACCESS_AUTO);
    assert_int_equal(unlink(temp_path(folder, "replaced")), 0);
    assert_true(coffer__source_settled(src));
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_mapped_or_read_as_asked),
        cmocka_unit_test(memory_is_a_source),
        cmocka_unit_test(an_empty_file_is_a_source_of_no_bytes),
        cmocka_unit_test(a_callers_own_source_works_like_the_others),
        cmocka_unit_test(what_cannot_be_read_says_why),
        cmocka_unit_test(a_pipe_is_spooled),
        cmocka_unit_test(a_dash_is_standard_input),
        cmocka_unit_test(a_file_cut_while_it_is_read_is_an_error),
        cmocka_unit_test(with_too_many_mappings_files_are_read),
        cmocka_unit_test(a_mapped_file_cut_inside_its_last_page_is_an_error),
        cmocka_unit_test(a_device_without_an_end_is_refused),
        cmocka_unit_test(a_source_is_settled_until_its_file_changes),
        cmocka_unit_test(a_source_stays_settled_when_its_file_is_replaced_or_removed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
