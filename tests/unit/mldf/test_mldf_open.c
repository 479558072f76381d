#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *file;
static size_t file_len;
static dataset_places places;

static int make_file(void **state)
{
    dataset_opts opts = { .checksummed = true };
    dataset *made = dataset_small(20, &opts);
    (void)state;
    file = dataset_make(&file_len, &places, made);
    dataset_free(made);
    return 0;
}

static int free_file(void **state)
{
    (void)state;
    free(file);
    return 0;
}

static void assert_open(coffer_status expected, const char *words)
{
    coffer_source *src = dataset_source_of(file, file_len);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf *set = NULL;
    assert_int_equal(coffer_mldf_open(&set, src, NULL, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    assert_true(expected == COFFER_OK || set == NULL);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void set_u64(size_t at, uint64_t value)
{
    coffer__store_u64(file + COFFER__MLDF_HEADER_AT + at, value);
}

static void a_set_opens_and_tells_what_it_is(void **state)
{
    coffer_source *src = dataset_source_of(file, file_len);
    coffer_mldf *set = dataset_open(src);
    (void)state;
    assert_int_equal(coffer_mldf_sample_count(set), 20);
    assert_int_equal(coffer_mldf_field_count(set), SMALL_FIELDS);
    assert_int_equal(coffer_mldf_page_size(set), 4096);
    assert_int_equal(coffer_mldf_row_size(set), 72);
    assert_int_equal(coffer_mldf_descriptor_stride(set), 208);
    assert_int_equal(coffer_mldf_flags(set),
                     COFFER_MLDF_LITTLE_ENDIAN | COFFER_MLDF_COMPRESSED | COFFER_MLDF_CHECKSUMMED);
    assert_int_equal(coffer_mldf_find_field(set, "caption"), SMALL_CAPTION);
    assert_int_equal(coffer_mldf_find_field(set, "image"), SMALL_IMAGE);
    assert_true(coffer_mldf_find_field(set, "none") == SIZE_MAX);
    assert_string_equal(coffer_mldf_field_at(set, SMALL_BLOB)->name, "blob");
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void opening_reads_header_and_descriptors_and_no_more(void **state)
{
    dataset *made = dataset_new(100000, NULL);
    dataset_reads reads;
    size_t len;
    (void)state;
    dataset_field(made, "label", COFFER_MLDF_INT, 0);
    dataset_field(made, "score", COFFER_MLDF_FLOAT, 0);
    uint8_t *bytes = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_counting_source(&reads, bytes, len);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_sample_count(set), 100000);
    assert_true(reads.total <=
                COFFER__MLDF_HEAD_SIZE + 2 * COFFER__MLDF_STRIDE + 2 * COFFER__MLDF_GUARD_SIZE);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
    dataset_free(made);
}

static void other_magics_are_told_apart(void **state)
{
    (void)state;
    file[0] &= 0x7f;
    file[COFFER__MLDF_MAGIC_SIZE - 1] = '\n';
    assert_open(COFFER_E_BAD_MAGIC, "transferred as 7-bit text");
    file[0] |= 0x80;
    memmove(file + 5, file + 6, file_len - 6);
    file_len--;
    assert_open(COFFER_E_BAD_MAGIC, "line endings were converted in transfer");
    file[5] = file[7] = '\r';
    assert_open(COFFER_E_BAD_MAGIC, "LF became CR");
    file[5] = file[7] = '\n';
    file[0] &= 0x7f;
    assert_open(COFFER_E_BAD_MAGIC, "transferred as 7-bit text");
    memcpy(file, "MCF\0", 4);
    assert_open(COFFER_E_NOT_RECOGNISED, "not a mldf file");
}

static void other_versions_are_refused_with_the_reason(void **state)
{
    (void)state;
    coffer__store_u16(file + COFFER__MLDF_HEADER_AT, 2);
    assert_open(COFFER_E_UNSUPPORTED_VERSION, "too new");
    coffer__store_u16(file + COFFER__MLDF_HEADER_AT, 0);
    assert_open(COFFER_E_UNSUPPORTED_VERSION, "too old");
    coffer__store_u16(file + COFFER__MLDF_HEADER_AT, 1);
    coffer__store_u16(file + COFFER__MLDF_HEADER_AT + COFFER__MLDF_MINOR_AT, 9);
    assert_open(COFFER_OK, "");
}

static void big_endian_files_are_refused(void **state)
{
    (void)state;
    coffer__store_u32(file + COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT, 4);
    assert_open(COFFER_E_BAD_VALUE, "not little-endian");
}

static void every_pointer_is_checked_before_it_is_followed(void **state)
{
    static const size_t pointers[] = { COFFER__MLDF_DESCRIPTORS_AT, COFFER__MLDF_METADATA_AT,
                                       COFFER__MLDF_DATA_AT, COFFER__MLDF_TABLE_AT };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint64_t wrong[] = { file_len + 1, UINT64_MAX, UINT64_MAX - 63, UINT64_C(1) << 63 };
        uint64_t right = coffer__load_u64(file + COFFER__MLDF_HEADER_AT + pointers[i]);
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            set_u64(pointers[i], wrong[k]);
            assert_open(COFFER_E_OUT_OF_BOUNDS, "file has");
        }
        set_u64(pointers[i], right);
    }
    set_u64(COFFER__MLDF_DESCRIPTORS_AT, 20);
    assert_open(COFFER_E_OVERLAP, "inside the header");
}

static void counts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    set_u64(COFFER__MLDF_SAMPLES_AT, UINT64_MAX);
    assert_open(COFFER_E_OUT_OF_BOUNDS, "18446744073709551615 samples");
    set_u64(COFFER__MLDF_SAMPLES_AT, UINT64_C(1) << 60);
    assert_open(COFFER_E_OUT_OF_BOUNDS, "do not fit");
    set_u64(COFFER__MLDF_SAMPLES_AT, 20);
    coffer__store_u16(file + COFFER__MLDF_HEADER_AT + COFFER__MLDF_FIELDS_AT, 65535);
    assert_open(COFFER_E_OUT_OF_BOUNDS, "65535 field descriptors");
}

