#include "base/bytes.h"
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 300, ROOM = 200000 };

typedef struct fixture {
    dataset *made;
    uint8_t *bytes;
    size_t len;
    dataset_places places;
    dataset_reads reads;
    coffer_source *src;
    coffer_mldf *set;
    coffer_mldf_batch *batch;
    coffer_error err;
    bool damaged[SAMPLES];
} fixture;

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "batch";

static void open_fixture(fixture *of, const dataset_opts *opts, bool counted, bool verify)
{
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    *of = (fixture){ .made = dataset_small(SAMPLES, opts) };
    of->bytes = dataset_make(&of->len, &of->places, of->made);
    of->src = counted ? dataset_counting_source(&of->reads, of->bytes, of->len)
                      : dataset_source_of(of->bytes, of->len);
    open_opts.verify = verify;
    open_opts.key = opts ? opts->key : NULL;
    assert_int_equal(coffer_mldf_open(&of->set, of->src, &open_opts, NULL), COFFER_OK);
}

static void make_batch(fixture *of, uint32_t threads, coffer_mldf_policy policy)
{
    coffer_mldf_batch_opts opts = COFFER_MLDF_BATCH_OPTS_INIT;
    opts.threads = threads;
    opts.policy = policy;
    opts.damaged = of->damaged;
    assert_int_equal(coffer_mldf_batch_new(&of->batch, of->set, &opts, NULL), COFFER_OK);
}

static void close_fixture(fixture *of)
{
    coffer_mldf_batch_free(of->batch);
    coffer_mldf_close(of->set);
    coffer_source_close(of->src);
    free(of->bytes);
    dataset_free(of->made);
}

/* Any order, some of them twice. */
static void pick(uint64_t *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        samples[i] = i % 10 == 9 ? samples[i - 1] : i * 7919 % SAMPLES;
}

static void assert_small(const uint8_t *found, uint32_t size, uint64_t sample, size_t field)
{
    uint8_t expected[256];
    size_t len = dataset_small_value(expected, sample, field);
    assert_int_equal(size, len == SIZE_MAX ? 0 : len);
    assert_memory_equal(found, expected, size);
}

/* Every field of the samples, scalars contiguous, payloads one after the other or with a stride. */
static void assert_batch(fixture *of, const uint64_t *samples, size_t count, bool strided)
{
    static uint8_t data[SMALL_FIELDS][ROOM];
    static uint64_t offsets[SMALL_FIELDS][SAMPLES + 1];
    static uint32_t sizes[SMALL_FIELDS][SAMPLES];
    coffer_mldf_target targets[SMALL_FIELDS];
    memset(data, 0xee, sizeof data);
    for (size_t f = 0; f < SMALL_FIELDS; f++)
        targets[f] =
            (coffer_mldf_target){ sizeof(coffer_mldf_target), f, data[f], ROOM, 0, offsets[f], sizes[f] };
    for (size_t f = 0; strided && f < SMALL_FIELDS; f++)
        targets[f].stride = f == SMALL_LABEL || f == SMALL_SCORE ? 8 : 256;
    if (coffer_mldf_batch_read(of->batch, samples, count, targets, SMALL_FIELDS, &of->err) != COFFER_OK)
        fail_msg("%s", of->err.text);
    for (size_t f = 0; f < SMALL_FIELDS; f++) {
        assert_int_equal(offsets[f][0], 0);
        for (size_t i = 0; i < count; i++) {
            assert_small(data[f] + offsets[f][i], sizes[f][i], samples[i], f);
            if (!strided)
                assert_int_equal(offsets[f][i + 1] - offsets[f][i], sizes[f][i]);
        }
    }
}

static void batches_give_every_value_whatever_the_source_the_layout_and_the_threads(void **state)
{
    uint64_t samples[SAMPLES];
    (void)state;
    pick(samples, SAMPLES);
    for (unsigned i = 0; i < 64; i++) {
        dataset_opts opts = {
            .rows_last = i & 1, .checksummed = i & 2, .key = i & 4 ? key : NULL, .unsized = i & 8
        };
        fixture of;
        open_fixture(&of, &opts, i & 16, i & 2);
        make_batch(&of, i & 32 ? 3 : 1, COFFER_MLDF_POLICY_ERROR);
        assert_batch(&of, samples, SAMPLES, false);
        assert_batch(&of, samples, SAMPLES, true);
        assert_batch(&of, samples + 3, 1, false);
        assert_batch(&of, samples, 0, false);
        close_fixture(&of);
    }
}

