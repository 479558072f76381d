#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 40 };

/* The small set, over one kind of source or another. */
typedef struct fixture {
    dataset *made;
    uint8_t *bytes;
    size_t len;
    dataset_places places;
    dataset_reads reads;
    coffer_source *src;
    coffer_mldf *set;
} fixture;

static void open_fixture(fixture *of, const dataset_opts *opts, bool counted, bool verify)
{
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    of->made = dataset_small(SAMPLES, opts);
    of->bytes = dataset_make(&of->len, &of->places, of->made);
    of->src = counted ? dataset_counting_source(&of->reads, of->bytes, of->len)
                      : dataset_source_of(of->bytes, of->len);
    open_opts.verify = verify;
    open_opts.key = opts ? opts->key : NULL;
    of->set = NULL;
    if (coffer_mldf_open(&of->set, of->src, &open_opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

static void close_fixture(fixture *of)
{
    coffer_mldf_close(of->set);
    coffer_source_close(of->src);
    free(of->bytes);
    dataset_free(of->made);
}

static void assert_value(const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_bytes found = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t expected[256];
    size_t len = dataset_small_value(expected, sample, field);
    if (coffer_mldf_read(&found, &entry, set, sample, field, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(entry.present, len != SIZE_MAX);
    assert_int_equal(found.size, len == SIZE_MAX ? 0 : len);
    assert_memory_equal(found.data, expected, found.size);
    coffer_free(found.data);
}

static void every_value_is_read_over_every_source_and_layout(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        dataset_opts opts = { .stride = i & 1 ? 204 : 208, .rows_last = i & 2, .checksummed = i & 4 };
        fixture of;
        open_fixture(&of, &opts, i & 8, i & 16);
        for (uint64_t sample = 0; sample < SAMPLES; sample++) {
            for (size_t f = 0; f < SMALL_FIELDS; f++)
                assert_value(of.set, sample, f);
        }
        close_fixture(&of);
    }
}

static void a_read_touches_the_row_entry_and_the_payload_and_nothing_else(void **state)
{
    fixture of;
    coffer_bytes found = COFFER_BYTES_INIT;
    (void)state;
    open_fixture(&of, NULL, true, false);
    of.reads.calls = of.reads.total = 0;
    assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 7, SMALL_IMAGE, NULL), COFFER_OK);
    assert_int_equal(of.reads.calls, 2);
    assert_int_equal(of.reads.total, 24 + 18);
    of.reads.calls = of.reads.total = 0;
    assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 2, SMALL_BLOB, NULL), COFFER_OK);
    assert_int_equal(of.reads.total, 16);
    coffer_free(found.data);
    close_fixture(&of);
}