static void a_table_with_a_part_of_an_entry_is_refused(void **state)
{
    (void)state;
    file_len -= 3;
    assert_open(COFFER_E_SIZE_MISMATCH, "no multiple of 16");
}

static void a_file_cut_anywhere_is_refused_or_read_within_its_bounds(void **state)
{
    size_t whole = file_len;
    (void)state;
    for (file_len = 0; file_len < whole; file_len++) {
        uint8_t *copy = malloc(file_len ? file_len : 1);
        memcpy(copy, file, file_len);
        coffer_source *src = dataset_source_of(copy, file_len);
        coffer_mldf *set = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        if (coffer_mldf_open(&set, src, NULL, &err) != COFFER_OK)
            assert_true(err.text[0] != 0);
        coffer_mldf_close(set);
        coffer_source_close(src);
        free(copy);
    }
}

static void limits_bound_the_number_of_fields(void **state)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_source *src = dataset_source_of(file, file_len);
    coffer_mldf *set = NULL;
    (void)state;
    limits.entries = 4;
    opts.limits = &limits;
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_E_LIMIT);
    coffer_source_close(src);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_file, free_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(a_set_opens_and_tells_what_it_is),
        WITH_FILE(opening_reads_header_and_descriptors_and_no_more),
        WITH_FILE(other_magics_are_told_apart),
        WITH_FILE(other_versions_are_refused_with_the_reason),
        WITH_FILE(big_endian_files_are_refused),
        WITH_FILE(every_pointer_is_checked_before_it_is_followed),
        WITH_FILE(counts_that_do_not_fit_are_refused),
        WITH_FILE(a_table_with_a_part_of_an_entry_is_refused),
        WITH_FILE(a_file_cut_anywhere_is_refused_or_read_within_its_bounds),
        WITH_FILE(limits_bound_the_number_of_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
