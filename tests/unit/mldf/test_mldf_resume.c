/* Writers that were cut off and continue. */
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 60000

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static const char *partial(void)
{
    return temp_path(temp_folder, "set.mldf.partial");
}

static const char *partial_rows(void)
{
    return temp_path(temp_folder, "set.mldf.partial-rows");
}

static coffer_mldf_writer_opts resumable(void)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    opts.resumable = true;
    opts.resume_tag = "the input";
    return opts;
}

static coffer_mldf_writer *create(uint16_t flags, const coffer_mldf_writer_opts *opts)
{
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    dataset_usual_fields(fields, flags);
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, SMALL_FIELDS, opts, NULL), COFFER_OK);
    return writer;
}

static coffer_status resume(coffer_mldf_writer **out, uint16_t flags, const coffer_mldf_writer_opts *opts)
{
    coffer_mldf_field fields[SMALL_FIELDS];
    dataset_usual_fields(fields, flags);
    return coffer_mldf_writer_resume(out, path(), fields, SMALL_FIELDS, opts, NULL);
}

/* The set as it is written without a break; the caller frees it. */
static uint8_t *whole(size_t *len, uint16_t flags, bool dedup)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    opts.dedup = dedup;
    assert_int_equal(dataset_create(path(), SAMPLES, flags, &opts, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path(), len);
    temp_empty(temp_folder);
    return bytes;
}

/* As the crash of a process leaves the files: copies of them, taken while it was writing. */
static void write_and_crash(uint16_t flags, const coffer_mldf_writer_opts *opts, uint64_t samples)
{
    coffer_mldf_writer *writer = create(flags, opts);
    size_t data_len = 0, rows_len = 0;
    for (uint64_t i = 0; i < samples; i++) {
        coffer_mldf_writer_set_mark(writer, i + 1000);
        assert_int_equal(dataset_write_samples(writer, i, 1, NULL), COFFER_OK);
    }
    uint8_t *data = temp_read(partial(), &data_len), *rows = temp_read(partial_rows(), &rows_len);
    coffer_mldf_writer_discard(writer);
    temp_write(partial(), data, data_len);
    temp_write(partial_rows(), rows, rows_len);
    free(data);
    free(rows);
}

static void finish(coffer_mldf_writer *writer)
{
    uint64_t from = coffer_mldf_writer_sample(writer);
    assert_int_equal(dataset_write_samples(writer, from, SAMPLES - from, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
}

static void a_resumed_set_is_the_one_that_was_never_cut_off(void **state)
{
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD };
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        coffer_mldf_writer_opts opts = resumable();
        coffer_mldf_writer *writer = NULL;
        size_t len = 0;
        opts.dedup = (variant & 2) != 0;
        uint8_t *bytes = whole(&len, kinds[variant & 1], opts.dedup);
        write_and_crash(kinds[variant & 1], &opts, 50000);
        assert_int_equal(resume(&writer, kinds[variant & 1], &opts), COFFER_OK);
        assert_true(coffer_mldf_writer_sample(writer) > 1000);
        assert_true(coffer_mldf_writer_sample(writer) <= 50000);
        assert_int_equal(coffer_mldf_writer_mark(writer), coffer_mldf_writer_sample(writer) + 999);
        finish(writer);
        assert_true(temp_holds(path(), bytes, len));
        temp_assert_only(temp_folder, "set.mldf", NULL);
        free(bytes);
    }
}

