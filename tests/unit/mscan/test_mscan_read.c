#include "support/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char two_params[] =
    "{\"model_name\": \"m\", \"id_to_param_name_map\": {\"7\": \"seven\", \"1\": \"one\"}, \"sequences\": "
    "[{\"sequence_id\": 0, \"num_tokens\": 2, \"source\": \"first\"}, {\"sequence_id\": 1, \"num_tokens\": "
    "0}, "
    "{\"sequence_id\": 5, \"num_tokens\": 3}]}   \n";

static const coffer_mscan_record four[] = {
    { 0, 1, 0, 10, 20 }, { 0, 7, 3, 11, 21 }, { 2, 7, 0, 12, 22 }, { 4, 1, 65535, 65535, 0 }
};

typedef struct fixture {
    uint8_t *bytes;
    size_t len;
    coffer_source *src;
    coffer_mscan *scan;
} fixture;

static fixture make(const char *json, const coffer_mscan_record *records, size_t count)
{
    fixture made;
    made.bytes = scan_bytes(&made.len, json, records, count);
    made.src = scan_source_of(made.bytes, made.len);
    made.scan = scan_open(made.src);
    return made;
}

static void drop(fixture *made)
{
    coffer_mscan_close(made->scan);
    coffer_source_close(made->src);
    free(made->bytes);
}

static coffer_status open_status(const uint8_t *bytes, size_t len, const coffer_mscan_open_opts *opts,
                                 coffer_error *err)
{
    coffer_source *src = scan_source_of(bytes, len);
    coffer_mscan *scan = NULL;
    coffer_status status = coffer_mscan_open(&scan, src, opts, err);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    return status;
}

static coffer_status json_status(const char *json, coffer_error *err)
{
    size_t len;
    uint8_t *bytes = scan_bytes(&len, json, NULL, 0);
    coffer_status status = open_status(bytes, len, NULL, err);
    free(bytes);
    return status;
}

static void metadata_is_as_the_file_says(void **state)
{
    fixture made = make(two_params, four, 4);
    size_t len;
    (void)state;
    assert_int_equal(coffer_mscan_record_count(made.scan), 4);
    assert_string_equal(coffer_mscan_model_name(made.scan), "m");
    assert_int_equal(coffer_mscan_param_count(made.scan), 2);
    assert_int_equal(coffer_mscan_param_at(made.scan, 0)->id, 1);
    assert_string_equal(coffer_mscan_param_at(made.scan, 1)->name, "seven");
    assert_string_equal(coffer_mscan_param_name(made.scan, 7), "seven");
    assert_null(coffer_mscan_param_name(made.scan, 2));
    assert_int_equal(coffer_mscan_sequence_count(made.scan), 3);
    assert_string_equal(coffer_mscan_sequence_at(made.scan, 0)->source, "first");
    assert_null(coffer_mscan_sequence_at(made.scan, 1)->source);
    assert_int_equal(coffer_mscan_sequence_at(made.scan, 2)->sequence_id, 5);
    assert_int_equal(coffer_mscan_metadata(made.scan, &len)[len - 1], '}');
    drop(&made);
}

static void tokens_are_the_sum_over_the_sequences(void **state)
{
    fixture made = make(two_params, four, 4);
    (void)state;
    assert_int_equal(coffer_mscan_total_tokens(made.scan), 5);
    assert_int_equal(coffer_mscan_sequence_at(made.scan, 2)->first_token, 2);
    assert_int_equal(coffer_mscan_sequence_of_token(made.scan, 0), 0);
    assert_int_equal(coffer_mscan_sequence_of_token(made.scan, 1), 0);
    assert_int_equal(coffer_mscan_sequence_of_token(made.scan, 2), 2);
    assert_int_equal(coffer_mscan_sequence_of_token(made.scan, 4), 2);
    assert_true(coffer_mscan_sequence_of_token(made.scan, 5) == COFFER_INDEX_NONE);
    drop(&made);
}