static void neighbors_are_read_together(void **state)
{
    uint64_t samples[SAMPLES];
    fixture of;
    (void)state;
    open_fixture(&of, NULL, true, false);
    make_batch(&of, 1, COFFER_MLDF_POLICY_ERROR);
    for (uint64_t i = 0; i < SAMPLES; i++)
        samples[i] = SAMPLES - 1 - i;
    of.reads.calls = 0;
    assert_batch(&of, samples, SAMPLES, true);
    assert_true(of.reads.calls < 10);
    close_fixture(&of);
}

static void the_size_of_a_batch_is_what_reading_it_takes(void **state)
{
    uint64_t samples[SAMPLES], size = 0, expected = 0;
    (void)state;
    pick(samples, SAMPLES);
    for (unsigned i = 0; i < 8; i++) {
        dataset_opts opts = { .key = i & 1 ? key : NULL, .unsized = i & 2 };
        fixture of;
        open_fixture(&of, &opts, i & 4, false);
        make_batch(&of, 2, COFFER_MLDF_POLICY_ERROR);
        for (size_t f = 0; f < SMALL_FIELDS; f++) {
            uint8_t value[256];
            expected = 0;
            for (size_t k = 0; k < SAMPLES; k++) {
                size_t len = dataset_small_value(value, samples[k], f);
                expected += len == SIZE_MAX ? 0 : len;
            }
            assert_int_equal(coffer_mldf_batch_size(&size, of.batch, samples, SAMPLES, f, NULL), COFFER_OK);
            assert_int_equal(size, expected);
        }
        assert_int_equal(coffer_mldf_batch_size(&size, of.batch, samples, 1, 99, NULL),
                         COFFER_E_OUT_OF_BOUNDS);
        close_fixture(&of);
    }
}

static void what_does_not_fit_is_an_error_and_never_damage(void **state)
{
    static uint8_t data[100];
    uint64_t samples[] = { 1, 2, 3 }, offsets[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        dataset_opts opts = { .unsized = i & 1 };
        fixture of;
        open_fixture(&of, &opts, i & 2, false);
        make_batch(&of, 1, COFFER_MLDF_POLICY_SKIP);
        coffer_mldf_target target = { sizeof(coffer_mldf_target), SMALL_IMAGE, data, 53, 0, offsets, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err), COFFER_E_LIMIT);
        target = (coffer_mldf_target){ sizeof(coffer_mldf_target), SMALL_IMAGE, data, 51, 17, NULL, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err), COFFER_E_LIMIT);
        target = (coffer_mldf_target){ sizeof(coffer_mldf_target), SMALL_CAPTION, data, 30, 10, NULL, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err), COFFER_E_LIMIT);
        target = (coffer_mldf_target){ sizeof(coffer_mldf_target), SMALL_LABEL, data, 23, 0, NULL, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err), COFFER_E_LIMIT);
        target = (coffer_mldf_target){ sizeof(coffer_mldf_target), SMALL_LABEL, data, 100, 7, NULL, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err), COFFER_E_LIMIT);
        target = (coffer_mldf_target){ sizeof(coffer_mldf_target), SMALL_IMAGE, data, 100, 0, NULL, NULL };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, NULL),
                         COFFER_E_INVALID_ARGUMENT);
        close_fixture(&of);
    }
}

static void samples_and_fields_that_are_not_there_are_errors(void **state)
{
    uint8_t data[64];
    uint64_t samples[] = { 1, SAMPLES };
    fixture of;
    (void)state;
    open_fixture(&of, NULL, false, false);
    make_batch(&of, 1, COFFER_MLDF_POLICY_SKIP);
    coffer_mldf_target target = { sizeof(coffer_mldf_target), SMALL_LABEL, data, sizeof data, 0, NULL, NULL };
    assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 2, &target, 1, &of.err),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_string_equal(of.err.text, "sample 300 requested, the set has 300");
    target.field = 5;
    assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 1, &target, 1, NULL), COFFER_E_OUT_OF_BOUNDS);
    close_fixture(&of);
}

/* ---- Damage ---- */

