/* Payloads that are equal are stored once, when that is wanted. */
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 400
#define SIZE 3000

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

/* One of ten contents. */
static void value_of(uint8_t out[SIZE], uint64_t sample)
{
    for (size_t i = 0; i < SIZE; i++)
        out[i] = (uint8_t)(i * 31 + sample % 10 * 7 + (i >> 5));
}

static coffer_mldf_writer_opts sharing(bool dedup)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    opts.dedup = dedup;
    opts.threads = 2;
    return opts;
}

static void write_values(coffer_mldf_writer *writer, uint64_t count)
{
    uint8_t value[SIZE];
    for (uint64_t i = 0; i < count; i++) {
        value_of(value, i);
        assert_int_equal(coffer_mldf_writer_set_bytes(writer, 0, value, SIZE, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
}

static size_t file_size(void)
{
    size_t len = 0;
    free(temp_read(path(), &len));
    return len;
}

static size_t create(uint16_t flags, const coffer_mldf_writer_opts *opts)
{
    coffer_mldf_field field = dataset_field_of("b", COFFER_MLDF_BYTES, flags);
    coffer_mldf_writer *writer = NULL;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &field, 1, opts, NULL), COFFER_OK);
    write_values(writer, SAMPLES);
    dataset_expect_clean(path());
    return file_size();
}

static void expect_values(uint64_t count)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    opts.verify = true;
    opts.key = dataset_key;
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_sample_count(set), count);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t expected[SIZE];
        value_of(expected, i % SAMPLES);
        assert_int_equal(coffer_mldf_read(&value, NULL, set, i, 0, NULL), COFFER_OK);
        assert_int_equal(value.size, SIZE);
        assert_memory_equal(value.data, expected, SIZE);
    }
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

/* Guards and recovery blocks, and the second copy of the rows in them. */
#define EXTRA 4096

static void equal_payloads_are_stored_once(void **state)
{
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        coffer_mldf_writer_opts opts = sharing(true);
        assert_true(create(kinds[i], &opts) < 4096 + 10 * SIZE + SAMPLES * 16 + EXTRA + 10 * 16 + 1);
        expect_values(SAMPLES);
    }
}

static void they_are_stored_as_often_as_they_come_when_that_is_not_wanted(void **state)
{
    coffer_mldf_writer_opts opts = sharing(false);
    (void)state;
    assert_true(create(0, &opts) > SAMPLES * SIZE);
    expect_values(SAMPLES);
}

static void encrypted_payloads_are_never_shared(void **state)
{
    coffer_mldf_writer_opts opts = sharing(true);
    (void)state;
    assert_true(create(COFFER_MLDF_FIELD_ENCRYPTED, &opts) > SAMPLES * SIZE);
    expect_values(SAMPLES);
}

static void a_full_memory_only_means_more_bytes(void **state)
{
    coffer_mldf_writer_opts opts = sharing(true);
    coffer_limits limits = COFFER_LIMITS_INIT;
    (void)state;
    limits.memory_bytes = 1;
    opts.limits = &limits;
    create(0, &opts);
    expect_values(SAMPLES);
}

static void appended_payloads_are_shared_with_the_old_ones(void **state)
{
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        coffer_mldf_writer_opts opts = sharing(true);
        coffer_mldf_writer *writer = NULL;
        size_t before = create(kinds[i], &opts);
        assert_int_equal(coffer_mldf_writer_append_to(&writer, path(), &opts, NULL), COFFER_OK);
        write_values(writer, SAMPLES);
        assert_true(file_size() < before + 2 * SAMPLES * 16 + EXTRA + 10 * 16 + 1);
        expect_values(2 * SAMPLES);
        dataset_expect_clean(path());
    }
}

/* Entries of the old table that look the same must not be taken for the same. */
static void equal_sums_of_different_payloads_do_not_share(void **state)
{
    coffer_mldf_writer_opts opts = sharing(true);
    coffer_mldf_writer *writer = NULL;
    size_t len = 0;
    (void)state;
    create(0, &opts);
    uint8_t *bytes = temp_read(path(), &len);
    /* The first payload is another one, while its sum is still the old one; nobody has noticed. */
    bytes[4096] ^= 1;
    temp_write(path(), bytes, len);
    assert_int_equal(coffer_mldf_writer_append_to(&writer, path(), &opts, NULL), COFFER_OK);
    write_values(writer, SAMPLES);
    coffer_source *src = NULL;
    coffer_bytes value = COFFER_BYTES_INIT;
    uint8_t expected[SIZE];
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    value_of(expected, 0);
    assert_int_equal(coffer_mldf_read(&value, NULL, set, SAMPLES, 0, NULL), COFFER_OK);
    assert_memory_equal(value.data, expected, SIZE);
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_payloads_are_stored_once),
        cmocka_unit_test(they_are_stored_as_often_as_they_come_when_that_is_not_wanted),
        cmocka_unit_test(encrypted_payloads_are_never_shared),
        cmocka_unit_test(a_full_memory_only_means_more_bytes),
        cmocka_unit_test(appended_payloads_are_shared_with_the_old_ones),
        cmocka_unit_test(equal_sums_of_different_payloads_do_not_share),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