static void records_come_back_field_by_field(void **state)
{
    fixture made = make(two_params, four, 4);
    coffer_mscan_record got[4];
    (void)state;
    assert_int_equal(coffer_mscan_read(got, made.scan, 0, 4, NULL), COFFER_OK);
    assert_memory_equal(got, four, sizeof four);
    assert_int_equal(coffer_mscan_read(got, made.scan, 4, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_read(got, made.scan, 3, 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_read(got, made.scan, UINT64_MAX, 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_non_null(coffer_mscan_view(made.scan, 1, 3));
    assert_null(coffer_mscan_view(made.scan, 1, 4));
    assert_null(coffer_mscan_view(made.scan, 0, UINT64_MAX));
    drop(&made);
}

static void tokens_are_found_by_searching_sorted_records(void **state)
{
    fixture made = make(two_params, four, 4);
    uint64_t first, count;
    (void)state;
    assert_int_equal(coffer_mscan_find_tokens(&first, &count, made.scan, 0, 1, NULL), COFFER_OK);
    assert_int_equal(first, 0);
    assert_int_equal(count, 2);
    assert_int_equal(coffer_mscan_find_tokens(&first, &count, made.scan, 1, 2, NULL), COFFER_OK);
    assert_int_equal(first, 2);
    assert_int_equal(count, 0);
    assert_int_equal(coffer_mscan_find_tokens(&first, &count, made.scan, 2, UINT64_MAX, NULL), COFFER_OK);
    assert_int_equal(first, 2);
    assert_int_equal(count, 2);
    assert_int_equal(coffer_mscan_find_tokens(&first, &count, made.scan, 3, 1, NULL), COFFER_OK);
    assert_int_equal(count, 0);
    drop(&made);
}

static void records_out_of_order_are_noticed_also_between_chunks(void **state)
{
    size_t count = 3 * 262144 + 5;
    coffer_mscan_record *records = calloc(count, sizeof *records);
    bool sorted = false;
    uint64_t first, found;
    (void)state;
    for (size_t i = 0; i < count; i++)
        records[i] = (coffer_mscan_record){ (uint32_t)i, 1, 0, 0, 0 };
    fixture made = make(two_params, records, count);
    assert_int_equal(coffer_mscan_is_sorted(&sorted, made.scan, NULL), COFFER_OK);
    assert_true(sorted);
    drop(&made);

    records[262144].token_idx = 5; /* the first of the second chunk */
    for (size_t i = 262145; i < count; i++)
        records[i].token_idx = 300000;
    made = make(two_params, records, count);
    assert_int_equal(coffer_mscan_is_sorted(&sorted, made.scan, NULL), COFFER_OK);
    assert_false(sorted);
    assert_int_equal(coffer_mscan_find_tokens(&first, &found, made.scan, 0, 1, NULL), COFFER_E_NOT_SORTED);
    drop(&made);
    free(records);
}

static void a_file_without_sequences_has_no_tokens(void **state)
{
    fixture made = make("{}", NULL, 0);
    (void)state;
    assert_int_equal(coffer_mscan_total_tokens(made.scan), 0);
    assert_int_equal(coffer_mscan_sequence_count(made.scan), 0);
    assert_int_equal(coffer_mscan_param_count(made.scan), 0);
    assert_string_equal(coffer_mscan_model_name(made.scan), "");
    assert_true(coffer_mscan_sequence_of_token(made.scan, 0) == COFFER_INDEX_NONE);
    drop(&made);
}

static void a_short_record_area_is_refused_unless_lenient(void **state)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, two_params, four, 4);
    coffer_mscan *scan = NULL;
    (void)state;
    assert_int_equal(open_status(bytes, len - 1, NULL, &err), COFFER_E_TRUNCATED);
    assert_string_equal(err.text, "header says 4 records, file has 3");
    opts.lenient = true;
    coffer_source *src = scan_source_of(bytes, len - 1);
    assert_int_equal(coffer_mscan_open(&scan, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_record_count(scan), 3);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    free(bytes);
}

static void metadata_that_cannot_be_understood_is_refused(void **state)
{
    static const struct {
        const char *json;
        coffer_status status;
    } cases[] = {
        { "", COFFER_E_BAD_JSON },
        { "[]", COFFER_E_BAD_JSON },
        { "{\"a\": 1, \"a\": 2}", COFFER_E_DUPLICATE },
        { "{\"sequences\": {}}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [3]}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [{\"num_tokens\": 1}]}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [{\"sequence_id\": 0}]}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": -1}]}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1.5}]}", COFFER_E_BAD_VALUE },
        { "{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 18446744073709551615}, "
          "{\"sequence_id\": 1, \"num_tokens\": 1}]}",
          COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": []}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"x\": \"n\"}}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"\": \"n\"}}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"01\": \"n\"}}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"-1\": \"n\"}}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"99999999999999999999\": \"n\"}}", COFFER_E_BAD_VALUE },
        { "{\"id_to_param_name_map\": {\"1\": 2}}", COFFER_E_BAD_VALUE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        if (json_status(cases[i].json, &err) != cases[i].status)
            fail_msg("%s gives %s: %s", cases[i].json, coffer_status_name(err.status), err.text);
        assert_int_equal(err.status, cases[i].status);
        assert_true(err.text[0] != '\0');
    }
}