static void a_verified_read_looks_at_few_entries_of_the_table(void **state)
{
    dataset *made = dataset_new(5000, NULL);
    dataset_reads reads;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_bytes found = COFFER_BYTES_INIT;
    coffer_mldf *set = NULL;
    uint8_t bytes[300] = { 0 };
    size_t len;
    (void)state;
    dataset_field(made, "b", COFFER_MLDF_BYTES, 0);
    for (uint64_t i = 0; i < 5000; i++)
        dataset_bytes(made, i, 0, bytes, 100 + i * 7919 % 200, NULL);
    uint8_t *file = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_counting_source(&reads, file, len);
    opts.verify = true;
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    reads.calls = 0;
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(coffer_mldf_read(&found, NULL, set, i, 0, NULL), COFFER_OK);
    assert_true(reads.calls < 5000 * 7);
    coffer_free(found.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

static void views_are_the_bytes_where_they_are_stored_as_they_are(void **state)
{
    fixture of;
    uint8_t expected[256];
    size_t size;
    (void)state;
    open_fixture(&of, NULL, false, false);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const uint8_t *view = coffer_mldf_view(&size, of.set, i, SMALL_IMAGE);
        assert_int_equal(size, dataset_small_value(expected, i, SMALL_IMAGE));
        assert_memory_equal(view, expected, size);
        assert_true(view >= of.bytes && view < of.bytes + of.len);
    }
    assert_null(coffer_mldf_view(&size, of.set, 0, SMALL_CAPTION));
    assert_null(coffer_mldf_view(&size, of.set, 2, SMALL_BLOB));
    assert_null(coffer_mldf_view(&size, of.set, SAMPLES, 0));
    assert_null(coffer_mldf_view(&size, of.set, 0, SMALL_FIELDS));
    assert_non_null(coffer_mldf_view(&size, of.set, 3, SMALL_LABEL));
    assert_int_equal(size, 8);
    close_fixture(&of);
}

static void a_missing_item_is_reported_with_its_numbers(void **state)
{
    fixture of;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    open_fixture(&of, NULL, false, false);
    assert_int_equal(coffer_mldf_entry_at(&entry, of.set, SAMPLES, 0, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_string_equal(err.text, "sample 40 requested, the set has 40");
    assert_int_equal(coffer_mldf_entry_at(&entry, of.set, 0, 9, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_string_equal(err.text, "field 9 requested, the set has 5");
    close_fixture(&of);
}

static void pointers_that_lead_outside_are_errors_that_name_the_sample(void **state)
{
    fixture of;
    coffer_bytes found = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *entry;
    (void)state;
    open_fixture(&of, NULL, false, false);
    entry = of.bytes + dataset_entry_at(of.made, &of.places, 7, SMALL_IMAGE);
    static const uint64_t wrong[] = { 1, 72, UINT64_MAX, UINT64_MAX - 17, UINT64_C(1) << 62 };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        coffer__store_u64(entry, wrong[i]);
        assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 7, SMALL_IMAGE, &err),
                         COFFER_E_OUT_OF_BOUNDS);
        assert_memory_equal(err.text, "sample 7, field image: ", 23);
        assert_int_equal(err.offset, entry - of.bytes);
    }
    coffer__store_u64(entry, of.places.table - 1);
    assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 7, SMALL_IMAGE, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_free(found.data);
    close_fixture(&of);
}

static void verifying_finds_foreign_pointers_and_changed_bytes(void **state)
{
    dataset_opts opts = { .checksummed = true };
    fixture of;
    coffer_bytes found = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    open_fixture(&of, &opts, false, true);
    uint8_t *entry = of.bytes + dataset_entry_at(of.made, &of.places, 7, SMALL_IMAGE);
    uint64_t place = coffer__load_u64(entry);
    coffer__store_u64(entry, place + 1);
    assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 7, SMALL_IMAGE, &err),
                     COFFER_E_DANGLING_REFERENCE);
    assert_non_null(strstr(err.text, "sample 7, field image: 18 bytes at"));
    coffer__store_u64(entry, place);
    of.bytes[place + 3] ^= 4;
    assert_int_equal(coffer_mldf_read(&found, NULL, of.set, 7, SMALL_IMAGE, &err), COFFER_E_BAD_CHECKSUM);
    assert_int_equal(err.offset, place);
    size_t size;
    assert_null(coffer_mldf_view(&size, of.set, 7, SMALL_IMAGE));
    assert_value(of.set, 8, SMALL_IMAGE);
    coffer_free(found.data);
    close_fixture(&of);
}