/* Changes a byte of the image of sample 11, the frame of caption 12, and the pointer of blob 13. */
static void damage(fixture *of)
{
    uint8_t *image = of->bytes + dataset_entry_at(of->made, &of->places, 11, SMALL_IMAGE);
    uint8_t *caption = of->bytes + dataset_entry_at(of->made, &of->places, 12, SMALL_CAPTION);
    uint8_t *blob = of->bytes + dataset_entry_at(of->made, &of->places, 13, SMALL_BLOB);
    of->bytes[coffer__load_u64(image) + 5] ^= 1;
    of->bytes[coffer__load_u64(caption)] ^= 1;
    coffer__store_u64(blob, UINT64_MAX / 2);
}

typedef struct told {
    size_t count;
    uint64_t samples[8];
    size_t fields[8];
} told;

static void note(void *context, uint64_t sample, size_t field, const coffer_error *why)
{
    told *of = context;
    assert_true(why->text[0] != 0 && why->status != COFFER_OK);
    of->samples[of->count] = sample;
    of->fields[of->count++] = field;
}

static void damaged_values_are_skipped_and_reported(void **state)
{
    static uint8_t data[SMALL_FIELDS][ROOM];
    static uint64_t offsets[SMALL_FIELDS][SAMPLES + 1];
    static uint32_t sizes[SMALL_FIELDS][SAMPLES];
    uint64_t samples[20];
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        samples[i] = 19 - i;
    for (unsigned round = 0; round < 4; round++) {
        dataset_opts made_opts = { .checksummed = true };
        coffer_mldf_batch_opts opts = COFFER_MLDF_BATCH_OPTS_INIT;
        told heard = { 0 };
        fixture of;
        open_fixture(&of, &made_opts, round & 1, true);
        damage(&of);
        opts.policy = COFFER_MLDF_POLICY_SKIP;
        opts.damaged = of.damaged;
        opts.on_damage = note;
        opts.context = &heard;
        opts.threads = round & 2 ? 4 : 1;
        assert_int_equal(coffer_mldf_batch_new(&of.batch, of.set, &opts, NULL), COFFER_OK);
        coffer_mldf_target targets[SMALL_FIELDS];
        for (size_t f = 0; f < SMALL_FIELDS; f++)
            targets[f] =
                (coffer_mldf_target){ sizeof(coffer_mldf_target), f, data[f], ROOM, 0, offsets[f], sizes[f] };
        assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 20, targets, SMALL_FIELDS, &of.err),
                         COFFER_OK);
        for (size_t i = 0; i < 20; i++) {
            assert_int_equal(of.damaged[i], samples[i] >= 11 && samples[i] <= 13);
            for (size_t f = 0; f < SMALL_FIELDS; f++) {
                bool lost = (samples[i] == 11 && f == SMALL_IMAGE) ||
                            (samples[i] == 12 && f == SMALL_CAPTION) || (samples[i] == 13 && f == SMALL_BLOB);
                if (lost)
                    assert_int_equal(sizes[f][i], 0);
                else
                    assert_small(data[f] + offsets[f][i], sizes[f][i], samples[i], f);
            }
        }
        assert_int_equal(heard.count, 3);
        assert_int_equal(heard.samples[0], 13);
        assert_int_equal(heard.fields[0], SMALL_BLOB);
        assert_int_equal(heard.samples[2], 11);
        close_fixture(&of);
    }
}

static void the_first_damaged_value_ends_a_call_that_skips_nothing(void **state)
{
    static uint8_t data[ROOM];
    uint64_t samples[] = { 10, 11, 12 };
    dataset_opts opts = { .checksummed = true };
    fixture of;
    (void)state;
    open_fixture(&of, &opts, false, true);
    damage(&of);
    make_batch(&of, 2, COFFER_MLDF_POLICY_ERROR);
    coffer_mldf_target target = { sizeof(coffer_mldf_target), SMALL_IMAGE, data, ROOM, 256, NULL, NULL };
    assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 3, &target, 1, &of.err),
                     COFFER_E_BAD_CHECKSUM);
    assert_memory_equal(of.err.text, "sample 11, field image: ", 24);
    close_fixture(&of);
}

