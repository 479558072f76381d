#include "io/journal.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "coffer/format.h"
#include "io/source_private.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD "0123456789abcdefghij"
enum { OLD_SIZE = 20 };

static int write_old(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    temp_write(temp_path(temp_folder, "file"), OLD, OLD_SIZE);
    return 0;
}

static const char *file(void)
{
    return temp_path(temp_folder, "file");
}

static void assert_holds(const char *text)
{
    assert_true(temp_holds(file(), text, strlen(text)));
}

/* ---- Updates ---- */

static coffer__update *open_update(void)
{
    coffer__update *update = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer__update_open(&update, file(), NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return update;
}

static coffer__update *begin_update(uint64_t offset, uint64_t length)
{
    coffer__update *update = open_update();
    const coffer__range range = { offset, length };
    assert_int_equal(coffer__update_begin(update, &range, 1, NULL), COFFER_OK);
    return update;
}

static void an_update_appends_and_overwrites(void **state)
{
    (void)state;
    coffer__update *update = begin_update(5, 5);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 6, "XX", 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, OLD_SIZE + 1, "AI", 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "", 0, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "!", 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    coffer__update_close(update);
    assert_holds("012345XX89abcdefghijtAIl!");
    temp_assert_only(temp_folder, "file", NULL);
}

static void large_appends_pass_the_buffer(void **state)
{
    (void)state;
    enum { LARGE = 3 << 20 };
    uint8_t *expected = malloc(OLD_SIZE + 10 + LARGE);
    memcpy(expected, OLD, OLD_SIZE);
    memset(expected + OLD_SIZE, 's', 10);
    memset(expected + OLD_SIZE + 10, 'L', LARGE);
    coffer__update *update = begin_update(0, 0);
    assert_int_equal(coffer__update_append(update, expected + OLD_SIZE, 10, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, expected + OLD_SIZE + 10, LARGE, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    coffer__update_close(update);
    assert_true(temp_holds(file(), expected, OLD_SIZE + 10 + LARGE));
    free(expected);
}

static void only_what_was_journalled_or_appended_may_be_overwritten(void **state)
{
    (void)state;
    const coffer__range ranges[] = { { 15, 5 }, { 5, 5 }, { 10, 2 } };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__update *update = open_update();
    assert_int_equal(coffer__update_begin(update, ranges, 3, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 4, "xx", 2, &err), COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "2 bytes at 4 are outside the ranges of this update"));
    assert_int_equal(coffer__update_overwrite(update, 11, "xx", 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_overwrite(update, 14, "xx", 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_overwrite(update, 23, "xx", 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_overwrite(update, UINT64_MAX, "xx", 2, NULL), COFFER_E_INVALID_ARGUMENT);
    /* Ranges that touch are one, and so is the last one with what follows it. */
    assert_int_equal(coffer__update_overwrite(update, 9, "YYY", 3, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 19, "ZZ", 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    coffer__update_close(update);
    assert_holds("012345678YYYcdefghiZZail");
}

static void an_update_that_is_not_committed_never_was(void **state)
{
    (void)state;
    coffer__update *update = begin_update(0, 10);
    assert_int_equal(coffer__update_overwrite(update, 0, "XXXXXXXXXX", 10, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, OLD_SIZE, "TAIL", 4, NULL), COFFER_OK);
    coffer__update_close(update);
    coffer__update_close(NULL);
    assert_holds(OLD);
    temp_assert_only(temp_folder, "file", NULL);
}

static void a_handle_makes_several_updates(void **state)
{
    (void)state;
    const coffer__range first = { 0, 1 }, second = { OLD_SIZE, 1 };
    coffer__update *update = open_update();
    assert_int_equal(coffer__update_begin(update, &first, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "+", 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(update, &second, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, OLD_SIZE, "-", 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 0, "-", 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_roll_back(update, NULL), COFFER_OK);
    assert_int_equal(coffer__update_roll_back(update, NULL), COFFER_OK);
    assert_holds(OLD "+");
    assert_int_equal(coffer__update_begin(update, NULL, 0, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "=", 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    coffer__update_close(update);
    assert_holds(OLD "+=");
}

static void what_was_flushed_is_read_through_the_descriptor(void **state)
{
    (void)state;
    char bytes[5] = "";
    coffer__update *update = begin_update(0, 1);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_flush(update, NULL), COFFER_OK);
    assert_int_equal(pread(coffer__update_fd(update), bytes, 4, OLD_SIZE), 4);
    assert_string_equal(bytes, "tail");
    assert_int_equal(coffer_source_size(coffer__update_source(update)), OLD_SIZE);
    assert_int_equal(coffer_source_read_at(bytes, coffer__update_source(update), 1, 4, NULL), COFFER_OK);
    assert_string_equal(bytes, "1234");
    coffer__update_close(update);
}

static void calls_out_of_order_are_refused(void **state)
{
    (void)state;
    const coffer__range range = { 0, 1 }, past = { 15, 6 }, both[] = { { 5, 3 }, { 7, 1 } };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__update *update = open_update();
    assert_int_equal(coffer__update_append(update, "x", 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_overwrite(update, 0, "x", 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_commit(update, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_flush(update, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_begin(update, &past, 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_begin(update, both, 2, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_begin(update, &range, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(update, &range, 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    coffer__update_close(update);
    assert_holds(OLD);
}

static void only_one_writer_at_a_time(void **state)
{
    (void)state;
    coffer__update *update = open_update(), *second = NULL;
    assert_int_equal(coffer__update_open(&second, file(), NULL, NULL), COFFER_E_LOCKED);
    assert_int_equal(coffer__update_open(&second, temp_path(temp_folder, "missing"), NULL, NULL),
                     COFFER_E_IO);
    assert_null(second);
    coffer__update_close(update);
}

static void a_journal_that_cannot_be_written_ends_the_handle(void **state)
{
    (void)state;
    const coffer__range range = { 0, 1 };
    coffer_error first = COFFER_ERROR_INIT, later = COFFER_ERROR_INIT;
    coffer__update *update = open_update();
    assert_int_equal(mkdir(temp_path(temp_folder, "file-journal"), 0700), 0);
    assert_int_equal(coffer__update_begin(update, &range, 1, &first), COFFER_E_IO);
    assert_int_equal(rmdir(temp_path(temp_folder, "file-journal")), 0);
    assert_int_equal(coffer__update_begin(update, &range, 1, &later), COFFER_E_IO);
    assert_string_equal(first.text, later.text);
    assert_int_equal(coffer__update_roll_back(update, NULL), COFFER_E_IO);
    coffer__update_close(update);
    assert_holds(OLD);
}

static void ranges_too_large_for_a_journal_are_refused(void **state)
{
    (void)state;
    const coffer__range range = { 0, UINT64_C(5) << 30 };
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(truncate(file(), (off_t)range.length), 0);
    coffer__update *update = open_update();
    assert_int_equal(coffer__update_begin(update, &range, 1, &err), COFFER_E_LIMIT);
    coffer__update_close(update);
    temp_assert_only(temp_folder, "file", NULL);
}

static void the_journal_is_as_private_as_the_file(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(chmod(file(), 0600), 0);
    coffer__update *update = begin_update(0, 1);
    assert_int_equal(stat(temp_path(temp_folder, "file-journal"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    coffer__update_close(update);
}

static void no_journal_is_written_beside_a_file_that_replaced_the_locked_one(void **state)
{
    (void)state;
    const coffer__range range = { 0, 5 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__update *update = open_update();
    temp_write(temp_path(temp_folder, "other"), "another file", 12);
    assert_int_equal(rename(temp_path(temp_folder, "other"), file()), 0);
    assert_int_equal(coffer__update_begin(update, &range, 1, &err), COFFER_E_CHANGED);
    assert_non_null(strstr(err.text, "replaced or removed while it was open for writing"));
    temp_assert_only(temp_folder, "file", NULL);
    assert_int_equal(unlink(file()), 0);
    assert_int_equal(coffer__update_begin(update, &range, 1, NULL), COFFER_E_CHANGED);
    coffer__update_close(update);
    temp_assert_only(temp_folder, NULL);
}

/* ---- Readers beside a journal ---- */

static void assert_reader_sees(const char *path, const char *text, bool interrupted)
{
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        coffer_source *src = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
        char bytes[100] = "", one;
        opts.access = access;
        if (coffer_source_open(&src, path, &opts, &err) != COFFER_OK)
            fail_msg("%s", err.text);
        assert_int_equal(coffer_source_size(src), strlen(text));
        assert_int_equal(coffer_source_read_at(bytes, src, 0, strlen(text), NULL), COFFER_OK);
        assert_string_equal(bytes, text);
        for (size_t i = 0; i < strlen(text); i++) {
            assert_int_equal(coffer_source_read_at(&one, src, i, 1, NULL), COFFER_OK);
            assert_int_equal(one, text[i]);
        }
        assert_int_equal(coffer_source_interrupted_update(src), interrupted);
        assert_true(coffer__source_settled(src));
        coffer_source_close(src);
    }
}

static void a_reader_beside_a_writer_sees_the_old_state_until_the_commit(void **state)
{
    (void)state;
    const coffer__range ranges[] = { { 2, 3 }, { 10, 5 } };
    coffer__update *update = open_update();
    assert_reader_sees(file(), OLD, false);
    assert_int_equal(coffer__update_begin(update, ranges, 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 2, "XXX", 3, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(update, 10, "YYYYY", 5, NULL), COFFER_OK);
    assert_int_equal(coffer__update_flush(update, NULL), COFFER_OK);
    assert_reader_sees(file(), OLD, true);
    assert_int_equal(symlink(file(), temp_path(temp_folder, "link")), 0);
    assert_reader_sees(temp_path(temp_folder, "link"), OLD, true);
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    assert_reader_sees(file(), "01XXX56789YYYYYfghijtail", false);
    coffer__update_close(update);
}

static void the_bytes_as_they_are_can_be_asked_for(void **state)
{
    (void)state;
    coffer_source *src;
    char byte = 0;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer__update *update = begin_update(0, 1);
    assert_int_equal(coffer__update_overwrite(update, 0, "X", 1, NULL), COFFER_OK);
    opts.ignore_journal = true;
    assert_int_equal(coffer_source_open(&src, file(), &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_source_read_at(&byte, src, 0, 1, NULL), COFFER_OK);
    assert_int_equal(byte, 'X');
    assert_false(coffer_source_interrupted_update(src));
    assert_true(coffer__source_settled(src));
    coffer_source_close(src);
    coffer__update_close(update);
}

static void a_source_is_unsettled_by_a_journal_that_comes_or_goes(void **state)
{
    (void)state;
    coffer_source *before, *during;
    assert_int_equal(coffer_source_open(&before, file(), NULL, NULL), COFFER_OK);
    coffer__update *update = begin_update(0, 1);
    assert_false(coffer__source_settled(before));
    coffer_source_close(before);
    assert_int_equal(coffer_source_open(&during, file(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(update, "tail", 4, NULL), COFFER_OK);
    assert_int_equal(coffer__update_flush(update, NULL), COFFER_OK);
    assert_true(coffer__source_settled(during));
    assert_int_equal(coffer__update_commit(update, NULL), COFFER_OK);
    assert_false(coffer__source_settled(during));
    coffer_source_close(during);
    coffer__update_close(update);
}

/* ---- Journals that others wrote ---- */

struct made {
    uint8_t bytes[200];
    size_t len;
};

static void make_range(struct made *made, uint64_t offset, const char *text, uint32_t length)
{
    coffer__store_u64(made->bytes + made->len, offset);
    coffer__store_u32(made->bytes + made->len + 8, length);
    memcpy(made->bytes + made->len + 12, text, strlen(text));
    made->len += 12 + strlen(text);
}

static struct made make_journal(uint32_t version, uint64_t old_size, uint32_t count)
{
    struct made made = { "CFRJ", 24 };
    coffer__store_u32(made.bytes + 4, version);
    coffer__store_u64(made.bytes + 8, old_size);
    coffer__store_u32(made.bytes + 16, count);
    return made;
}

static void finish_journal(struct made *made)
{
    coffer__store_u32(made->bytes + 20, 0);
    coffer__store_u32(made->bytes + 20, coffer__crc32(0, made->bytes, made->len));
    temp_write(temp_path(temp_folder, "file-journal"), made->bytes, made->len);
}

static void the_layout_is_the_one_of_the_specification(void **state)
{
    (void)state;
    struct made made = make_journal(2, OLD_SIZE, 2);
    const coffer__range ranges[] = { { 15, 3 }, { 1, 2 } };
    coffer__store_u32(made.bytes + 24, OLD_SIZE);
    coffer__store_u32(made.bytes + 28, coffer__crc32(0, (const uint8_t *)OLD, OLD_SIZE));
    made.len = 32;
    make_range(&made, 1, "12", 2);
    make_range(&made, 15, "fgh", 3);
    finish_journal(&made);
    temp_empty(temp_folder);
    temp_write(file(), OLD, OLD_SIZE);
    coffer__update *update = open_update();
    assert_int_equal(coffer__update_begin(update, ranges, 2, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "file-journal"), made.bytes, made.len));
    coffer__update_close(update);
}

static void ranges_in_any_order_are_laid_over_the_file(void **state)
{
    (void)state;
    bool done = false;
    struct made made = make_journal(1, 15, 3);
    make_range(&made, 10, "XY", 2);
    make_range(&made, 0, "AB", 2);
    make_range(&made, 5, "", 0);
    finish_journal(&made);
    assert_reader_sees(file(), "AB23456789XYcde", true);
    assert_holds(OLD);
    assert_int_equal(coffer_roll_back(&done, file(), NULL), COFFER_OK);
    assert_true(done);
    assert_holds("AB23456789XYcde");
    temp_assert_only(temp_folder, "file", NULL);
    assert_int_equal(coffer_roll_back(&done, file(), NULL), COFFER_OK);
    assert_false(done);
}

static void a_journal_that_was_never_finished_is_as_none(void **state)
{
    (void)state;
    bool done = true;
    struct made made = make_journal(1, 15, 1);
    make_range(&made, 0, "AB", 2);
    finish_journal(&made);
    for (size_t len = 0; len < made.len; len++) {
        temp_write(temp_path(temp_folder, "file-journal"), made.bytes, len);
        assert_reader_sees(file(), OLD, false);
    }
    for (size_t i = 0; i < made.len; i++) {
        made.bytes[i] ^= 1;
        temp_write(temp_path(temp_folder, "file-journal"), made.bytes, made.len);
        assert_reader_sees(file(), OLD, false);
        made.bytes[i] ^= 1;
    }
    temp_write(temp_path(temp_folder, "file-journal"), made.bytes, made.len - 1);
    assert_int_equal(coffer_roll_back(&done, file(), NULL), COFFER_OK);
    assert_false(done);
    assert_holds(OLD);
    temp_assert_only(temp_folder, "file", NULL);
}

static void assert_refused(struct made *made, coffer_status expected, const char *text)
{
    coffer_source *src = NULL;
    coffer__update *update = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    finish_journal(made);
    assert_int_equal(coffer_source_open(&src, file(), NULL, &err), expected);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, err.text);
    assert_int_equal(coffer_roll_back(NULL, file(), NULL), expected);
    assert_int_equal(coffer__update_open(&update, file(), NULL, NULL), expected);
    assert_holds(OLD);
    assert_true(temp_exists(temp_path(temp_folder, "file-journal")));
    assert_null(src);
}

static void a_journal_of_another_file_of_that_name_is_not_applied(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    struct made made = make_journal(2, OLD_SIZE, 1);
    coffer__store_u32(made.bytes + 24, OLD_SIZE);
    coffer__store_u32(made.bytes + 28, coffer__crc32(0, (const uint8_t *)OLD, OLD_SIZE));
    made.len = 32;
    make_range(&made, 1, "12", 2);
    finish_journal(&made);
    /* Half an update: what is in a range may have changed. */
    temp_write(file(), "0XX3456789abcdefghijNEW", 23);
    assert_int_equal(coffer_source_open(&src, file(), NULL, &err), COFFER_OK);
    assert_int_equal(coffer_source_size(src), OLD_SIZE);
    coffer_source_close(src);
    temp_write(file(), "another file of 20 b", OLD_SIZE);
    src = NULL;
    assert_int_equal(coffer_source_open(&src, file(), NULL, &err), COFFER_E_INCONSISTENT);
    assert_int_equal(coffer_roll_back(NULL, file(), &err), COFFER_E_INCONSISTENT);
    assert_holds("another file of 20 b");
}

static void a_journal_of_somebody_else_is_not_applied(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    struct made made = make_journal(1, OLD_SIZE, 1);
    if (geteuid() != 0)
        skip(); /* only root can give a file away */
    make_range(&made, 0, "evil", 4);
    finish_journal(&made);
    assert_int_equal(chown(temp_path(temp_folder, "file-journal"), 12345, 12345), 0);
    assert_int_equal(coffer_source_open(&src, file(), NULL, &err), COFFER_E_UNSAFE_PATH);
    assert_non_null(strstr(err.text, "belongs to user 12345"));
    assert_int_equal(coffer_roll_back(NULL, file(), &err), COFFER_E_UNSAFE_PATH);
    assert_holds(OLD);
    /* That of the owner of the file is trusted. */
    assert_int_equal(chown(file(), 12345, 12345), 0);
    assert_int_equal(coffer_roll_back(NULL, file(), &err), COFFER_OK);
    assert_holds("evil456789abcdefghij");
}

static void a_whole_journal_that_makes_no_sense_is_an_error(void **state)
{
    (void)state;
    struct made made = make_journal(3, OLD_SIZE, 0);
    assert_refused(&made, COFFER_E_UNSUPPORTED_VERSION, "version 3, this library knows 1 and 2");

    made = make_journal(1, OLD_SIZE, UINT32_MAX);
    assert_refused(&made, COFFER_E_TRUNCATED, "header says 4294967295 ranges, 0 bytes follow");

    made = make_journal(1, OLD_SIZE, 2);
    make_range(&made, 0, "AAAAAAAAAAAAAAAAA", 17);
    assert_refused(&made, COFFER_E_TRUNCATED, "ends inside range 1 of 2");

    made = make_journal(1, OLD_SIZE, 1);
    make_range(&made, 0, "AAA", 4);
    assert_refused(&made, COFFER_E_TRUNCATED, "range 0 has 4 bytes, 3 are left");

    made = make_journal(1, OLD_SIZE, 1);
    make_range(&made, 0, "AAA", 2);
    assert_refused(&made, COFFER_E_TRAILING_BYTES, "1 bytes after the last range");

    made = make_journal(1, OLD_SIZE, 1);
    make_range(&made, OLD_SIZE - 1, "AA", 2);
    assert_refused(&made, COFFER_E_OUT_OF_BOUNDS, "2 bytes at 19 are past the old size 20");

    made = make_journal(1, OLD_SIZE, 1);
    make_range(&made, UINT64_MAX, "AA", 2);
    assert_refused(&made, COFFER_E_OUT_OF_BOUNDS, "are past the old size 20");

    made = make_journal(1, OLD_SIZE, 2);
    make_range(&made, 5, "AA", 2);
    make_range(&made, 4, "AA", 2);
    assert_refused(&made, COFFER_E_OVERLAP, "the range at 5 overlaps the one before, which ends at 6");

    made = make_journal(1, OLD_SIZE + 1, 0);
    assert_refused(&made, COFFER_E_TRUNCATED, "the journal was written for 21 bytes, the file has 20");

    made = make_journal(1, OLD_SIZE + 4, 1);
    make_range(&made, OLD_SIZE + 1, "AAA", 3);
    assert_refused(&made, COFFER_E_TRUNCATED, "the journal was written for 24 bytes, the file has 20");
}

static void bytes_that_the_file_lost_come_from_the_journal(void **state)
{
    (void)state;
    coffer_source *src;
    char bytes[25] = "";
    struct made made = make_journal(1, OLD_SIZE + 4, 2);
    make_range(&made, 15, "FGHIJ", 5);
    make_range(&made, OLD_SIZE, "more", 4);
    finish_journal(&made);
    assert_int_equal(coffer_source_open(&src, file(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_source_read_at(bytes, src, 0, 24, NULL), COFFER_OK);
    assert_string_equal(bytes, "0123456789abcdeFGHIJmore");
    assert_int_equal(coffer_source_read_at(bytes, src, 21, 2, NULL), COFFER_OK);
    assert_memory_equal(bytes, "or", 2);
    coffer_source_close(src);
    assert_int_equal(coffer_roll_back(NULL, file(), NULL), COFFER_OK);
    assert_holds("0123456789abcdeFGHIJmore");
}

static void a_journal_larger_than_any_is_not_loaded(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    temp_write(temp_path(temp_folder, "file-journal"), "CFRJ", 4);
    assert_int_equal(truncate(temp_path(temp_folder, "file-journal"), (off_t)COFFER__JOURNAL_MAX + 1), 0);
    assert_int_equal(coffer_source_open(&src, file(), NULL, NULL), COFFER_E_LIMIT);
    assert_null(src);
}

static void what_an_interrupted_update_left_is_undone_at_the_next_open(void **state)
{
    (void)state;
    bool rolled_back = false;
    coffer__update *update;
    struct made made = make_journal(1, 10, 1);
    make_range(&made, 0, "AB", 2);
    finish_journal(&made);
    assert_int_equal(coffer__update_open(&update, file(), &rolled_back, NULL), COFFER_OK);
    assert_true(rolled_back);
    assert_int_equal(coffer_source_size(coffer__update_source(update)), 10);
    coffer__update_close(update);
    assert_holds("AB23456789");
    assert_int_equal(coffer__update_open(&update, file(), &rolled_back, NULL), COFFER_OK);
    assert_false(rolled_back);
    coffer__update_close(update);
}

static void rolling_back_a_missing_file_is_an_error(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_roll_back(NULL, temp_path(temp_folder, "missing"), &err), COFFER_E_IO);
    assert_non_null(strstr(err.text, "No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_update_appends_and_overwrites, write_old),
        cmocka_unit_test_setup(large_appends_pass_the_buffer, write_old),
        cmocka_unit_test_setup(only_what_was_journalled_or_appended_may_be_overwritten, write_old),
        cmocka_unit_test_setup(an_update_that_is_not_committed_never_was, write_old),
        cmocka_unit_test_setup(a_handle_makes_several_updates, write_old),
        cmocka_unit_test_setup(what_was_flushed_is_read_through_the_descriptor, write_old),
        cmocka_unit_test_setup(calls_out_of_order_are_refused, write_old),
        cmocka_unit_test_setup(only_one_writer_at_a_time, write_old),
        cmocka_unit_test_setup(a_journal_that_cannot_be_written_ends_the_handle, write_old),
        cmocka_unit_test_setup(ranges_too_large_for_a_journal_are_refused, write_old),
        cmocka_unit_test_setup(the_journal_is_as_private_as_the_file, write_old),
        cmocka_unit_test_setup(no_journal_is_written_beside_a_file_that_replaced_the_locked_one, write_old),
        cmocka_unit_test_setup(a_reader_beside_a_writer_sees_the_old_state_until_the_commit, write_old),
        cmocka_unit_test_setup(the_bytes_as_they_are_can_be_asked_for, write_old),
        cmocka_unit_test_setup(a_source_is_unsettled_by_a_journal_that_comes_or_goes, write_old),
        cmocka_unit_test_setup(the_layout_is_the_one_of_the_specification, write_old),
        cmocka_unit_test_setup(ranges_in_any_order_are_laid_over_the_file, write_old),
        cmocka_unit_test_setup(a_journal_that_was_never_finished_is_as_none, write_old),
        cmocka_unit_test_setup(a_journal_of_another_file_of_that_name_is_not_applied, write_old),
        cmocka_unit_test_setup(a_journal_of_somebody_else_is_not_applied, write_old),
        cmocka_unit_test_setup(a_whole_journal_that_makes_no_sense_is_an_error, write_old),
        cmocka_unit_test_setup(bytes_that_the_file_lost_come_from_the_journal, write_old),
        cmocka_unit_test_setup(a_journal_larger_than_any_is_not_loaded, write_old),
        cmocka_unit_test_setup(what_an_interrupted_update_left_is_undone_at_the_next_open, write_old),
        cmocka_unit_test_setup(rolling_back_a_missing_file_is_an_error, write_old),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
