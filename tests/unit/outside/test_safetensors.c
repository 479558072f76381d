/* Every rule of the format, kept and broken once; shards and the index that names them. */
#include "coffer/coffer.h"
#include "convert/convert.h"
#include "support/safetensors.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coffer_status open_bytes(const uint8_t *bytes, size_t len, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_tensors *set = NULL;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    coffer_status status = coffer_tensors_open(&set, src, NULL, err);
    coffer_tensors_close(set);
    coffer_source_close(src);
    return status;
}

static coffer_error refused(coffer_status expected, const char *header, size_t data_len)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    uint8_t *bytes = safetensors_make(&len, header, data_len);
    coffer_status status = open_bytes(bytes, len, &err);
    free(bytes);
    if (status != expected)
        fail_msg("%s: %s instead of %s (%s)", header, coffer_status_name(status),
                 coffer_status_name(expected), err.text);
    return err;
}

static void accepted(const char *header, size_t data_len)
{
    refused(COFFER_OK, header, data_len);
}

static void a_file_is_read_with_its_tensors_sorted(void **state)
{
    (void)state;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[2,10]},"
                         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                         "\"c\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[10,12]}}   ";
    coffer_source *src = NULL;
    coffer_tensors *set = NULL;
    coffer_node *root = NULL;
    size_t len;
    uint8_t *bytes = safetensors_make(&len, header, 12), two[2];
    double numbers[2];
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open(&set, src, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_tensors_kind(set), "safetensors");
    assert_int_equal(coffer_tensors_count(set), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(coffer_tensors_at(set, i)->name[0], 'a' + (int)i);
    const coffer_tensor *b = coffer_tensors_at(set, 1);
    assert_string_equal(b->type_name, "F32");
    assert_int_equal(b->dtype, COFFER_DTYPE_F32);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->dims[0], 2);
    assert_int_equal(b->elements, 2);
    assert_int_equal(b->size, 8);
    assert_int_equal(b->offset, 8 + strlen(header) + 2);
    assert_int_equal(coffer_tensors_at(set, 2)->elements, 1);
    assert_null(coffer_tensors_at(set, 3));
    assert_int_equal(coffer_tensors_find(set, "c"), 2);
    assert_int_equal(coffer_tensors_find(set, "d"), SIZE_MAX);
    assert_int_equal(coffer_tensors_read(two, set, 1, 6, 2, NULL), COFFER_OK);
    assert_int_equal(two[1], 10);
    assert_int_equal(coffer_tensors_read(two, set, 1, 7, 2, NULL), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_tensors_read_as(numbers, COFFER_DTYPE_F64, set, 0, 0, 2, NULL), COFFER_OK);
    assert_true(numbers[0] == 1 && numbers[1] == 2);
    assert_int_equal(coffer_tensors_read_as(numbers, COFFER_DTYPE_F64, set, 0, 1, 2, NULL),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_metadata(root, set, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "format"), NULL), "pt");
    coffer_node_free(root);
    coffer_tensors_close(set);
    coffer_source_close(src);
    free(bytes);
}

static void every_type_of_whole_bytes_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned size;
    } types[] = { { "BOOL", 1 },    { "U8", 1 },      { "I8", 1 },          { "F8_E5M2", 1 },
                  { "F8_E4M3", 1 }, { "F8_E8M0", 1 }, { "F8_E4M3FNUZ", 1 }, { "F8_E5M2FNUZ", 1 },
                  { "I16", 2 },     { "U16", 2 },     { "F16", 2 },         { "BF16", 2 },
                  { "I32", 4 },     { "U32", 4 },     { "F32", 4 },         { "C64", 8 },
                  { "F64", 8 },     { "I64", 8 },     { "U64", 8 } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%u]}}",
                 types[i].name, 3 * types[i].size);
        accepted(header, (size_t)3 * types[i].size);
        refused(COFFER_E_TRAILING_BYTES, header, (size_t)3 * types[i].size + 1);
    }
}