static void ids_that_repeat_do_not_keep_a_file_from_opening(void **state)
{
    (void)state;
    assert_int_equal(json_status("{\"sequences\": [{\"sequence_id\": 3, \"num_tokens\": 1}, "
                                 "{\"sequence_id\": 3, \"num_tokens\": 1}]}",
                                 NULL),
                     COFFER_OK);
}

static void limits_are_kept(void **state)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, two_params, four, 4);
    (void)state;
    opts.limits = &limits;
    limits.json_bytes = 10;
    assert_int_equal(open_status(bytes, len, &opts, NULL), COFFER_E_LIMIT);
    limits.json_bytes = 1000;
    assert_int_equal(open_status(bytes, len, &opts, NULL), COFFER_OK);
    limits.entries = 1;
    assert_int_equal(open_status(bytes, len, &opts, NULL), COFFER_E_LIMIT);
    limits.entries = 2; /* parameters fit, sequences do not */
    assert_int_equal(open_status(bytes, len, &opts, NULL), COFFER_E_LIMIT);
    free(bytes);
}

static void assert_scale(const fixture *made, coffer_mscan_metric metric, uint16_t param, double scale,
                         double offset)
{
    const coffer_mscan_quantization *found = coffer_mscan_quantization_of(made->scan, metric, param, 0);
    assert_non_null(found);
    assert_true(found->scale == scale && found->offset == offset);
    assert_int_equal(found->struct_size, sizeof *found);
}

static void scales_belong_to_the_file_a_parameter_or_a_sequence(void **state)
{
    fixture made = make(
        "{\"id_to_param_name_map\": {\"1\": \"one\", \"2\": \"two\"}, \"sequences\": [{\"sequence_id\": 0, "
        "\"num_tokens\": 1}], \"quantization\": {\"activation\": {\"kind\": \"linear\", \"scale\": 0.5, "
        "\"offset\": -1, \"scope\": \"param\", \"values\": {\"2\": {\"scale\": 4, \"offset\": 3}}}, "
        "\"grad_norm\": {\"kind\": \"linear\", \"scope\": \"sequence\", \"values\": [{\"scale\": 2, "
        "\"offset\": 1}]}}}",
        NULL, 0);
    (void)state;
    assert_scale(&made, COFFER_MSCAN_ACTIVATION, 2, 4, 3);
    assert_scale(&made, COFFER_MSCAN_ACTIVATION, 1, 0.5, -1);
    assert_scale(&made, COFFER_MSCAN_GRAD_NORM, 1, 2, 1);
    assert_null(coffer_mscan_quantization_of(made.scan, COFFER_MSCAN_GRAD_NORM, 1, 1));
    assert_int_equal(coffer_mscan_quantization_scope(made.scan, COFFER_MSCAN_GRAD_NORM),
                     COFFER_MSCAN_SCALE_SEQUENCE);
    drop(&made);
}

