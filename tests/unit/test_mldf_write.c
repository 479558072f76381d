/* Sets that are written are read back as they were, and are what the format page says byte by byte. */
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 1000

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static coffer_mldf_field field_of(const char *name, uint16_t type, uint16_t flags)
{
    coffer_mldf_field field = COFFER_MLDF_FIELD_INIT;
    field.name = name;
    field.type = type;
    field.flags = flags;
    return field;
}

/* ---- A set with the usual fields ---- */

enum { IMAGE, LABEL, SCORE, CAPTION, BLOB, FIELDS };

static void usual_fields(coffer_mldf_field fields[FIELDS], uint16_t flags)
{
    fields[IMAGE] = field_of("image", COFFER_MLDF_IMAGE_RAW, 0);
    fields[LABEL] = field_of("label", COFFER_MLDF_INT, 0);
    fields[SCORE] = field_of("score", COFFER_MLDF_FLOAT, 0);
    fields[CAPTION] = field_of("caption", COFFER_MLDF_TEXT, flags);
    fields[BLOB] = field_of("blob", COFFER_MLDF_BYTES, flags);
}

static void write_sample(coffer_mldf_writer *writer, uint64_t sample)
{
    static const int order[] = { CAPTION, SCORE, IMAGE, BLOB, LABEL };
    coffer_mldf_entry image = { .height = 2, .width = 3, .channels = 3 };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        uint8_t value[256];
        size_t len = dataset_small_value(value, sample, (size_t)order[i]), field = (size_t)order[i];
        int64_t number;
        double real;
        if (len == SIZE_MAX)
            continue;
        if (field == LABEL) {
            memcpy(&number, value, sizeof number);
            assert_int_equal(coffer_mldf_set_int(writer, field, number, NULL), COFFER_OK);
        } else if (field == SCORE) {
            memcpy(&real, value, sizeof real);
            assert_int_equal(coffer_mldf_set_float(writer, field, real, NULL), COFFER_OK);
        } else {
            assert_int_equal(coffer_mldf_set_bytes(writer, field, value, len, field == IMAGE ? &image : NULL,
                                                   NULL),
                             COFFER_OK);
        }
    }
    assert_int_equal(coffer_mldf_end_sample(writer, NULL), COFFER_OK);
}

static void write_usual(const char *to, uint64_t samples, uint16_t flags, const coffer_mldf_write_opts *opts)
{
    coffer_mldf_field fields[FIELDS];
    coffer_mldf_writer *writer = NULL;
    usual_fields(fields, flags);
    assert_int_equal(coffer_mldf_create(&writer, to, fields, FIELDS, opts, NULL), COFFER_OK);
    for (uint64_t i = 0; i < samples; i++) {
        assert_int_equal(coffer_mldf_writer_sample(writer), i);
        write_sample(writer, i);
    }
    assert_int_equal(coffer_mldf_commit(writer, NULL), COFFER_OK);
}

static void expect_usual(const char *from, uint64_t samples)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_bytes bytes = COFFER_MLDF_BYTES_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.verify = true;
    opts.key = key;
    assert_int_equal(coffer_source_open(&src, from, NULL, NULL), COFFER_OK);
    if (coffer_mldf_open(&set, src, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(coffer_mldf_sample_count(set), samples);
    for (uint64_t i = 0; i < samples; i++) {
        for (size_t f = 0; f < FIELDS; f++) {
            uint8_t expected[256];
            size_t len = dataset_small_value(expected, i, f);
            coffer_mldf_entry entry;
            if (coffer_mldf_read(&bytes, &entry, set, i, f, &err) != COFFER_OK)
                fail_msg("%s", err.text);
            assert_int_equal(entry.present, len != SIZE_MAX);
            if (len == SIZE_MAX)
                continue;
            assert_int_equal(bytes.size, len);
            assert_memory_equal(bytes.data, expected, len);
        }
    }
    coffer_mldf_bytes_free(&bytes);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static coffer_mldf_write_opts small_pages(void)
{
    coffer_mldf_write_opts opts = COFFER_MLDF_WRITE_OPTS_INIT;
    opts.page_size = 4096;
    opts.key = key;
    return opts;
}

static void every_value_is_read_back(void **state)
{
    static const uint16_t flags[] = { 0, COFFER_MLDF_FIELD_ZSTD, COFFER_MLDF_FIELD_ENCRYPTED,
                                      COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED };
    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        for (int variant = 0; variant < 4; variant++) {
            coffer_mldf_write_opts opts = small_pages();
            opts.no_checksums = (variant & 1) != 0;
            opts.dedup = (variant & 2) != 0;
            opts.descriptor_stride = variant & 1 ? 204 : 208;
            write_usual(path(), SAMPLES, flags[i], &opts);
            expect_usual(path(), SAMPLES);
        }
    }
}

static void a_set_without_samples_is_a_set(void **state)
{
    (void)state;
    write_usual(path(), 0, 0, NULL);
    expect_usual(path(), 0);
}

static void the_bytes_do_not_depend_on_the_threads(void **state)
{
    uint8_t *first = NULL;
    size_t first_len = 0;
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        coffer_mldf_write_opts opts = small_pages();
        opts.threads = threads;
        write_usual(path(), SAMPLES, COFFER_MLDF_FIELD_ZSTD, &opts);
        if (threads == 1)
            first = temp_read(path(), &first_len);
        else
            assert_true(temp_holds(path(), first, first_len));
    }
    free(first);
}

static void rows_and_tables_spill_without_changing_the_file(void **state)
{
    coffer_mldf_write_opts opts = small_pages();
    coffer_limits limits = COFFER_LIMITS_INIT;
    uint8_t *bytes;
    size_t len = 0;
    (void)state;
    write_usual(path(), 30000, 0, &opts);
    bytes = temp_read(path(), &len);
    limits.memory_bytes = 1;
    opts.limits = &limits;
    write_usual(path(), 30000, 0, &opts);
    assert_true(temp_holds(path(), bytes, len));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_read_back),
        cmocka_unit_test(a_set_without_samples_is_a_set),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
        cmocka_unit_test(rows_and_tables_spill_without_changing_the_file),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
