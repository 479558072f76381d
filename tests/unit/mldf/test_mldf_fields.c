#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "formats/mldf/mldf_private.h"
#include "support/dataset.h"

#include <stdio.h>
#include <stdlib.h>

/* Opens what was made; the file lives until close_made. */
typedef struct opened {
    uint8_t *bytes;
    size_t len;
    dataset_places places;
    coffer_source *src;
    coffer_mldf *set;
} opened;

static opened open_made(dataset *made)
{
    opened of = { 0 };
    of.bytes = dataset_make(&of.len, &of.places, made);
    of.src = dataset_source_of(of.bytes, of.len);
    of.set = dataset_open(of.src);
    dataset_free(made);
    return of;
}

static void close_made(opened *of)
{
    coffer_mldf_close(of->set);
    coffer_source_close(of->src);
    free(of->bytes);
}

static dataset *many_fields(uint64_t samples, size_t count, const dataset_opts *opts)
{
    dataset *made = dataset_new(samples, opts);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field_%zu", i);
        dataset_field(made, name, (uint16_t)(i % 3 == 1 ? COFFER_MLDF_TEXT : COFFER_MLDF_INT), 0);
    }
    return made;
}

static void both_strides_are_found_in_both_orders_of_the_parts(void **state)
{
    static const uint32_t strides[] = { 208, 204 };
    (void)state;
    for (size_t fields = 2; fields <= DATASET_MAX_FIELDS; fields++) {
        for (size_t i = 0; i < 4; i++) {
            dataset_opts opts = { .stride = strides[i % 2], .rows_last = i / 2 };
            opened of = open_made(many_fields(i * 7, fields, &opts));
            assert_int_equal(coffer_mldf_descriptor_stride(of.set), strides[i % 2]);
            char last[32];
            snprintf(last, sizeof last, "field_%zu", fields - 1);
            assert_string_equal(coffer_mldf_field_at(of.set, fields - 1)->name, last);
            assert_int_equal(coffer_mldf_row_size(of.set), of.places.row_size);
            close_made(&of);
        }
    }
}

static void one_field_alone_is_the_tutorials_when_its_rows_follow(void **state)
{
    dataset_opts rows_first = { .stride = 204 }, data_first = { .stride = 208, .rows_last = true };
    (void)state;
    opened a = open_made(many_fields(5, 1, &rows_first)), b = open_made(many_fields(5, 1, &data_first));
    assert_int_equal(coffer_mldf_descriptor_stride(a.set), 204);
    assert_int_equal(coffer_mldf_descriptor_stride(b.set), 208);
    close_made(&a);
    close_made(&b);
}

/* Moves the rows so that they begin `gap` bytes after a descriptor of 204. */
static uint32_t stride_with_rows_at(uint32_t gap)
{
    dataset_opts opts = { .stride = 204 };
    dataset *made = many_fields(2, 1, &opts);
    dataset_places places;
    size_t len;
    uint8_t *bytes = dataset_make(&len, &places, made);
    uint64_t rows = places.descriptors + 204 + gap;
    coffer__store_u64(bytes + COFFER__MLDF_HEADER_AT + COFFER__MLDF_METADATA_AT, rows);
    coffer__store_u64(bytes + rows, 0x0102030405060708);
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_mldf *set = dataset_open(src);
    uint32_t stride = coffer_mldf_descriptor_stride(set);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
    dataset_free(made);
    return stride;
}

static void the_space_before_the_next_part_decides_for_one_field(void **state)
{
    (void)state;
    assert_int_equal(stride_with_rows_at(0), 204);
    assert_int_equal(stride_with_rows_at(3), 204);
    assert_int_equal(stride_with_rows_at(4), 208);
}

static void fields_of_other_sizes_are_laid_out_by_what_divides_them(void **state)
{
    dataset *made = dataset_new(3, NULL);
    static const struct {
        uint32_t size, offset;
    } expected[] = { { 1, 0 }, { 2, 2 }, { 12, 4 }, { 8, 16 }, { 3, 24 }, { 24, 32 }, { 6, 56 }, { 5, 62 } };
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        char name[2] = { (char)('a' + i), 0 };
        dataset_foreign_field(made, name, (uint16_t)(900 + i), expected[i].size);
    }
    dataset_row(made, 2, 4, "xyz", 3);
    opened of = open_made(made);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(coffer_mldf_field_at(of.set, i)->row_offset, expected[i].offset);
        assert_int_equal(coffer_mldf_field_at(of.set, i)->kind, COFFER_MLDF_ENTRY_OPAQUE);
    }
    assert_int_equal(coffer_mldf_row_size(of.set), 72);
    coffer_bytes row = COFFER_BYTES_INIT;
    assert_int_equal(coffer_mldf_read(&row, NULL, of.set, 2, 4, NULL), COFFER_OK);
    assert_int_equal(row.size, 3);
    assert_memory_equal(row.data, "xyz", 3);
    coffer_free(row.data);
    close_made(&of);
}