static void types_of_less_than_a_byte_are_refused_clearly(void **state)
{
    (void)state;
    coffer_error err =
        refused(COFFER_E_UNSUPPORTED, "{\"t\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2);
    assert_non_null(strstr(err.text, "F4"));
    refused(COFFER_E_UNSUPPORTED, "{\"t\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3);
    refused(COFFER_E_BAD_VALUE, "{\"t\":{\"dtype\":\"Q9\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2);
}

static void empty_files_and_empty_tensors_are_legal(void **state)
{
    (void)state;
    accepted("{}", 0);
    accepted("{\"__metadata__\":null}", 0);
    accepted("{\"e\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}}", 0);
    accepted("{\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[2,2]},"
             "\"t\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
             2);
}

static void the_length_of_the_header_is_bounded(void **state)
{
    (void)state;
    uint8_t bytes[16] = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    const char *kind = NULL;
    /* A length past the format's limit is not what the format looks like. */
    memset(bytes, 0xff, 8);
    bytes[8] = '{';
    assert_int_equal(open_bytes(bytes, sizeof bytes, &err), COFFER_E_NOT_RECOGNISED);
    /* One within it, in a file that is shorter. */
    memcpy(bytes, "\x10\x00\x00\x00\x00\x00\x00\x00{", 9);
    assert_int_equal(open_bytes(bytes, sizeof bytes, &err), COFFER_E_TRUNCATED);
    assert_non_null(strstr(err.text, "24"));
    assert_int_equal(coffer_source_from_memory(&src, bytes, sizeof bytes, NULL), COFFER_OK);
    assert_int_equal(coffer_convert_kind(&kind, src, NULL), COFFER_OK);
    assert_string_equal(kind, "safetensors");
    coffer_source_close(src);
}

static void a_header_must_be_json_of_the_right_shape(void **state)
{
    (void)state;
    refused(COFFER_E_BAD_JSON, "{\"a\":", 0);
    refused(COFFER_E_BAD_JSON, "{} x", 0);
    refused(COFFER_E_BAD_TEXT, "{\"\xff\":{}}", 0);
    refused(COFFER_E_BAD_VALUE, "{\"a\":7}", 0);
    refused(COFFER_E_MISSING, "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_MISSING, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_MISSING, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":{\"a\":0,\"b\":1}}}",
            1);
    refused(COFFER_E_BAD_VALUE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,1]}}", 1);
    refused(COFFER_E_BAD_VALUE, "{\"__metadata__\":{\"n\":1}}", 0);
    refused(COFFER_E_BAD_VALUE, "{\"__metadata__\":[]}", 0);
    refused(COFFER_E_BAD_TEXT, "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    refused(COFFER_E_BAD_TEXT, "{\"__metadata__\":{\"a\\u0000b\":\"x\"}}", 0);
}

static void a_header_nested_too_deep_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 20000 };
    char *header = malloc(2 * DEPTH + 8);
    assert_non_null(header);
    strcpy(header, "{\"a\":");
    memset(header + 5, '[', DEPTH);
    memset(header + 5 + DEPTH, ']', DEPTH);
    strcpy(header + 5 + 2 * DEPTH, "}");
    refused(COFFER_E_LIMIT, header, 0);
    free(header);
}

static void a_duplicate_name_is_refused_with_its_offset(void **state)
{
    (void)state;
    const char *header = "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                         "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    coffer_error err = refused(COFFER_E_DUPLICATE, header, 2);
    assert_true(err.offset > 8 && err.offset < 8 + strlen(header));
}

static void sizes_that_do_not_fit_the_type_are_refused(void **state)
{
    (void)state;
    coffer_error err = refused(COFFER_E_SIZE_MISMATCH,
                               "{\"wq\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8);
    assert_string_equal(err.text, "tensor \"wq\" has 8 bytes, its type and shape require 12");
    assert_int_equal(err.offset, 9);
    /* Products that wrap around, to the right number even. */
    refused(COFFER_E_SIZE_MISMATCH,
            "{\"t\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0);
    refused(COFFER_E_SIZE_MISMATCH,
            "{\"t\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}}", 0);
    refused(COFFER_E_SIZE_MISMATCH,
            "{\"t\":{\"dtype\":\"F64\",\"shape\":[2305843009213693953],\"data_offsets\":[0,8]}}", 8);
}

static void ranges_cover_the_data_exactly(void **state)
{
    (void)state;
    coffer_error err =
        refused(COFFER_E_OUT_OF_BOUNDS, "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3);
    assert_non_null(strstr(err.text, "\"t\" ends at 4"));
    refused(COFFER_E_OUT_OF_BOUNDS,
            "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],"
            "\"data_offsets\":[18446744073709551614,18446744073709551615]}}",
            3);
    refused(COFFER_E_BAD_VALUE, "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,1]}}", 3);
    refused(COFFER_E_OVERLAP,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
            3);
    refused(COFFER_E_OVERLAP,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
            2);
    refused(COFFER_E_INCONSISTENT, "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3);
    refused(COFFER_E_INCONSISTENT,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
            4);
    refused(COFFER_E_TRAILING_BYTES, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2);
}

static void a_file_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes =
        safetensors_make(&len, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", 16);
    for (size_t cut = 0; cut < len; cut++) {
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_not_equal(open_bytes(bytes, cut, &err), COFFER_OK);
        assert_int_not_equal(err.text[0], 0);
    }
    assert_int_equal(open_bytes(bytes, len, NULL), COFFER_OK);
    free(bytes);
}

/* ---- Shards ---- */

static const char shard_a[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                              "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
static const char shard_b[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";

static coffer_status open_index(const char *index, coffer_tensors **set, coffer_error *err)
{
    safetensors_write(temp_path(temp_folder, "one.safetensors"), shard_a, 2);
    safetensors_write(temp_path(temp_folder, "two.safetensors"), shard_b, 3);
    temp_write(temp_path(temp_folder, "model.safetensors.index.json"), index, strlen(index));
    return coffer_tensors_open_path(set, temp_folder, NULL, err);
}

static void index_refused(coffer_status expected, const char *index)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    coffer_status status = open_index(index, &set, &err);
    if (status != expected)
        fail_msg("%s: %s instead of %s (%s)", index, coffer_status_name(status), coffer_status_name(expected),
                 err.text);
}

static void a_folder_of_shards_is_one_set(void **state)
{
    (void)state;
    coffer_tensors *set = NULL;
    uint8_t bytes[3];
    assert_int_equal(open_index("{\"metadata\":{\"total_size\":5},\"weight_map\":{\"b\":\"two.safetensors\","
                                "\"a\":\"one.safetensors\"}}",
                                &set, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_tensors_count(set), 2);
    assert_string_equal(coffer_tensors_kind(set), "safetensors");
    assert_non_null(strstr(coffer_tensors_at(set, 1)->file, "two.safetensors"));
    assert_int_equal(coffer_tensors_read(bytes, set, 1, 0, 3, NULL), COFFER_OK);
    assert_memory_equal(bytes, "\1\2\3", 3);
    coffer_tensors_close(set);
}

static void a_false_index_is_refused(void **state)
{
    (void)state;
    index_refused(COFFER_E_MISSING,
                  "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"gone.safetensors\"}}");
    index_refused(COFFER_E_DANGLING_REFERENCE,
                  "{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"two.safetensors\"}}");
    index_refused(COFFER_E_DANGLING_REFERENCE, "{\"weight_map\":{\"z\":\"one.safetensors\"}}");
    index_refused(COFFER_E_MISSING, "{\"metadata\":{}}");
    index_refused(COFFER_E_MISSING, "{\"weight_map\":[]}");
    index_refused(COFFER_E_BAD_VALUE, "{\"weight_map\":{\"a\":1}}");
    index_refused(COFFER_E_BAD_JSON, "{\"weight_map\":");
}

static void a_shard_outside_the_folder_is_refused(void **state)
{
    (void)state;
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"../one.safetensors\"}}");
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"/etc/passwd\"}}");
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"sub\\\\one.safetensors\"}}");
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"..\"}}");
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"\"}}");
    index_refused(COFFER_E_UNSAFE_PATH, "{\"weight_map\":{\"a\":\"one.safetensors\\u0000x\"}}");
}

static void a_tensor_in_two_shards_is_refused_with_both_names(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    safetensors_write(temp_path(temp_folder, "three.safetensors"), shard_a, 2);
    assert_int_equal(open_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}",
                                &set, NULL),
                     COFFER_OK);
    coffer_tensors_close(set);
    safetensors_write(temp_path(temp_folder, "three.safetensors"),
                      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                      2);
    assert_int_equal(open_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"three.safetensors\"}}",
                                &set, &err),
                     COFFER_E_DUPLICATE);
    assert_non_null(strstr(err.text, "\"a\""));
}