static void a_discarded_writer_keeps_every_finished_sample(void **state)
{
    coffer_mldf_writer_opts opts = resumable();
    coffer_mldf_writer *writer;
    (void)state;
    temp_empty(temp_folder);
    writer = create(COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    assert_int_equal(dataset_write_samples(writer, 0, 123, NULL), COFFER_OK);
    assert_int_equal(dataset_set_sample(writer, 9, NULL), COFFER_OK); /* not finished */
    coffer_mldf_writer_discard(writer);
    assert_false(temp_exists(path()));
    assert_int_equal(resume(&writer, COFFER_MLDF_FIELD_ENCRYPTED, &opts), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_sample(writer), 123);
    finish(writer);
    dataset_expect(path(), NULL, SAMPLES);
    dataset_expect_clean(path());
}

/* Whatever of the two files reached the disk. */
static void damaged_leftovers_are_used_up_to_the_damage(void **state)
{
    coffer_mldf_writer_opts opts = resumable();
    size_t len = 0, data_len = 0, rows_len = 0;
    uint8_t *bytes = whole(&len, 0, false), *data, *rows;
    (void)state;
    write_and_crash(0, &opts, 50000);
    data = temp_read(partial(), &data_len);
    rows = temp_read(partial_rows(), &rows_len);
    for (int variant = 0; variant < 6; variant++) {
        coffer_mldf_writer *writer = NULL;
        temp_empty(temp_folder);
        temp_write(partial(), data, variant == 0 ? data_len - data_len / 5 : data_len);
        temp_write(partial_rows(), rows, variant == 1 ? rows_len - rows_len / 5 : rows_len);
        if (variant == 2 || variant == 3) {
            uint8_t *copy = temp_read(variant == 2 ? partial() : partial_rows(), NULL);
            size_t size = variant == 2 ? data_len : rows_len;
            copy[size - size / 5] ^= 1;
            temp_write(variant == 2 ? partial() : partial_rows(), copy, size);
            free(copy);
        }
        if (variant == 4)
            temp_write(partial(), data, 100);
        if (variant == 5)
            temp_write(partial_rows(), rows, 10);
        coffer_status status = resume(&writer, 0, &opts);
        if (variant >= 4) {
            assert_int_equal(status, COFFER_E_NOT_FOUND);
            writer = create(0, &opts);
        } else {
            assert_int_equal(status, COFFER_OK);
            assert_true(coffer_mldf_writer_sample(writer) > 1000);
        }
        finish(writer);
        assert_true(temp_holds(path(), bytes, len));
        temp_assert_only(temp_folder, "set.mldf", NULL);
    }
    free(bytes);
    free(data);
    free(rows);
}

static void other_fields_options_keys_and_inputs_are_not_resumed(void **state)
{
    coffer_mldf_writer_opts opts = resumable();
    coffer_mldf_writer *writer = NULL;
    uint8_t other_key[COFFER_MLDF_KEY_SIZE] = { 3 };
    (void)state;
    temp_empty(temp_folder);
    assert_int_equal(resume(&writer, 0, &opts), COFFER_E_NOT_FOUND);
    temp_assert_only(temp_folder, NULL);
    write_and_crash(0, &opts, 50000);
    assert_int_equal(resume(&writer, COFFER_MLDF_FIELD_ZSTD, &opts), COFFER_E_INCONSISTENT);
    opts.resume_tag = "another input";
    assert_int_equal(resume(&writer, 0, &opts), COFFER_E_INCONSISTENT);
    opts = resumable();
    opts.page_size = 8192;
    assert_int_equal(resume(&writer, 0, &opts), COFFER_E_INCONSISTENT);
    opts = resumable();
    opts.key = other_key;
    assert_int_equal(resume(&writer, 0, &opts), COFFER_E_INCONSISTENT);
    opts = resumable();
    assert_int_equal(resume(&writer, 0, &opts), COFFER_OK);
    coffer_mldf_writer *second = NULL;
    assert_int_equal(resume(&second, 0, &opts), COFFER_E_LOCKED);
    coffer_mldf_writer_discard(writer);
    assert_int_equal(coffer_mldf_writer_drop_partial(path(), NULL), COFFER_OK);
    temp_assert_only(temp_folder, NULL);
    assert_int_equal(coffer_mldf_writer_drop_partial(path(), NULL), COFFER_OK);
}

/* ---- Files that changed ---- */

typedef struct comparison {
    uint64_t seen, changed; /* samples that were asked for; the one that has changed */
} comparison;

static coffer_status compare_origin(bool *same, void *context, uint64_t mark,
                                    const coffer_mldf_origin *origin, coffer_error *err)
{
    comparison *asked = context;
    (void)err;
    assert_int_equal(mark, asked->seen + 1000);
    assert_int_equal(origin->size, asked->seen);
    assert_int_equal(origin->time, -(int64_t)asked->seen);
    assert_int_equal(origin->hash[0], 7 * asked->seen);
    assert_int_equal(origin->hash[1], ~asked->seen);
    *same = asked->seen++ != asked->changed;
    return COFFER_OK;
}

static void samples_are_kept_up_to_the_first_whose_file_has_changed(void **state)
{
    static const uint64_t changes[] = { 1, 30000 };
    (void)state;
    for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
        coffer_mldf_writer_opts opts = resumable();
        comparison asked = { 0, changes[k] };
        temp_empty(temp_folder);
        coffer_mldf_writer *writer = create(0, &opts);
        for (uint64_t i = 0; i < 40000; i++) {
            coffer_mldf_origin origin = COFFER_MLDF_ORIGIN_INIT;
            origin.size = i;
            origin.time = -(int64_t)i;
            origin.hash[0] = 7 * i;
            origin.hash[1] = ~i;
            coffer_mldf_writer_set_mark(writer, i + 1000);
            assert_int_equal(coffer_mldf_writer_set_origin(writer, &origin, NULL), COFFER_OK);
            assert_int_equal(dataset_write_samples(writer, i, 1, NULL), COFFER_OK);
        }
        coffer_mldf_writer_discard(writer);
        opts.resume_check = compare_origin;
        opts.resume_context = &asked;
        coffer_status status = resume(&writer, 0, &opts);
        if (changes[k] < 2) { /* not even the first record */
            assert_int_equal(status, COFFER_E_NOT_FOUND);
            continue;
        }
        assert_int_equal(status, COFFER_OK);
        uint64_t kept = coffer_mldf_writer_sample(writer);
        assert_true(kept > 1000 && kept <= changes[k]);
        assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
        dataset_expect_clean(path());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_set_is_the_one_that_was_never_cut_off),
        cmocka_unit_test(a_discarded_writer_keeps_every_finished_sample),
        cmocka_unit_test(damaged_leftovers_are_used_up_to_the_damage),
        cmocka_unit_test(other_fields_options_keys_and_inputs_are_not_resumed),
        cmocka_unit_test(samples_are_kept_up_to_the_first_whose_file_has_changed),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
