/* Every allocation and every file operation of writing, changing, compacting and repairing fails once. */
#include "support/dataset_write.h"
#include "support/fault.h"

#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    bool exists; /* the path has a set of ten samples before the write */
    uint16_t flags;
    bool damaged;
    uint64_t new_samples;
    coffer_status (*act)(const char *path, coffer_error *err);
} scenario;

#define OLD 10
#define NONE UINT64_MAX
#define DAMAGED (UINT64_MAX - 1)

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    const char *path = temp_path(folder, "s.mldf");
    if (of->exists)
        assert_int_equal(dataset_create(path, OLD, of->flags, NULL, NULL), COFFER_OK);
    if (of->damaged) {
        size_t len = 0;
        uint8_t *bytes = temp_read(path, &len);
        bytes[4096] ^= 1; /* the first payload */
        temp_write(path, bytes, len);
        free(bytes);
    }
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    return ((const scenario *)context)->act(temp_path(folder, "s.mldf"), err);
}

static uint64_t samples_in(const char *path)
{
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    uint64_t samples = DAMAGED;
    if (!temp_exists(path))
        return NONE;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    coffer_report *report = dataset_check(src, true);
    if (coffer_report_total(report, COFFER_ERROR) == 0 &&
        coffer_mldf_open(&set, src, NULL, NULL) == COFFER_OK)
        samples = coffer_mldf_sample_count(set);
    coffer_report_free(report);
    coffer_mldf_close(set);
    coffer_source_close(src);
    return samples;
}

/* A temporary file may stay when it cannot be removed: on a dead disk, or when the removal fails. */
static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    uint64_t old = !of->exists ? NONE : of->damaged ? DAMAGED : OLD;
    uint64_t now = samples_in(temp_path(folder, "s.mldf"));
    if (now != old && now != of->new_samples)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && now != of->new_samples)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "s.mldf", NULL);
    return NULL;
}

static coffer_status create(const char *path, coffer_error *err)
{
    return dataset_create(path, 20, COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED, NULL, err);
}

static coffer_status create_spilling(const char *path, coffer_error *err)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.memory_bytes = 1;
    opts.limits = &limits;
    opts.dedup = true;
    return dataset_create(path, 20000, 0, &opts, err);
}

static coffer_status append(const char *path, coffer_error *err)
{
    return dataset_append(path, OLD, 5, err);
}

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    (void)context;
    (void)sample;
    return coffer_mldf_writer_set_text(writer, field, "a new value", 11, err);
}

static coffer_status add_field(const char *path, coffer_error *err)
{
    coffer_mldf_field field = dataset_field_of("new", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ZSTD);
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_add_field(path, &field, fill, NULL, &opts, err);
}

static coffer_status replace(const char *path, coffer_error *err)
{
    static const uint64_t sample = 3;
    static const size_t field = SMALL_CAPTION;
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_replace(path, &sample, &field, 1, fill, NULL, &opts, err);
}

static coffer_status delete_some(const char *path, coffer_error *err)
{
    static const uint64_t samples[] = { 3, 7 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    return coffer_mldf_update_delete(path, samples, 2, &opts, err);
}

static coffer_status repair(const char *path, coffer_error *err)
{
    return acts_repair(path, dataset_key, err);
}

static void try_all(const scenario *of)
{
    scenario copy = *of;
    fault_test test = { setup, run, verify, &copy };
    fault_each(&test);
}

static void a_new_set_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ false, 0, false, 20, create });
    try_all(&(scenario){ true, 0, false, 20, create });
}

static void a_set_that_spills_survives_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ false, 0, false, 20000, create_spilling });
}

static void changes_survive_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, COFFER_MLDF_FIELD_ZSTD, false, 15, append });
    try_all(&(scenario){ true, 0, false, OLD, add_field });
    try_all(&(scenario){ true, 0, false, OLD, replace });
    try_all(&(scenario){ true, COFFER_MLDF_FIELD_ENCRYPTED, false, 8, delete_some });
}

static void compacting_and_repairing_survive_every_failure(void **state)
{
    (void)state;
    try_all(&(scenario){ true, COFFER_MLDF_FIELD_ZSTD, false, OLD, acts_compact });
    try_all(&(scenario){ true, COFFER_MLDF_FIELD_ENCRYPTED, true, OLD - 1, repair });
}

/* ---- Resuming ---- */

static void leave_half(const char *folder, void *context)
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
    assert_int_equal(dataset_write_samples(writer, 0, 50, NULL), COFFER_OK);
    coffer_mldf_writer_discard(writer);
}

static coffer_status resume(const char *folder, void *context, coffer_error *err)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    (void)context;
    opts.resumable = true;
    dataset_usual_fields(fields, 0);
    status =
        coffer_mldf_writer_resume(&writer, temp_path(folder, "s.mldf"), fields, SMALL_FIELDS, &opts, err);
    if (status)
        return status;
    uint64_t from = coffer_mldf_writer_sample(writer);
    if ((status = dataset_write_samples(writer, from, 100 - from, err))) {
        coffer_mldf_writer_discard(writer);
        return status;
    }
    return coffer_mldf_writer_commit(writer, err);
}

/* Either the set is there, or it can still be resumed. */
static const char *still_possible(const char *folder, void *context, const fault_case *which)
{
    const char *path = temp_path(folder, "s.mldf");
    coffer_error err = COFFER_ERROR_INIT;
    if (!temp_exists(path)) {
        if (which->status == COFFER_OK)
            return "reported as done, and is not";
        if (resume(folder, context, &err) != COFFER_OK)
            return "cannot be resumed any more";
    }
    dataset_expect(temp_path(folder, "s.mldf"), NULL, 100);
    return NULL;
}

static void what_fails_while_it_is_resumed_can_be_resumed_again(void **state)
{
    fault_test test = { leave_half, resume, still_possible, NULL };
    (void)state;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_survives_every_failure),
        cmocka_unit_test(a_set_that_spills_survives_every_failure),
        cmocka_unit_test(changes_survive_every_failure),
        cmocka_unit_test(compacting_and_repairing_survive_every_failure),
        cmocka_unit_test(what_fails_while_it_is_resumed_can_be_resumed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