static void an_encrypted_field_without_a_key_is_an_error_even_when_skipping(void **state)
{
    static uint8_t data[ROOM];
    uint64_t samples[] = { 1 };
    dataset_opts opts = { .key = key };
    fixture of = { .made = dataset_small(SAMPLES, &opts) };
    (void)state;
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    of.src = dataset_source_of(of.bytes, of.len);
    of.set = dataset_open(of.src);
    make_batch(&of, 1, COFFER_MLDF_POLICY_SKIP);
    coffer_mldf_target target = { sizeof(coffer_mldf_target), SMALL_IMAGE, data, ROOM, 256, NULL, NULL };
    assert_int_equal(coffer_mldf_batch_read(of.batch, samples, 1, &target, 1, NULL), COFFER_E_KEY_NEEDED);
    close_fixture(&of);
}

/* ---- Columns ---- */

static void a_column_is_the_scalars_of_its_field(void **state)
{
    static double scores[SAMPLES];
    static int64_t labels[SAMPLES];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        dataset_opts opts = { .rows_last = i & 1 };
        fixture of;
        open_fixture(&of, &opts, i & 2, false);
        assert_int_equal(
            coffer_mldf_read_column(labels, of.set, SMALL_LABEL, 0, SAMPLES,
                                    &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), 2 }, NULL),
            COFFER_OK);
        assert_int_equal(
            coffer_mldf_read_column(scores, of.set, SMALL_SCORE, 100, 150,
                                    &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), 1 }, NULL),
            COFFER_OK);
        for (int64_t k = 0; k < SAMPLES; k++)
            assert_int_equal(labels[k], 7 * k - 3);
        for (size_t k = 0; k < 150; k++)
            assert_true(scores[k] == (double)(100 + k) / 4);
        assert_int_equal(
            coffer_mldf_read_column(scores, of.set, SMALL_SCORE, 200, 101,
                                    &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), 1 }, NULL),
            COFFER_E_OUT_OF_BOUNDS);
        assert_int_equal(
            coffer_mldf_read_column(scores, of.set, SMALL_IMAGE, 0, 1,
                                    &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), 1 }, NULL),
            COFFER_E_INVALID_ARGUMENT);
        assert_int_equal(
            coffer_mldf_read_column(scores, of.set, SMALL_SCORE, SAMPLES, 0,
                                    &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), 1 }, NULL),
            COFFER_OK);
        close_fixture(&of);
    }
}

static void long_columns_come_whole_from_any_number_of_threads(void **state)
{
    enum { MANY = 200003 };
    dataset *made = dataset_new(MANY, NULL);
    int64_t *values = malloc(MANY * sizeof *values);
    size_t len;
    (void)state;
    dataset_field(made, "a", COFFER_MLDF_INT, 0);
    dataset_foreign_field(made, "x", 777, 13);
    dataset_field(made, "b", COFFER_MLDF_INT, 0);
    for (int64_t i = 0; i < MANY; i++) {
        dataset_int(made, (uint64_t)i, 0, i);
        dataset_int(made, (uint64_t)i, 2, -i * i);
    }
    uint8_t *file = dataset_make(&len, NULL, made);
    for (uint32_t threads = 1; threads < 5; threads++) {
        dataset_reads reads;
        coffer_source *src =
            threads & 1 ? dataset_source_of(file, len) : dataset_counting_source(&reads, file, len);
        coffer_mldf *set = dataset_open(src);
        assert_int_equal(coffer_mldf_read_column(
                             values, set, 2, 0, MANY,
                             &(coffer_mldf_column_opts){ sizeof(coffer_mldf_column_opts), threads }, NULL),
                         COFFER_OK);
        for (int64_t i = 0; i < MANY; i++)
            assert_true(values[i] == -i * i);
        coffer_mldf_close(set);
        coffer_source_close(src);
    }
    free(values);
    free(file);
    dataset_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_give_every_value_whatever_the_source_the_layout_and_the_threads),
        cmocka_unit_test(neighbors_are_read_together),
        cmocka_unit_test(the_size_of_a_batch_is_what_reading_it_takes),
        cmocka_unit_test(what_does_not_fit_is_an_error_and_never_damage),
        cmocka_unit_test(samples_and_fields_that_are_not_there_are_errors),
        cmocka_unit_test(damaged_values_are_skipped_and_reported),
        cmocka_unit_test(the_first_damaged_value_ends_a_call_that_skips_nothing),
        cmocka_unit_test(an_encrypted_field_without_a_key_is_an_error_even_when_skipping),
        cmocka_unit_test(a_column_is_the_scalars_of_its_field),
        cmocka_unit_test(long_columns_come_whole_from_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
