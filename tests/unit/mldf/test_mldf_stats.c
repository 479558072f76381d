/* Statistics of a set, and callers that were built with shorter structs. */
#include "support/dataset_write.h"

#include <math.h>
#include <string.h>

#define SAMPLES 30

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static coffer_mldf *open_usual(void)
{
    coffer_mldf *set = NULL;
    assert_int_equal(dataset_create(path(), SAMPLES, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open_path(&set, path(), NULL, NULL), COFFER_OK);
    return set;
}

static void fields_are_counted_and_measured(void **state)
{
    coffer_mldf *set = open_usual();
    coffer_mldf_stats *stats = NULL;
    coffer_mldf_value_count value = COFFER_MLDF_VALUE_COUNT_INIT;
    (void)state;
    assert_int_equal(coffer_mldf_stats_new(&stats, set, NULL, NULL), COFFER_OK);
    const coffer_mldf_field_stats *image = coffer_mldf_stats_field_at(stats, SMALL_IMAGE);
    assert_int_equal(image->present, SAMPLES);
    assert_true(image->widths.min == 3 && image->heights.max == 2);
    assert_int_equal(image->values_counted, 1);
    assert_int_equal(coffer_mldf_stats_value_at(&value, stats, SMALL_IMAGE, 0, NULL), COFFER_OK);
    assert_int_equal(value.width, 3);
    assert_int_equal(value.height, 2);
    assert_int_equal(value.count, SAMPLES);
    assert_int_equal(coffer_mldf_stats_value_at(&value, stats, SMALL_IMAGE, 1, NULL), COFFER_E_OUT_OF_BOUNDS);

    const coffer_mldf_field_stats *label = coffer_mldf_stats_field_at(stats, SMALL_LABEL);
    assert_true(label->scalars.min == -3 && label->scalars.max == 7 * (SAMPLES - 1) - 3);
    assert_int_equal(label->values_counted, SAMPLES);
    assert_int_equal(coffer_mldf_stats_value_at(&value, stats, SMALL_LABEL, 0, NULL), COFFER_OK);
    assert_int_equal(value.value, -3);
    assert_int_equal(value.first_sample, 0);

    const coffer_mldf_field_stats *blob = coffer_mldf_stats_field_at(stats, SMALL_BLOB);
    assert_int_equal(blob->absent, SAMPLES / 3);
    assert_int_equal(blob->present + blob->absent, SAMPLES);
    assert_null(coffer_mldf_stats_field_at(stats, SMALL_FIELDS));
    assert_int_equal(coffer_mldf_stats_payload_bytes(stats), coffer_mldf_stats_stored_bytes(stats));
    coffer_mldf_stats_free(stats);
    coffer_mldf_close(set);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context, (void)done, (void)total;
    return 1;
}

static void statistics_can_be_cancelled(void **state)
{
    coffer_mldf *set = open_usual();
    const coffer_progress progress = { sizeof progress, stop, NULL };
    const coffer_mldf_stats_opts opts = { .struct_size = sizeof opts, .progress = &progress };
    coffer_mldf_stats *stats = NULL;
    (void)state;
    assert_int_equal(coffer_mldf_stats_new(&stats, set, &opts, NULL), COFFER_E_CANCELLED);
    assert_null(stats);
    coffer_mldf_close(set);
}

/* A caller built with a shorter struct: nothing after its end may be touched. */
static void short_structs_are_not_overrun(void **state)
{
    coffer_mldf *set = open_usual();
    struct {
        uint32_t struct_size;
        bool present;
        uint64_t offset;
        uint32_t guard;
    } entry = { offsetof(coffer_mldf_entry, size), false, 0, 77 }, entries[2];
    (void)state;
    assert_int_equal(coffer_mldf_entry_at((coffer_mldf_entry *)(void *)&entry, set, 4, SMALL_CAPTION, NULL),
                     COFFER_OK);
    assert_true(entry.present && entry.offset > 0);
    assert_int_equal(entry.guard, 77);
    memset(entries, 0, sizeof entries);
    assert_int_equal(coffer_mldf_read_entries((coffer_mldf_entry *)(void *)entries, set, SMALL_CAPTION, 4, 2,
                                              NULL),
                     COFFER_E_INVALID_ARGUMENT);
    entries[0].struct_size = sizeof entries[0];
    assert_int_equal(coffer_mldf_read_entries((coffer_mldf_entry *)(void *)entries, set, SMALL_CAPTION, 4, 2,
                                              NULL),
                     COFFER_OK);
    assert_int_equal(entries[0].offset, entry.offset);
    assert_true(entries[1].offset > entry.offset);
    coffer_mldf_close(set);
}

/* Arrays of a caller whose fields are longer than ours are walked by their own stride. */
static void the_first_field_tells_the_stride(void **state)
{
    struct {
        coffer_mldf_field field;
        uint64_t more;
    } fields[2] = { { .field = dataset_field_of("a", COFFER_MLDF_INT, 0) },
                    { .field = dataset_field_of("b", COFFER_MLDF_FLOAT, 0) } };
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    (void)state;
    fields[0].field.struct_size = sizeof fields[0];
    fields[1].field.struct_size = sizeof fields[1];
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &fields[0].field, 2, &opts, NULL), COFFER_OK);
    assert_string_equal(coffer_mldf_writer_field_at(writer, 1)->name, "b");
    assert_int_equal(coffer_mldf_writer_field_at(writer, 1)->type, COFFER_MLDF_FLOAT);
    assert_null(coffer_mldf_writer_field_at(writer, 2));
    coffer_mldf_writer_discard(writer);
    fields[0].field.struct_size = 0;
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), &fields[0].field, 1, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(fields_are_counted_and_measured),
        TEST(statistics_can_be_cancelled),
        TEST(short_structs_are_not_overrun),
        TEST(the_first_field_tells_the_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