static void a_known_type_of_another_size_is_carried_as_it_is(void **state)
{
    dataset *made = dataset_new(1, NULL);
    int64_t value;
    (void)state;
    dataset_foreign_field(made, "narrow", COFFER_MLDF_INT, 4);
    dataset_field(made, "label", COFFER_MLDF_INT, 0);
    dataset_int(made, 0, 1, -9);
    opened of = open_made(made);
    assert_int_equal(coffer_mldf_field_at(of.set, 0)->kind, COFFER_MLDF_ENTRY_OPAQUE);
    assert_int_equal(coffer_mldf_get_int(&value, of.set, 0, 0, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mldf_get_int(&value, of.set, 0, 1, NULL), COFFER_OK);
    assert_int_equal(value, -9);
    coffer_report *report = dataset_check(of.src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_true(dataset_has(report, COFFER_E_SIZE_MISMATCH, COFFER_WARNING));
    coffer_report_free(report);
    close_made(&of);
}

static void array_descriptors_are_read(void **state)
{
    static const uint64_t dims[] = { 2, 0, 5 };
    dataset *made = dataset_new(0, NULL);
    (void)state;
    dataset_array_field(made, "a", COFFER_MLDF_SPECTROGRAM, 0, 4, 3, dims);
    opened of = open_made(made);
    const coffer_mldf_field *field = coffer_mldf_field_at(of.set, 0);
    assert_int_equal(field->dtype, COFFER_DTYPE_F64);
    assert_int_equal(field->ndim, 3);
    assert_memory_equal(field->dims, dims, sizeof dims);
    close_made(&of);
}

static void types_and_their_names_belong_together(void **state)
{
    size_t count = 0;
    (void)state;
    for (uint32_t type = 0; type < 65536; type++) {
        const char *name = coffer_mldf_type_name((uint16_t)type);
        if (!name)
            continue;
        count++;
        assert_int_equal(coffer_mldf_type_by_name(name), type);
    }
    assert_int_equal(count, 20);
    assert_int_equal(coffer_mldf_type_by_name("nothing"), 0);
}

/* Descriptor bytes that make no sense whichever the stride. */
static void assert_refused(size_t at, const void *bytes, size_t len, coffer_status expected)
{
    dataset_opts opts = { .rows_last = true };
    static const uint64_t dims[] = { 3 };
    dataset *made = dataset_new(1, &opts);
    dataset_places places;
    coffer_mldf *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    size_t file_len;
    dataset_array_field(made, "array", COFFER_MLDF_NDARRAY, 0, 1, 1, dims);
    dataset_field(made, "label", COFFER_MLDF_INT, 0);
    uint8_t *file = dataset_make(&file_len, &places, made);
    memcpy(file + places.descriptors + at, bytes, len);
    coffer_source *src = dataset_source_of(file, file_len);
    assert_int_equal(coffer_mldf_open(&set, src, NULL, &err), expected);
    coffer_report *report = dataset_check(src, false);
    assert_true(dataset_has(report, expected, COFFER_ERROR));
    coffer_report_free(report);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

static void descriptors_that_make_no_sense_are_refused(void **state)
{
    char long_name[65];
    (void)state;
    memset(long_name, 'n', 64);
    assert_refused(0, "\0", 1, COFFER_E_BAD_VALUE);
    assert_refused(0, long_name, 64, COFFER_E_BAD_VALUE);
    assert_refused(0, "\xff\xfe", 2, COFFER_E_BAD_TEXT);
    assert_refused(COFFER__MLDF_FIELD_ROW_SIZE_AT, "\0\0\0\0", 4, COFFER_E_BAD_VALUE);
    assert_refused(COFFER__MLDF_ARGUMENTS_AT, "\x77", 1, COFFER_E_BAD_VALUE);
    assert_refused(COFFER__MLDF_ARGUMENTS_AT + 1, "\x0e", 1, COFFER_E_BAD_VALUE);
    assert_refused(0, "label", 6, COFFER_E_DUPLICATE);
}

static void rows_of_more_than_the_file_are_out_of_bounds(void **state)
{
    (void)state;
    assert_refused(COFFER__MLDF_FIELD_ROW_SIZE_AT, "\xf0\xff\xff\x7f", 4, COFFER_E_OUT_OF_BOUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_strides_are_found_in_both_orders_of_the_parts),
        cmocka_unit_test(one_field_alone_is_the_tutorials_when_its_rows_follow),
        cmocka_unit_test(the_space_before_the_next_part_decides_for_one_field),
        cmocka_unit_test(fields_of_other_sizes_are_laid_out_by_what_divides_them),
        cmocka_unit_test(a_known_type_of_another_size_is_carried_as_it_is),
        cmocka_unit_test(array_descriptors_are_read),
        cmocka_unit_test(types_and_their_names_belong_together),
        cmocka_unit_test(descriptors_that_make_no_sense_are_refused),
        cmocka_unit_test(rows_of_more_than_the_file_are_out_of_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