static void typed_accessors_give_values_or_say_what_is_there(void **state)
{
    fixture of;
    coffer_bytes text = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    int64_t label;
    double score;
    (void)state;
    open_fixture(&of, NULL, false, false);
    assert_int_equal(coffer_mldf_get_int(&label, of.set, 5, SMALL_LABEL, NULL), COFFER_OK);
    assert_int_equal(label, 32);
    assert_int_equal(coffer_mldf_get_float(&score, of.set, 5, SMALL_SCORE, NULL), COFFER_OK);
    assert_true(score == 1.25);
    assert_int_equal(coffer_mldf_get_text(&text, of.set, 5, SMALL_CAPTION, NULL), COFFER_OK);
    assert_string_equal((char *)text.data, "caption 5 \xc3\xa9");
    assert_int_equal(coffer_mldf_get_float(&score, of.set, 5, SMALL_LABEL, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "sample 5, field label: asked for as float, the field holds int");
    assert_int_equal(coffer_mldf_get_text(&text, of.set, 5, SMALL_BLOB, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_free(text.data);
    close_fixture(&of);
}

static void arrays_come_with_their_shape(void **state)
{
    static const uint64_t fixed[] = { 2, 3 }, varying[] = { 0, 2 };
    static const float numbers[] = { 0, 1, 2, 3, 4, 5 };
    dataset *made = dataset_new(3, NULL);
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    uint8_t with_dims[16 + sizeof numbers] = { 3, 0, 0, 0, 0, 0, 0, 0, 2 };
    coffer_bytes found = COFFER_BYTES_INIT;
    size_t len;
    (void)state;
    memcpy(with_dims + 16, numbers, sizeof numbers);
    dataset_array_field(made, "fixed", COFFER_MLDF_NDARRAY, 0, 1, 2, fixed);
    dataset_array_field(made, "varying", COFFER_MLDF_NDARRAY, 0, 1, 2, varying);
    dataset_bytes(made, 0, 0, numbers, sizeof numbers, NULL);
    dataset_bytes(made, 0, 1, with_dims, sizeof with_dims, NULL);
    dataset_bytes(made, 1, 0, numbers, sizeof numbers - 4, NULL);
    dataset_bytes(made, 1, 1, with_dims, 15, NULL);
    with_dims[8] = 1; /* not what the field says */
    dataset_bytes(made, 2, 1, with_dims, sizeof with_dims, NULL);
    uint8_t *file = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_source_of(file, len);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 0, 0, NULL), COFFER_OK);
    assert_memory_equal(dims, fixed, sizeof fixed);
    assert_int_equal(found.size, sizeof numbers);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 0, 1, NULL), COFFER_OK);
    assert_true(dims[0] == 3 && dims[1] == 2);
    assert_int_equal(found.size, sizeof numbers);
    assert_memory_equal(found.data, numbers, sizeof numbers);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 1, 0, NULL), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 1, 1, NULL), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 2, 0, NULL), COFFER_E_MISSING);
    assert_int_equal(coffer_mldf_get_array(&found, dims, set, 2, 1, NULL), COFFER_E_INCONSISTENT);
    coffer_free(found.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

static void tokens_are_widened(void **state)
{
    uint16_t narrow[] = { 1, 2, 65535 };
    uint32_t wide[] = { 70000, 3 };
    static const uint32_t expected[] = { 1, 2, 65535 };
    coffer_mldf_entry two = { .struct_size = sizeof(coffer_mldf_entry), .encoding = 2, .num_tokens = 3 },
                      one = { .struct_size = sizeof(coffer_mldf_entry), .encoding = 1, .num_tokens = 2 };
    dataset *made = dataset_new(3, NULL);
    coffer_bytes found = COFFER_BYTES_INIT;
    size_t len;
    (void)state;
    coffer__swap_numbers(narrow, 2, 3);
    coffer__swap_numbers(wide, 4, 2);
    dataset_field(made, "t", COFFER_MLDF_TEXT_TOKENISED, 0);
    dataset_bytes(made, 0, 0, narrow, sizeof narrow, &two);
    dataset_bytes(made, 1, 0, wide, sizeof wide, &one);
    dataset_bytes(made, 2, 0, wide, 7, &one);
    uint8_t *file = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_source_of(file, len);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_get_tokens(&found, set, 0, 0, NULL), COFFER_OK);
    assert_int_equal(found.size, sizeof expected);
    assert_memory_equal(found.data, expected, sizeof expected);
    assert_int_equal(coffer_mldf_get_tokens(&found, set, 1, 0, NULL), COFFER_OK);
    coffer__swap_numbers(wide, 4, 2);
    assert_memory_equal(found.data, wide, sizeof wide);
    assert_int_equal(coffer_mldf_get_tokens(&found, set, 2, 0, NULL), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mldf_get_text(&found, set, 0, 0, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_free(found.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

static void entries_of_a_range_come_in_one_go(void **state)
{
    (void)state;
    for (unsigned counted = 0; counted < 2; counted++) {
        coffer_mldf_entry entries[SAMPLES] = { COFFER_MLDF_ENTRY_INIT }, one = COFFER_MLDF_ENTRY_INIT;
        fixture of;
        open_fixture(&of, NULL, counted, false);
        assert_int_equal(coffer_mldf_read_entries(entries, of.set, SMALL_BLOB, 3, 30, NULL), COFFER_OK);
        for (uint64_t i = 0; i < 30; i++) {
            assert_int_equal(coffer_mldf_entry_at(&one, of.set, 3 + i, SMALL_BLOB, NULL), COFFER_OK);
            assert_memory_equal(&entries[i], &one, sizeof one);
        }
        assert_int_equal(coffer_mldf_read_entries(entries, of.set, 0, 30, 11, NULL), COFFER_E_OUT_OF_BOUNDS);
        assert_int_equal(coffer_mldf_read_entries(entries, of.set, 0, SAMPLES, 0, NULL), COFFER_OK);
        close_fixture(&of);
    }
}

static void payloads_may_be_shared(void **state)
{
    dataset *made = dataset_new(2, NULL);
    coffer_bytes found = COFFER_BYTES_INIT;
    size_t len;
    (void)state;
    dataset_field(made, "b", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ZSTD);
    dataset_bytes(made, 0, 0, "hello", 5, NULL);
    dataset_share(made, 1, 0, 0);
    uint8_t *file = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_source_of(file, len);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_read(&found, NULL, set, 1, 0, NULL), COFFER_OK);
    assert_memory_equal(found.data, "hello", 5);
    dataset_assert_clean(file, len);
    coffer_free(found.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_read_over_every_source_and_layout),
        cmocka_unit_test(a_read_touches_the_row_entry_and_the_payload_and_nothing_else),
        cmocka_unit_test(a_verified_read_looks_at_few_entries_of_the_table),
        cmocka_unit_test(views_are_the_bytes_where_they_are_stored_as_they_are),
        cmocka_unit_test(a_missing_item_is_reported_with_its_numbers),
        cmocka_unit_test(pointers_that_lead_outside_are_errors_that_name_the_sample),
        cmocka_unit_test(verifying_finds_foreign_pointers_and_changed_bytes),
        cmocka_unit_test(typed_accessors_give_values_or_say_what_is_there),
        cmocka_unit_test(arrays_come_with_their_shape),
        cmocka_unit_test(tokens_are_widened),
        cmocka_unit_test(entries_of_a_range_come_in_one_go),
        cmocka_unit_test(payloads_may_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
