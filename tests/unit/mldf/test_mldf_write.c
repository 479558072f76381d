/* Sets that are written are read back as they were, and are what the format page says. */
#include "formats/mldf/mldf_layout.h"
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 1000

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static void write_usual(uint64_t samples, uint16_t flags, const coffer_mldf_writer_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (dataset_create(path(), samples, flags, opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

static void every_value_is_read_back(void **state)
{
    static const uint16_t flags[] = { 0, COFFER_MLDF_FIELD_ZSTD, COFFER_MLDF_FIELD_ENCRYPTED,
                                      COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED };
    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        for (int variant = 0; variant < 4; variant++) {
            coffer_mldf_writer_opts opts = dataset_small_pages();
            opts.no_checksums = (variant & 1) != 0;
            opts.dedup = (variant & 2) != 0;
            opts.descriptor_stride = variant & 1 ? 204 : 208;
            write_usual(SAMPLES, flags[i], &opts);
            dataset_expect(path(), NULL, SAMPLES);
            dataset_expect_clean(path());
        }
    }
}

static void a_set_without_samples_is_a_set(void **state)
{
    (void)state;
    write_usual(0, 0, NULL);
    dataset_expect(path(), NULL, 0);
    dataset_expect_clean(path());
}

static void the_bytes_do_not_depend_on_the_threads(void **state)
{
    uint8_t *first = NULL;
    size_t first_len = 0;
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        coffer_mldf_writer_opts opts = dataset_small_pages();
        opts.threads = threads;
        write_usual(SAMPLES, COFFER_MLDF_FIELD_ZSTD, &opts);
        if (threads == 1)
            first = temp_read(path(), &first_len);
        else
            assert_true(temp_holds(path(), first, first_len));
    }
    free(first);
}

static void rows_and_tables_spill_without_changing_the_file(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_limits limits = COFFER_LIMITS_INIT;
    uint8_t *bytes;
    size_t len = 0;
    (void)state;
    write_usual(30000, 0, &opts);
    bytes = temp_read(path(), &len);
    limits.memory_bytes = 1;
    opts.limits = &limits;
    write_usual(30000, 0, &opts);
    assert_true(temp_holds(path(), bytes, len));
    free(bytes);
}

/* ---- The parts ---- */

static uint64_t number_at(const uint8_t *bytes, size_t at, size_t width)
{
    uint64_t number = 0;
    for (size_t i = width; i > 0; i--)
        number = number << 8 | bytes[at + i - 1];
    return number;
}

static void the_parts_are_where_the_format_requires_them(void **state)
{
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    write_usual(7, COFFER_MLDF_FIELD_ZSTD, NULL);
    bytes = temp_read(path(), &len);
    uint64_t samples = number_at(bytes, 9 + 8, 8), fields = number_at(bytes, 9 + 16, 2);
    uint64_t descriptors = number_at(bytes, 9 + 24, 8), rows = number_at(bytes, 9 + 32, 8);
    uint64_t data = number_at(bytes, 9 + 40, 8), table = number_at(bytes, 9 + 48, 8);
    assert_memory_equal(bytes, "\x89MLDF\r\n\x1a\n\1\0\0\0", 13);
    assert_int_equal(number_at(bytes, 9 + 4, 4), 1 | 2 | 4);
    assert_int_equal(samples, 7);
    assert_int_equal(fields, SMALL_FIELDS);
    assert_int_equal(number_at(bytes, 9 + 20, 4), 4096);
    assert_int_equal(descriptors, 73);
    assert_int_equal(data, 4096);
    assert_int_equal(rows % 64, 0);
    assert_true(rows > data);
    assert_int_equal(table, rows + samples * (24 + 8 + 8 + 16 + 16) + COFFER__MLDF_GUARD_SIZE);
    assert_int_equal((len - table) % 16, 0);
    assert_string_equal((const char *)bytes + 73 + 208, "label");
    free(bytes);
}

static void absent_and_empty_values_are_distinguished(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[2] = { dataset_field_of("a", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ZSTD),
                                    dataset_field_of("n", COFFER_MLDF_INT, 0) };
    coffer_mldf_writer *writer = NULL;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set;
    int64_t number = -1;
    (void)state;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, 2, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, 0, "", 0, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    set = dataset_open(src);
    assert_int_equal(coffer_mldf_entry_at(&entry, set, 0, 0, NULL), COFFER_OK);
    assert_true(entry.present);
    assert_int_equal(entry.size, 0);
    assert_int_equal(entry.offset, 4096);
    assert_int_equal(coffer_mldf_entry_at(&entry, set, 1, 0, NULL), COFFER_OK);
    assert_false(entry.present);
    assert_true(coffer_mldf_field_at(set, 0)->flags & COFFER_MLDF_FIELD_OPTIONAL);
    assert_int_equal(coffer_mldf_get_int(&number, set, 1, 1, NULL), COFFER_OK);
    assert_int_equal(number, 0);
    coffer_mldf_close(set);
    coffer_source_close(src);
    dataset_expect_clean(path());
}

/* ---- Values ---- */

static void large_values_and_small_ones_keep_their_order(void **state)
{
    enum { LARGE = 9 << 20 };
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[2] = { dataset_field_of("small", COFFER_MLDF_BYTES, 0),
                                    dataset_field_of("large", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ZSTD) };
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_source *src = NULL;
    coffer_mldf *set;
    uint8_t *large = malloc(LARGE);
    (void)state;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, 2, &opts, NULL), COFFER_OK);
    for (int i = 0; i < 3; i++) {
        memset(large, 'a' + i, LARGE);
        assert_int_equal(coffer_mldf_writer_set_bytes(writer, 0, &"xyz"[i], 1, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_set_bytes(writer, 1, large, LARGE, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    set = dataset_open(src);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(coffer_mldf_read(&value, NULL, set, i, 0, NULL), COFFER_OK);
        assert_int_equal(value.data[0], "xyz"[i]);
        assert_int_equal(coffer_mldf_read(&value, NULL, set, i, 1, NULL), COFFER_OK);
        assert_int_equal(value.size, LARGE);
        assert_int_equal(value.data[LARGE - 1], 'a' + (int)i);
    }
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(large);
    dataset_expect_clean(path());
}

static void a_value_set_again_takes_the_place_of_the_first(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    (void)state;
    dataset_usual_fields(fields, 0);
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, SMALL_FIELDS, &opts, NULL),
                     COFFER_OK);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(dataset_set_sample(writer, i + 7, NULL), COFFER_OK);
        coffer_mldf_writer_cancel_sample(writer);
        assert_int_equal(coffer_mldf_writer_set_text(writer, SMALL_CAPTION, "other", 5, NULL), COFFER_OK);
        assert_int_equal(dataset_set_sample(writer, i, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    }
    assert_int_equal(dataset_set_sample(writer, 3, NULL), COFFER_OK); /* never ended */
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    dataset_expect(path(), NULL, 20);
    dataset_expect_clean(path());
}

static void expect_refused(coffer_mldf_writer *writer, size_t field, const void *bytes, size_t size,
                           const coffer_mldf_entry *entry, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, field, bytes, size, entry, &err),
                     COFFER_E_INVALID_ARGUMENT);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void values_that_do_not_fit_their_field_are_refused_and_change_nothing(void **state)
{
    static const char schema[] =
        "{\"fields\": [{\"name\": \"i\", \"type\": \"int\"}, {\"name\": \"t\", \"type\": \"text\"},"
        "{\"name\": \"k\", \"type\": \"text-tokenised\"}, {\"name\": \"j\", \"type\": \"json\"},"
        "{\"name\": \"a\", \"type\": \"ndarray\", \"dtype\": \"f32\", \"shape\": [2, 0]},"
        "{\"name\": \"r\", \"type\": \"image-raw\"}, {\"name\": \"w\", \"type\": \"audio\"},"
        "{\"name\": \"h\", \"type\": \"text-hierarchical\"}, {\"name\": \"m\", \"type\": \"multimodal\"}]}";
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    coffer_mldf_entry entry = {
        .struct_size = sizeof(coffer_mldf_entry), .height = 2, .width = 2, .channels = 3
    };
    uint64_t dims[2] = { 2, 3 }, wrong[2] = { 3, 3 };
    float elements[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    assert_int_equal(coffer_mldf_writer_create_json(&writer, path(), schema, strlen(schema), &opts, NULL),
                     COFFER_OK);
    expect_refused(writer, 99, "", 0, NULL, "9 fields");
    expect_refused(writer, 0, "x", 1, NULL, "field i");
    expect_refused(writer, 1, "\xff", 1, NULL, "UTF-8");
    expect_refused(writer, 2, "123456", 6, NULL, "6");
    expect_refused(writer, 3, "{]", 2, NULL, "field j");
    expect_refused(writer, 4, elements, sizeof elements, NULL, "field a");
    expect_refused(writer, 5, "12345", 5, &entry, "field r");
    expect_refused(writer, 6, "12345", 5, NULL, "field w");
    expect_refused(writer, 7, "\5\0\0\0", 4, NULL, "field h");
    expect_refused(writer, 8, "\1\0\0\0\1\0", 6, NULL, "field m");
    assert_int_equal(coffer_mldf_writer_set_float(writer, 0, 1.0, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mldf_writer_set_array(writer, 4, wrong, elements, sizeof elements, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mldf_writer_set_array(writer, 4, dims, elements, sizeof elements, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, 7, "\2\0\0\0\1\0\0\0\3\0\0\0abc", 15, NULL, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, 8, "\1\0\0\0\x28\0\1\0\2\0\0\0nhi", 15, NULL, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    dataset_expect_clean(path());
}

static void a_value_over_four_gigabytes_is_refused_without_being_looked_at(void **state)
{
#if SIZE_MAX == UINT32_MAX
    skip(); /* no size_t can say it */
#endif
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[2] = { dataset_field_of("b", COFFER_MLDF_BYTES, 0),
                                    dataset_field_of("e", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ENCRYPTED) };
    coffer_mldf_writer *writer = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, 2, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, 0, "", (size_t)UINT32_MAX + 1, NULL, &err),
                     COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "4294967296"));
    assert_int_equal(coffer_mldf_writer_set_bytes(writer, 1, "", UINT32_MAX, NULL, &err), COFFER_E_LIMIT);
    coffer_mldf_writer_discard(writer);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    coffer_mldf_field field = dataset_field_of("b", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ENCRYPTED);
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    (void)state;
    temp_empty(temp_folder);
    opts.page_size = 5000;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &field, 1, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    opts.page_size = 2048;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &field, 1, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    opts = dataset_small_pages();
    opts.descriptor_stride = 200;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &field, 1, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    opts = dataset_small_pages();
    opts.key = NULL;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &field, 1, &opts, NULL), COFFER_E_KEY_NEEDED);
    assert_null(writer);
    temp_assert_only(temp_folder, NULL);
}

