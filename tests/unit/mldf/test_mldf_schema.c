/* Schemas: what the format can hold is taken, everything else is refused before a byte is written. */
#include "support/dataset_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static coffer_status create(const char *json, coffer_error *err)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    coffer_status status = coffer_mldf_writer_create_json(&writer, path(), json, strlen(json), &opts, err);
    return status ? status : coffer_mldf_writer_commit(writer, err);
}

static void expect_refused(const char *json, coffer_status code, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(create(json, &err), code);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    temp_assert_only(temp_folder, NULL);
}

static void every_type_and_option_can_be_written_as_json(void **state)
{
    static const char json[] =
        "{\"fields\": ["
        "{\"name\": \"i\", \"type\": \"int\"}, {\"name\": \"f\", \"type\": \"float\"},"
        "{\"name\": \"b\", \"type\": \"bytes\", \"optional\": true, \"zstd\": true, \"encrypted\": true},"
        "{\"name\": \"n\", \"type\": \"ndarray\", \"dtype\": \"f32\", \"shape\": [3, 0]},"
        "{\"name\": \"j\", \"type\": \"json\", \"zstd\": false},"
        "{\"name\": \"p\", \"type\": \"image-jpeg\", \"jpeg_quality\": 90},"
        "{\"name\": \"a\", \"type\": \"audio\", \"sample_rate\": 16000},"
        "{\"name\": \"größe\", \"type\": \"text\"}]}";
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    const coffer_mldf_field *field;
    (void)state;
    temp_empty(temp_folder);
    if (create(json, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_field_count(set), 8);
    assert_int_equal(coffer_mldf_field_at(set, 2)->flags, 7);
    field = coffer_mldf_field_at(set, 3);
    assert_int_equal(field->dtype, COFFER_DTYPE_F32);
    assert_int_equal(field->ndim, 2);
    assert_int_equal(field->dims[0], 3);
    assert_int_equal(field->dims[1], 0);
    assert_int_equal(coffer_mldf_field_at(set, 4)->flags, 0);
    assert_int_equal(coffer_mldf_field_at(set, 5)->jpeg_quality, 90);
    assert_int_equal(coffer_mldf_field_at(set, 6)->sample_rate, 16000);
    assert_string_equal(coffer_mldf_field_at(set, 7)->name, "größe");
    coffer_mldf_close(set);
    coffer_source_close(src);
    dataset_expect_clean(path());
    temp_empty(temp_folder);
}

static void every_type_has_a_name(void **state)
{
    (void)state;
    for (uint16_t type = 0; type < 100; type++) {
        const char *name = coffer_mldf_type_name(type);
        if (!name)
            continue;
        char json[200];
        snprintf(json, sizeof json,
                 "[{\"name\": \"x\", \"type\": \"%s\", \"dtype\": \"i16\", \"shape\": [4]}]", name);
        assert_int_equal(create(json, NULL), COFFER_OK);
        dataset_expect_clean(path());
    }
    temp_empty(temp_folder);
}

static void mistakes_in_json_are_named(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    expect_refused("[", COFFER_E_BAD_JSON, "");
    expect_refused("7", COFFER_E_BAD_VALUE, "list of fields");
    expect_refused("{\"columns\": []}", COFFER_E_BAD_VALUE, "list of fields");
    expect_refused("[]", COFFER_E_INVALID_ARGUMENT, "0 fields");
    expect_refused("[3]", COFFER_E_BAD_VALUE, "field 0");
    expect_refused("[{\"type\": \"int\"}]", COFFER_E_MISSING, "name");
    expect_refused("[{\"name\": \"a\"}]", COFFER_E_MISSING, "type");
    expect_refused("[{\"name\": \"a\", \"type\": \"integer\"}]", COFFER_E_BAD_VALUE, "integer");
    expect_refused("[{\"name\": \"a\", \"type\": 1}]", COFFER_E_BAD_VALUE, "field 0");
    expect_refused("[{\"name\": \"a\", \"type\": \"int\", \"zst\": true}]", COFFER_E_BAD_VALUE, "zst");
    expect_refused("[{\"name\": \"a\", \"type\": \"bytes\", \"zstd\": 1}]", COFFER_E_BAD_VALUE, "zstd");
    expect_refused("[{\"name\": 1, \"type\": \"int\"}]", COFFER_E_BAD_VALUE, "name");
    expect_refused("[{\"name\": \"a\\u0000b\", \"type\": \"int\"}]", COFFER_E_BAD_VALUE, "NUL");
    expect_refused("[{\"name\": \"a\", \"type\": \"ndarray\", \"dtype\": \"f99\"}]", COFFER_E_BAD_VALUE,
                   "dtype");
    expect_refused("[{\"name\": \"a\", \"type\": \"ndarray\", \"dtype\": \"f32\", \"shape\": [1, -1]}]",
                   COFFER_E_BAD_VALUE, "shape");
    expect_refused("[{\"name\": \"a\", \"type\": \"ndarray\", \"dtype\": \"f32\","
                   "\"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]",
                   COFFER_E_BAD_VALUE, "shape");
    expect_refused("[{\"name\": \"a\", \"type\": \"image-jpeg\", \"jpeg_quality\": 101}]", COFFER_E_BAD_VALUE,
                   "jpeg_quality");
}

static void what_the_format_cannot_hold_is_refused(void **state)
{
    char json[300];
    (void)state;
    temp_empty(temp_folder);
    expect_refused("[{\"name\": \"\", \"type\": \"int\"}]", COFFER_E_INVALID_ARGUMENT, "no name");
    expect_refused("[{\"name\": \"a\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"int\"}]",
                   COFFER_E_DUPLICATE, "\"a\"");
    expect_refused("[{\"name\": \"a\", \"type\": \"int\", \"zstd\": true}]", COFFER_E_INVALID_ARGUMENT,
                   "compressed");
    expect_refused("[{\"name\": \"a\", \"type\": \"ndarray\"}]", COFFER_E_INVALID_ARGUMENT, "type");
    expect_refused(
        "[{\"name\": \"a\", \"type\": \"ndarray\", \"dtype\": \"f32\", \"shape\": [65536, 65536]}]",
        COFFER_E_LIMIT, "shape");
    snprintf(json, sizeof json, "[{\"name\": \"%064d\", \"type\": \"int\"}]", 1);
    expect_refused(json, COFFER_E_INVALID_ARGUMENT, "64 bytes, the maximum is 63");
    snprintf(json, sizeof json, "[{\"name\": \"%063d\", \"type\": \"int\"}]", 1);
    assert_int_equal(create(json, NULL), COFFER_OK);
    temp_empty(temp_folder);
}

static void as_many_fields_as_the_format_allows_are_written(void **state)
{
    enum { MOST = 65535 };
    coffer_mldf_field *fields = calloc(MOST + 1, sizeof *fields);
    char(*names)[8] = calloc(MOST + 1, sizeof *names);
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    (void)state;
    for (size_t i = 0; i <= MOST; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        fields[i] = dataset_field_of(names[i], COFFER_MLDF_INT, 0);
    }
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, MOST + 1, &opts, NULL),
                     COFFER_E_LIMIT);
    temp_assert_only(temp_folder, NULL);
    assert_int_equal(coffer_mldf_writer_create(&writer, path(), fields, MOST, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_set_int(writer, MOST - 1, -5, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    dataset_expect_clean(path());
    free(fields);
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_option_can_be_written_as_json),
        cmocka_unit_test(every_type_has_a_name),
        cmocka_unit_test(mistakes_in_json_are_named),
        cmocka_unit_test(what_the_format_cannot_hold_is_refused),
        cmocka_unit_test(as_many_fields_as_the_format_allows_are_written),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
