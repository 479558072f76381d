/* A crash during an update in place leaves the old state or the new one, for readers and for writers. */
#include "coffer/format.h"
#include "io/journal.h"
#include "support/crash.h"

#include <stdlib.h>
#include <string.h>

enum { OLD_SIZE = 1700, TAIL = 900, HEAD = 40, MIDDLE_AT = 1000, MIDDLE = 600 };

struct states {
    uint8_t old[OLD_SIZE], new[OLD_SIZE + TAIL];
    const char *journal; /* beside the file before the operation, when it is a roll-back */
    size_t journal_len;
};

static struct states sample(void)
{
    struct states s = { .journal = NULL };
    for (size_t i = 0; i < sizeof s.old; i++)
        s.old[i] = (uint8_t)(i % 251);
    memcpy(s.new, s.old, sizeof s.old);
    memset(s.new, 'H', HEAD);
    memset(s.new + MIDDLE_AT, 'M', MIDDLE);
    memset(s.new + OLD_SIZE, 'T', TAIL);
    return s;
}

static void write_old(const char *folder, void *context)
{
    struct states *s = context;
    temp_write(temp_path(folder, "file"), s->old, sizeof s->old);
}

static void update(const char *folder, void *context)
{
    struct states *s = context;
    const coffer__range ranges[] = { { MIDDLE_AT, MIDDLE }, { 0, HEAD } };
    coffer__update *u;
    assert_int_equal(coffer__update_open(&u, temp_path(folder, "file"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(u, ranges, 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(u, s->new + OLD_SIZE, TAIL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(u, MIDDLE_AT, s->new + MIDDLE_AT, MIDDLE, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(u, 0, s->new, HEAD, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(u, NULL), COFFER_OK);
    coffer__update_close(u);
}

/* The content that a reader sees: 'o' (old), 'n' (new), or '?'. */
static char seen(const struct states *s, const char *path, coffer_access access)
{
    coffer_source *src;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    uint8_t bytes[OLD_SIZE + TAIL];
    char found = '?';
    opts.access = access;
    if (coffer_source_open(&src, path, &opts, NULL) != COFFER_OK)
        return found;
    uint64_t size = coffer_source_size(src);
    if (size <= sizeof bytes && coffer_source_read_at(bytes, src, 0, (size_t)size, NULL) == COFFER_OK) {
        if (size == sizeof s->old && memcmp(bytes, s->old, sizeof s->old) == 0)
            found = 'o';
        else if (size == sizeof s->new &&memcmp(bytes, s->new, sizeof s->new) == 0)
            found = 'n';
    }
    coffer_source_close(src);
    return found;
}

static const char *same_for_readers_and_writers(const char *folder, void *context, bool finished)
{
    struct states *s = context;
    const char *path = temp_path(folder, "file");
    char before = seen(s, path, COFFER_ACCESS_READ);
    if (before == '?')
        return "a reader sees neither the old state nor the new one";
    if (seen(s, path, COFFER_ACCESS_AUTO) != before)
        return "a mapping shows another state than reading";
    if (finished && before != 'n')
        return "the new state is gone after the commit";
    coffer__update *u;
    if (coffer__update_open(&u, path, NULL, NULL) != COFFER_OK)
        return "cannot be opened for writing";
    coffer__update_close(u);
    bool holds =
        before == 'o' ? temp_holds(path, s->old, sizeof s->old) : temp_holds(path, s->new, sizeof s->new);
    if (!holds)
        return "the roll-back gives another state than readers saw";
    return temp_exists(temp_path(folder, "file-journal")) ? "the journal is still there" : NULL;
}

static void an_update_is_done_or_undone(void **state)
{
    (void)state;
    struct states s = sample();
    crash_test test = { write_old, update, same_for_readers_and_writers, &s };
    assert_true(crash_enumerate(&test) > 250);
}

/* ---- Two updates with one handle ---- */

static void update_twice(const char *folder, void *context)
{
    struct states *s = context;
    const coffer__range head = { 0, HEAD }, middle = { MIDDLE_AT, MIDDLE };
    coffer__update *u;
    assert_int_equal(coffer__update_open(&u, temp_path(folder, "file"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(u, &head, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(u, s->new + OLD_SIZE, TAIL / 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(u, 0, s->new, HEAD, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(u, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(u, &middle, 1, NULL), COFFER_OK);
    assert_int_equal(coffer__update_overwrite(u, MIDDLE_AT, s->new + MIDDLE_AT, MIDDLE, NULL), COFFER_OK);
    assert_int_equal(coffer__update_append(u, s->new + OLD_SIZE + TAIL / 2, TAIL / 2, NULL), COFFER_OK);
    assert_int_equal(coffer__update_commit(u, NULL), COFFER_OK);
    coffer__update_close(u);
}

static const char *one_of_three(const char *folder, void *context, bool finished)
{
    struct states *s = context;
    const char *path = temp_path(folder, "file");
    uint8_t between[OLD_SIZE + TAIL / 2];
    memcpy(between, s->old, sizeof s->old);
    memcpy(between, s->new, HEAD);
    memcpy(between + OLD_SIZE, s->new + OLD_SIZE, TAIL / 2);
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back";
    if (temp_holds(path, s->new, sizeof s->new))
        return NULL;
    if (finished)
        return "the new state is gone after the commit";
    return temp_holds(path, s->old, sizeof s->old) || temp_holds(path, between, sizeof between)
               ? NULL
               : "neither of the three states";
}

static void of_two_updates_each_is_done_or_undone(void **state)
{
    (void)state;
    struct states s = sample();
    crash_test test = { write_old, update_twice, one_of_three, &s };
    assert_true(crash_enumerate(&test) > 90);
}

/* ---- A crash while an earlier crash is repaired ---- */

static void write_interrupted(const char *folder, void *context)
{
    struct states *s = context;
    temp_write(temp_path(folder, "file"), s->new, sizeof s->new);
    temp_write(temp_path(folder, "file-journal"), s->journal, s->journal_len);
}

static void roll_back(const char *folder, void *context)
{
    (void)context;
    bool done = false;
    assert_int_equal(coffer_roll_back(&done, temp_path(folder, "file"), NULL), COFFER_OK);
    assert_true(done);
}

static const char *always_old(const char *folder, void *context, bool finished)
{
    struct states *s = context;
    const char *path = temp_path(folder, "file");
    if (finished && temp_exists(temp_path(folder, "file-journal")))
        return "the journal came back after the roll-back";
    if (seen(s, path, COFFER_ACCESS_AUTO) != 'o')
        return "a reader does not see the old state";
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back again";
    return temp_holds(path, s->old, sizeof s->old) ? NULL : "the second roll-back gives another state";
}

/* The journal of an update that is begun. */
static void take_journal(struct states *s)
{
    const coffer__range ranges[] = { { MIDDLE_AT, MIDDLE }, { 0, HEAD } };
    coffer__update *u;
    char *folder = temp_make();
    write_old(folder, s);
    assert_int_equal(coffer__update_open(&u, temp_path(folder, "file"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__update_begin(u, ranges, 2, NULL), COFFER_OK);
    s->journal = (char *)temp_read(temp_path(folder, "file-journal"), &s->journal_len);
    coffer__update_close(u);
    temp_remove(folder);
}

static void a_roll_back_that_is_interrupted_can_be_repeated(void **state)
{
    (void)state;
    struct states s = sample();
    take_journal(&s);
    crash_test test = { write_interrupted, roll_back, always_old, &s };
    assert_true(crash_enumerate(&test) > 30);
    free((void *)(uintptr_t)s.journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_done_or_undone),
        cmocka_unit_test(of_two_updates_each_is_done_or_undone),
        cmocka_unit_test(a_roll_back_that_is_interrupted_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
