/* A crash while a file is replaced leaves the old one or the new one. */
#include "io/sink.h"
#include "support/crash.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replaced_file_is_old_or_new),
        cmocka_unit_test(a_new_file_is_complete_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
