/* A crash at any point of writing or changing a set leaves the old state or the new one. */
#include "support/crash.h"
#include "support/dataset_write.h"

#include <stdlib.h>

typedef struct scenario {
    uint64_t old_samples; /* UINT64_MAX: no file before */
    uint64_t new_samples;
    size_t old_fields, new_fields;
    uint16_t flags;
    coffer_status (*act)(const char *path, coffer_error *err);
} scenario;

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    assert_int_equal(dataset_create(temp_path(folder, "s.mldf"), of->old_samples, of->flags, NULL, NULL),
                     COFFER_OK);
}

static void run(const char *folder, void *context)
{
    const scenario *of = context;
    coffer_error err = COFFER_ERROR_INIT;
    if (of->act(temp_path(folder, "s.mldf"), &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

static const char *look(coffer_source *src, const void *context, bool finished)
{
    const scenario *sizes = context;
    coffer_mldf *set = NULL;
    if (coffer_mldf_open(&set, src, NULL, NULL) != COFFER_OK)
        return "the set cannot be opened";
    uint64_t samples = coffer_mldf_sample_count(set);
    size_t fields = coffer_mldf_field_count(set);
    bool is_new = samples == sizes->new_samples && fields == sizes->new_fields;
    bool is_old = samples == sizes->old_samples && fields == sizes->old_fields;
    coffer_mldf_close(set);
    return is_new || (!finished && is_old) ? NULL : "neither the old state nor the new one";
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *sizes = context;
    return crash_verify_file(temp_path(folder, "s.mldf"), sizes->old_samples == UINT64_MAX, finished, look,
                             context);
}

static void try_all(const scenario *of, size_t states)
{
    scenario copy = *of;
    crash_test test = { of->old_samples == UINT64_MAX ? NULL : setup, run, verify, &copy };
    assert_true(crash_enumerate(&test) > states);
}

static coffer_status create(const char *path, coffer_error *err)
{
    return dataset_create(path, 50, 0, NULL, err);
}

static coffer_status append(const char *path, coffer_error *err)
{
    return dataset_append(path, 12, 30, err);
}

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    (void)context;
    return sample % 5 == 0 ? COFFER_OK : coffer_mldf_writer_set_text(writer, field, "a new value", 11, err);
}

static coffer_status add_field(const char *path, coffer_error *err)
{
    coffer_mldf_field field = dataset_field_of("new", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ZSTD);
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_add_field(path, &field, fill, NULL, &opts, err);
}

static coffer_status replace(const char *path, coffer_error *err)
{
    static const uint64_t samples[] = { 3, 4, 5 };
    static const size_t fields[] = { SMALL_CAPTION, SMALL_CAPTION, SMALL_CAPTION };
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_replace(path, samples, fields, 3, fill, NULL, &opts, err);
}

static coffer_status delete_some(const char *path, coffer_error *err)
{
    static const uint64_t samples[] = { 3, 11 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_delete(path, samples, 2, &opts, err);
}

static void a_new_set_appears_whole_or_not_at_all(void **state)
{
    (void)state;
    try_all(&(scenario){ UINT64_MAX, 50, 0, SMALL_FIELDS, 0, create }, 3);
    try_all(&(scenario){ 12, 50, SMALL_FIELDS, SMALL_FIELDS, 0, create }, 3);
}

static void an_append_is_all_or_nothing(void **state)
{
    (void)state;
    try_all(&(scenario){ 12, 42, SMALL_FIELDS, SMALL_FIELDS, 0, append }, 20);
}

static void adding_a_field_is_all_or_nothing(void **state)
{
    (void)state;
    try_all(&(scenario){ 12, 12, SMALL_FIELDS, SMALL_FIELDS + 1, 0, add_field }, 20);
}

static void replacing_values_is_all_or_nothing(void **state)
{
    (void)state;
    try_all(&(scenario){ 12, 12, SMALL_FIELDS, SMALL_FIELDS, 0, replace }, 20);
}

static void deleting_samples_is_all_or_nothing(void **state)
{
    (void)state;
    try_all(&(scenario){ 12, 10, SMALL_FIELDS, SMALL_FIELDS, COFFER_MLDF_FIELD_ENCRYPTED, delete_some }, 20);
}

static void compacting_is_all_or_nothing(void **state)
{
    (void)state;
    try_all(&(scenario){ 12, 12, SMALL_FIELDS, SMALL_FIELDS, 0, acts_compact }, 3);
}

/* ---- Resuming ---- */

enum { WHOLE = 400 };

static void write_in_two_goes(const char *folder, void *context)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    (void)context;
    opts.resumable = true;
    dataset_usual_fields(fields, 0);
    assert_int_equal(coffer_mldf_writer_create(&writer, temp_path(folder, "s.mldf"), fields, SMALL_FIELDS,
                                               &opts, NULL),
                     COFFER_OK);
    assert_int_equal(dataset_write_samples(writer, 0, WHOLE / 2, NULL), COFFER_OK);
    coffer_mldf_writer_discard(writer);
    assert_int_equal(coffer_mldf_writer_resume(&writer, temp_path(folder, "s.mldf"), fields, SMALL_FIELDS,
                                               &opts, NULL),
                     COFFER_OK);
    assert_int_equal(dataset_write_samples(writer, WHOLE / 2, WHOLE - WHOLE / 2, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
}

/* From any state after the crash, the work can be resumed or restarted, and gives the complete set. */
static const char *finish_it(const char *folder, void *context, bool finished)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    const char *path = temp_path(folder, "s.mldf");
    coffer_status status;
    (void)context;
    opts.resumable = true;
    dataset_usual_fields(fields, 0);
    if (!temp_exists(path)) {
        if (finished)
            return "the file is gone";
        status = coffer_mldf_writer_resume(&writer, path, fields, SMALL_FIELDS, &opts, NULL);
        if (status == COFFER_E_NOT_FOUND)
            return NULL;
        if (status != COFFER_OK)
            return "cannot be resumed";
        uint64_t from = coffer_mldf_writer_sample(writer);
        if (dataset_write_samples(writer, from, WHOLE - from, NULL) != COFFER_OK ||
            coffer_mldf_writer_commit(writer, NULL) != COFFER_OK)
            return "cannot be finished";
    }
    dataset_expect(path, NULL, WHOLE);
    return NULL;
}

static void an_interrupted_writer_is_resumed_or_restarted(void **state)
{
    crash_test test = { NULL, write_in_two_goes, finish_it, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_appears_whole_or_not_at_all),
        cmocka_unit_test(an_append_is_all_or_nothing),
        cmocka_unit_test(adding_a_field_is_all_or_nothing),
        cmocka_unit_test(replacing_values_is_all_or_nothing),
        cmocka_unit_test(deleting_samples_is_all_or_nothing),
        cmocka_unit_test(compacting_is_all_or_nothing),
        cmocka_unit_test(an_interrupted_writer_is_resumed_or_restarted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