static void a_folder_without_a_model_is_refused(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    temp_empty(temp_folder);
    assert_int_equal(coffer_tensors_open_path(&set, temp_folder, NULL, &err), COFFER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "no model in the folder"));
    assert_int_equal(coffer_tensors_open_path(&set, temp_path(temp_folder, "nothing"), NULL, &err),
                     COFFER_E_IO);
}

static void three_hundred_thousand_tensors_open_at_once(void **state)
{
    (void)state;
    enum { COUNT = 300000, LINE = 80 };
    char *header = malloc((size_t)COUNT * LINE);
    size_t at = 1;
    assert_non_null(header);
    header[0] = '{';
    for (unsigned i = 0; i < COUNT; i++)
        at += (size_t)snprintf(header + at, LINE,
                               "%s\"n%07u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                               i ? "," : "", (i * 7919u) % COUNT, i, i + 1);
    snprintf(header + at, LINE, "}");
    accepted(header, COUNT);
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_with_its_tensors_sorted),
        cmocka_unit_test(every_type_of_whole_bytes_is_read),
        cmocka_unit_test(types_of_less_than_a_byte_are_refused_clearly),
        cmocka_unit_test(empty_files_and_empty_tensors_are_legal),
        cmocka_unit_test(the_length_of_the_header_is_bounded),
        cmocka_unit_test(a_header_must_be_json_of_the_right_shape),
        cmocka_unit_test(a_header_nested_too_deep_is_refused),
        cmocka_unit_test(a_duplicate_name_is_refused_with_its_offset),
        cmocka_unit_test(sizes_that_do_not_fit_the_type_are_refused),
        cmocka_unit_test(ranges_cover_the_data_exactly),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_folder_of_shards_is_one_set),
        cmocka_unit_test(a_false_index_is_refused),
        cmocka_unit_test(a_shard_outside_the_folder_is_refused),
        cmocka_unit_test(a_tensor_in_two_shards_is_refused_with_both_names),
        cmocka_unit_test(a_folder_without_a_model_is_refused),
        cmocka_unit_test(three_hundred_thousand_tensors_open_at_once),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