static void a_discarded_set_leaves_nothing_and_the_old_one_as_it_was(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    (void)state;
    temp_empty(temp_folder);
    write_usual(3, 0, NULL);
    dataset_usual_fields(fields, 0);
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, SMALL_FIELDS, &opts, NULL),
                     COFFER_OK);
    assert_int_equal(dataset_write_samples(writer, 0, 9, NULL), COFFER_OK);
    coffer_mldf_writer_discard(writer);
    temp_assert_only(temp_folder, "set.mldf", NULL);
    dataset_expect(path(), NULL, 3);
    opts.overwrite = false;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, SMALL_FIELDS, &opts, NULL),
                     COFFER_E_EXISTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_read_back),
        cmocka_unit_test(a_set_without_samples_is_a_set),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
        cmocka_unit_test(rows_and_tables_spill_without_changing_the_file),
        cmocka_unit_test(the_parts_are_where_the_format_requires_them),
        cmocka_unit_test(absent_and_empty_values_are_distinguished),
        cmocka_unit_test(large_values_and_small_ones_keep_their_order),
        cmocka_unit_test(a_value_set_again_takes_the_place_of_the_first),
        cmocka_unit_test(values_that_do_not_fit_their_field_are_refused_and_change_nothing),
        cmocka_unit_test(a_value_over_four_gigabytes_is_refused_without_being_looked_at),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(a_discarded_set_leaves_nothing_and_the_old_one_as_it_was),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
