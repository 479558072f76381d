/* A crash while a file is replaced leaves the old one or the new one. */
#include "coffer/source.h"
#include "io/journal.h"
#include "io/sink.h"
#include "support/crash.h"

#include <stdlib.h>
#include <string.h>

enum { OLD_SIZE = 1500, NEW_SIZE = 2600 };

struct replacement {
    uint8_t old[OLD_SIZE], new[NEW_SIZE];
    bool exclusive;
};

static struct replacement sample(bool exclusive)
{
    struct replacement r = { .exclusive = exclusive };
    memset(r.old, 'o', sizeof r.old);
    memset(r.new, 'n', sizeof r.new);
    return r;
}

static void write_old(const char *folder, void *context)
{
    struct replacement *r = context;
    temp_write(temp_path(folder, "file"), r->old, sizeof r->old);
}

static void write_new(const char *folder, void *context)
{
    struct replacement *r = context;
    coffer__sink *sink;
    coffer__sink_opts opts = { .exclusive = r->exclusive };
    assert_int_equal(coffer__sink_create(&sink, temp_path(folder, "file"), &opts, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_write(sink, r->new, sizeof r->new, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_patch(sink, 10, "nnn", 3, NULL), COFFER_OK);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
}

static const char *old_or_new(const char *folder, void *context, bool finished)
{
    struct replacement *r = context;
    const char *path = temp_path(folder, "file");
    if (temp_holds(path, r->new, sizeof r->new))
        return NULL;
    if (finished)
        return "the new file is not there after the commit";
    if (r->exclusive)
        return temp_exists(path) ? "a part of a new file has its name" : NULL;
    return temp_holds(path, r->old, sizeof r->old) ? NULL : "neither the old file nor the new one";
}

static void a_replaced_file_is_old_or_new(void **state)
{
    (void)state;
    struct replacement r = sample(false);
    crash_test test = { write_old, write_new, old_or_new, &r };
    assert_true(crash_enumerate(&test) > 50);
}

static void a_new_file_is_complete_or_not_there(void **state)
{
    (void)state;
    struct replacement r = sample(true);
    crash_test test = { NULL, write_new, old_or_new, &r };
    assert_true(crash_enumerate(&test) > 50);
}

/* ---- Over a file whose update was interrupted ---- */

struct interrupted {
    struct replacement files;
    uint8_t torn[OLD_SIZE + 100];
    uint8_t *journal;
    size_t journal_len;
};

static void write_interrupted(const char *folder, void *context)
{
    struct interrupted *i = context;
    temp_write(temp_path(folder, "file"), i->torn, sizeof i->torn);
    temp_write(temp_path(folder, "file-journal"), i->journal, i->journal_len);
}

static void write_journal_alone(const char *folder, void *context)
{
    struct interrupted *i = context;
    temp_write(temp_path(folder, "file-journal"), i->journal, i->journal_len);
}

static const char *reader_sees_old_or_new(const char *folder, void *context, bool finished)
{
    struct interrupted *i = context;
    const char *path = temp_path(folder, "file");
    coffer_source *src;
    uint8_t seen[NEW_SIZE];
    if (!temp_exists(path) && !finished)
        return NULL;
    if (coffer_source_open(&src, path, NULL, NULL) != COFFER_OK)
        return "cannot be read";
    size_t size = (size_t)coffer_source_size(src);
    bool read = size <= sizeof seen && coffer_source_read_at(seen, src, 0, size, NULL) == COFFER_OK;
    coffer_source_close(src);
    if (read && size == NEW_SIZE && memcmp(seen, i->files.new, size) == 0)
        return NULL;
    if (finished)
        return "not the new file after the commit";
    return read && size == OLD_SIZE && memcmp(seen, i->files.old, size) == 0
               ? NULL
               : "neither the old file nor the new one";
}

static struct interrupted interrupt_update(void)
{
    struct interrupted i = { .files = sample(false) };
    const coffer__range range = { 100, 600 };
    coffer__update *update;
    char *folder = temp_make();
    write_old(folder, &i.files);
    assert_int_equal(coffer__update_open(&update, temp_path(folder, "file"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(update, &range, 1, NULL), COFFER_OK);
    i.journal = temp_read(temp_path(folder, "file-journal"), &i.journal_len);
    coffer__update_close(update);
    temp_remove(folder);
    memcpy(i.torn, i.files.old, OLD_SIZE);
    memset(i.torn + 200, 't', 300);
    memset(i.torn + OLD_SIZE, 't', 100);
    return i;
}

static void an_interrupted_update_never_shines_through_a_new_file(void **state)
{
    (void)state;
    struct interrupted i = interrupt_update();
    crash_test over = { write_interrupted, write_new, reader_sees_old_or_new, &i };
    crash_test alone = { write_journal_alone, write_new, reader_sees_old_or_new, &i };
    assert_true(crash_enumerate(&over) > 100);
    assert_true(crash_enumerate(&alone) > 50);
    free(i.journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replaced_file_is_old_or_new),
        cmocka_unit_test(a_new_file_is_complete_or_not_there),
        cmocka_unit_test(an_interrupted_update_never_shines_through_a_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