static void scales_that_are_not_understood_leave_raw_integers(void **state)
{
    static const char *const cases[] = {
        "3",
        "{\"activation\": 3}",
        "{\"activation\": {\"kind\": \"log\", \"scale\": 1, \"offset\": 0}}",
        "{\"activation\": {\"kind\": \"linear\", \"scale\": 1}}",
        "{\"activation\": {\"kind\": \"linear\", \"scale\": 1, \"offset\": 0, \"scope\": \"galaxy\"}}",
        "{\"activation\": {\"kind\": \"linear\", \"scope\": \"param\", \"values\": {\"x\": {}}}}",
        "{\"activation\": {\"kind\": \"linear\", \"scope\": \"param\", \"values\": 1}}",
        "{\"activation\": {\"kind\": \"linear\", \"scope\": \"sequence\", \"values\": [1]}}",
        "{\"activation\": {\"kind\": \"linear\", \"scope\": \"sequence\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[400];
        snprintf(json, sizeof json,
                 "{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1}], \"quantization\": %s}",
                 cases[i]);
        fixture made = make(json, NULL, 0);
        coffer_report *report = scan_check(made.src, false);
        assert_null(coffer_mscan_quantization_of(made.scan, COFFER_MSCAN_ACTIVATION, 0, 0));
        assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
        assert_true(scan_has(report, COFFER_E_BAD_VALUE, COFFER_WARNING));
        coffer_report_free(report);
        drop(&made);
    }
}

static void more_parameters_than_ids_are_kept_in_order(void **state)
{
    size_t count = 100000, used = 0, size = count * 24 + 100;
    char *json = malloc(size);
    (void)state;
    used += (size_t)snprintf(json, size, "{\"id_to_param_name_map\": {");
    for (size_t i = count; i-- > 0;)
        used += (size_t)snprintf(json + used, size - used, "\"%zu\": \"p%zu\"%s", i, i, i ? "," : "}}");
    fixture made = make(json, NULL, 0);
    assert_int_equal(coffer_mscan_param_count(made.scan), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(coffer_mscan_param_at(made.scan, i)->id, i);
    assert_string_equal(coffer_mscan_param_name(made.scan, 65535), "p65535");
    coffer_report *report = scan_check(made.src, false);
    assert_true(scan_has(report, COFFER_E_BAD_VALUE, COFFER_WARNING));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    drop(&made);
    free(json);
}

static void metadata_alone_is_a_scan_without_records(void **state)
{
    static const char json[] = "{\"model_name\": \"m\", \"id_to_param_name_map\": {\"2\": \"two\"}, "
                               "\"sequences\": [{\"sequence_id\": 7, \"num_tokens\": 3}]}  ";
    coffer_mscan *scan = NULL;
    coffer_mscan_record record;
    bool sorted = false;
    (void)state;
    assert_int_equal(coffer_mscan_open_metadata(&scan, json, sizeof json - 1, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_mscan_model_name(scan), "m");
    assert_int_equal(coffer_mscan_total_tokens(scan), 3);
    assert_int_equal(coffer_mscan_record_count(scan), 0);
    assert_string_equal(coffer_mscan_param_at(scan, 0)->name, "two");
    assert_null(coffer_mscan_param_at(scan, 1));
    assert_int_equal(coffer_mscan_sequence_at(scan, 0)->sequence_id, 7);
    assert_null(coffer_mscan_sequence_at(scan, 1));
    assert_int_equal(coffer_mscan_is_sorted(&sorted, scan, NULL), COFFER_OK);
    assert_true(sorted);
    assert_int_equal(coffer_mscan_read(&record, scan, 0, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mscan_close(scan);
    scan = NULL;
    assert_int_equal(coffer_mscan_open_metadata(&scan, "[]", 2, NULL, NULL), COFFER_E_BAD_JSON);
    assert_null(scan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_is_as_the_file_says),
        cmocka_unit_test(tokens_are_the_sum_over_the_sequences),
        cmocka_unit_test(records_come_back_field_by_field),
        cmocka_unit_test(tokens_are_found_by_searching_sorted_records),
        cmocka_unit_test(records_out_of_order_are_noticed_also_between_chunks),
        cmocka_unit_test(a_file_without_sequences_has_no_tokens),
        cmocka_unit_test(a_short_record_area_is_refused_unless_lenient),
        cmocka_unit_test(metadata_that_cannot_be_understood_is_refused),
        cmocka_unit_test(ids_that_repeat_do_not_keep_a_file_from_opening),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(scales_belong_to_the_file_a_parameter_or_a_sequence),
        cmocka_unit_test(scales_that_are_not_understood_leave_raw_integers),
        cmocka_unit_test(more_parameters_than_ids_are_kept_in_order),
        cmocka_unit_test(metadata_alone_is_a_scan_without_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
