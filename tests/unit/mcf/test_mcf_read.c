/* Reading models over every kind of source: lookups, ranges, rows, verified reads. */
#include "base/bytes.h"
#include "support/model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS COFFER_TEST_DATA "/vectors/mcf/"

static coffer_status read_from_memory(void *context, void *out, uint64_t offset, size_t len,
                                      coffer_error *err)
{
    (void)err;
    memcpy(out, (const uint8_t *)context + offset, len);
    return COFFER_OK;
}

/* By mapping, by pread, past the page cache, from memory, from a source of the caller's own. */
enum { KINDS = 5 };

static coffer_source *open_as(int kind, const char *path, uint8_t *bytes, size_t len)
{
    static const coffer_access accesses[] = { COFFER_ACCESS_MAP, COFFER_ACCESS_READ, COFFER_ACCESS_DIRECT };
    const coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_from_memory };
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    if (kind == 3)
        return model_source_of(bytes, len);
    if (kind == 4) {
        assert_int_equal(coffer_source_new(&src, &ops, bytes, len, "own", NULL), COFFER_OK);
        return src;
    }
    opts.access = accesses[kind];
    assert_int_equal(coffer_source_open(&src, path, &opts, NULL), COFFER_OK);
    return src;
}

static void every_quantized_vector_decodes_bit_for_bit_over_every_source(void **state)
{
    size_t len = 0;
    uint8_t *bytes = temp_read(VECTORS "quantised.mcf", &len);
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        coffer_source *src = open_as(kind, VECTORS "quantised.mcf", bytes, len);
        coffer_mcf *model = model_open(src);
        for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            char path[512];
            size_t expected_len = 0;
            snprintf(path, sizeof path, VECTORS "quant-expected/%.*s.f32", (int)tensor.name_len, tensor.name);
            uint8_t *expected = temp_read(path, &expected_len);
            assert_non_null(expected);
            assert_int_equal(expected_len, tensor.elements * sizeof(float));
            coffer__swap_numbers(expected, sizeof(float), expected_len / sizeof(float));
            float *values = malloc(expected_len);
            uint64_t rows = coffer_mcf_row_count(&tensor), row = coffer_mcf_row_elements(&tensor);
            assert_int_equal(coffer_mcf_read_rows_f32(values, model, i, 0, rows, NULL), COFFER_OK);
            assert_memory_equal(values, expected, expected_len);
            /* The last row alone is the same. */
            assert_int_equal(coffer_mcf_read_rows_f32(values, model, i, rows - 1, 1, NULL), COFFER_OK);
            assert_memory_equal(values, expected + (rows - 1) * row * sizeof(float), row * sizeof(float));
            free(values);
            free(expected);
        }
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    free(bytes);
}

static void rows_of_plain_tensors_are_their_bytes_or_their_values(void **state)
{
    uint8_t bytes[4 * 33 * 10];
    float row[33];
    coffer_source *src = model_source(VECTORS "plain.mcf");
    coffer_mcf *model = model_open(src);
    size_t tensor = coffer_mcf_find_tensor(model, "model.embed_tokens.weight", 25);
    (void)state;
    assert_int_equal(coffer_mcf_read_rows(bytes, model, tensor, 0, 10, NULL), COFFER_OK);
    assert_memory_equal(bytes, coffer_mcf_view(model, tensor), sizeof bytes);
    assert_int_equal(coffer_mcf_read_rows_f32(row, model, tensor, 7, 1, NULL), COFFER_OK);
    coffer__swap_numbers(row, sizeof row[0], sizeof row / sizeof row[0]);
    assert_memory_equal(row, bytes + 7 * sizeof row, sizeof row);
    assert_int_equal(coffer_mcf_read_rows(bytes, model, tensor, 5, 6, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_read_rows_f32(row, model, tensor, UINT64_MAX, 2, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_read(bytes, model, tensor, UINT64_MAX, 2, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_read(bytes, model, 99, 0, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void scalars_and_empty_tensors_are_single_rows(void **state)
{
    float value[1] = { -1 };
    coffer_source *src = model_source(VECTORS "plain.mcf");
    coffer_mcf *model = model_open(src);
    size_t scalar = coffer_mcf_find_tensor(model, "scalar", 6),
           empty = coffer_mcf_find_tensor(model, "empty", 5);
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, scalar);
    (void)state;
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.elements, 1);
    assert_int_equal(coffer_mcf_row_count(&tensor), 1);
    assert_int_equal(coffer_mcf_read_rows_f32(value, model, scalar, 0, 1, NULL), COFFER_OK);
    assert_true(value[0] != -1);
    tensor = *coffer_mcf_tensor_at(model, empty);
    assert_int_equal(tensor.elements, 0);
    assert_int_equal(coffer_mcf_row_count(&tensor), 0);
    assert_int_equal(coffer_mcf_read_rows_f32(value, model, empty, 0, 0, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void a_lookup_finds_every_name_even_if_the_claimed_order_is_false(void **state)
{
    static const char *const files[] = { VECTORS "index-not-sorted.mcf", VECTORS "plain.mcf" };
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        coffer_source *src = model_source(files[f]);
        coffer_mcf *model = model_open(src);
        for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            assert_int_equal(coffer_mcf_find_tensor(model, tensor.name, tensor.name_len), i);
        }
        assert_true(coffer_mcf_find_tensor(model, "", 0) == SIZE_MAX);
        assert_true(coffer_mcf_find_tensor(model, "zzz", 3) == SIZE_MAX);
        assert_true(coffer_mcf_find_tensor(model, "i", 1) == SIZE_MAX);
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
}

static void *find_all(void *context)
{
    const coffer_mcf *model = context;
    const coffer_mcf_model_info *info = NULL;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            if (coffer_mcf_find_tensor(model, tensor.name, tensor.name_len) != i)
                return context;
        }
        if (coffer_mcf_get_model_info(&info, model, NULL) != COFFER_OK)
            return context;
    }
    return NULL;
}

static void threads_share_a_handle(void **state)
{
    coffer_source *src = model_source(VECTORS "index-not-sorted.mcf");
    coffer_mcf *model = model_open(src);
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_all, model), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = model;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void everything_that_is_missing_is_one_error(void **state)
{
    const uint32_t needs[] = { COFFER_MCF_CONFIG, COFFER_MCF_VOCAB, COFFER_MCF_QUANT_INFO, 0x9999 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = model_source(VECTORS "plain.mcf");
    coffer_mcf *model = model_open(src);
    (void)state;
    assert_int_equal(coffer_mcf_require(model, needs, 1, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_require(model, needs, 4, &err), COFFER_E_MISSING);
    assert_string_equal(err.text, "section missing: vocab.json, QuantInfo, section 0x9999");
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void many_tensors_are_loaded_at_once(void **state)
{
    size_t len = 0;
    uint8_t *bytes = temp_read(VECTORS "plain.mcf", &len);
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        coffer_source *src = open_as(kind, VECTORS "plain.mcf", bytes, len);
        coffer_mcf *model = model_open(src);
        size_t count = coffer_mcf_tensor_count(model), tensors[32];
        void *outs[32];
        for (size_t i = 0; i < count; i++) {
            tensors[i] = i;
            outs[i] = malloc(coffer_mcf_tensor_at(model, i)->size + 1);
        }
        assert_int_equal(coffer_mcf_read_many(outs, model, tensors, count,
                                              &(coffer_mcf_work_opts){
                                                  .struct_size = sizeof(coffer_mcf_work_opts), .threads = 3 },
                                              NULL),
                         COFFER_OK);
        for (size_t i = 0; i < count; i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            assert_memory_equal(outs[i], bytes + tensor.offset, tensor.size);
            free(outs[i]);
        }
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    free(bytes);
}

/* ---- Verified reads ---- */

#define BIG ((size_t)3 << 20)

static uint8_t *two_big_tensors(size_t *len)
{
    const uint64_t dims[1] = { BIG };
    const char *path = temp_path(temp_folder, "big.mcf");
    uint8_t *payload = malloc(BIG);
    coffer_mcf_writer *writer = NULL;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    memset(payload, 1, BIG);
    assert_int_equal(model_add(writer, "one", COFFER_DTYPE_U8, 1, dims, payload, NULL), COFFER_OK);
    memset(payload, 2, BIG);
    assert_int_equal(model_add(writer, "two", COFFER_DTYPE_U8, 1, dims, payload, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    free(payload);
    return temp_read(path, len);
}

static void a_verified_read_checks_the_chunks_it_touches_and_no_others(void **state)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t byte = 0;
    size_t len = 0;
    uint8_t *bytes = two_big_tensors(&len);
    coffer_source *src = model_source_of(bytes, len);
    coffer_mcf *model = NULL;
    (void)state;
    opts.verify = true;
    assert_int_equal(coffer_mcf_open(&model, src, &opts, &err), COFFER_OK);
    size_t two = coffer_mcf_find_tensor(model, "two", 3);
    bytes[coffer_mcf_tensor_at(model, two)->offset + 2 * 1048576 + 77] ^= 1; /* its third chunk */
    assert_int_equal(coffer_mcf_read(&byte, model, two, 0, 1, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_read(&byte, model, two, 2 * 1048576 - 1, 1, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_read(&byte, model, two, 2 * 1048576, 1, &err), COFFER_E_BAD_CHECKSUM);
    assert_non_null(strstr(err.text, "CRC-32"));
    assert_null(coffer_mcf_view(model, two));
    assert_non_null(coffer_mcf_view(model, coffer_mcf_find_tensor(model, "one", 3)));
    coffer_mcf_close(model);

    coffer_report *report = model_check(src, true);
    assert_true(model_has(report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR));
    assert_non_null(strstr(model_text(report, COFFER_E_BAD_CHECKSUM), "\"two\""));
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
}

static void a_damaged_table_of_sums_is_found_out(void **state)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len = 0;
    uint8_t *bytes = two_big_tensors(&len);
    coffer_source *src = model_source_of(bytes, len);
    coffer_mcf *model = model_open(src);
    (void)state;
    const coffer_mcf_section *sums = coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS);
    assert_non_null(sums);
    bytes[sums->offset + 64] ^= 1;
    coffer_mcf_close(model);
    opts.verify = true;
    assert_int_equal(coffer_mcf_open(&model, src, &opts, &err), COFFER_E_BAD_CHECKSUM);
    coffer_report *report = model_check(src, false);
    assert_true(model_has(report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR));
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
}

/* ---- The content hash ---- */

static void the_content_hash_does_not_depend_on_the_layout(void **state)
{
    const char *narrow = temp_path(temp_folder, "narrow.mcf"), *wide = temp_path(temp_folder, "wide.mcf");
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    uint8_t hashes[3][32];
    const char *paths[] = { narrow, wide, VECTORS "plain.mcf" };
    opts.overwrite = true;
    (void)state;
    opts.align = 4096;
    opts.no_dedup = opts.no_checksums = true;
    assert_int_equal(model_create(narrow, NULL, NULL), COFFER_OK);
    assert_int_equal(model_create(wide, &opts, NULL), COFFER_OK);
    for (int i = 0; i < 3; i++) {
        coffer_source *src = model_source(paths[i]);
        coffer_mcf *model = model_open(src);
        assert_int_equal(coffer_mcf_content_hash(hashes[i], model,
                                                 &(coffer_mcf_work_opts){ .struct_size =
                                                                              sizeof(coffer_mcf_work_opts),
                                                                          .threads = (uint32_t)i },
                                                 NULL),
                         COFFER_OK);
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    assert_memory_equal(hashes[0], hashes[1], 32);
    assert_memory_not_equal(hashes[0], hashes[2], 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_quantized_vector_decodes_bit_for_bit_over_every_source),
        cmocka_unit_test(rows_of_plain_tensors_are_their_bytes_or_their_values),
        cmocka_unit_test(scalars_and_empty_tensors_are_single_rows),
        cmocka_unit_test(a_lookup_finds_every_name_even_if_the_claimed_order_is_false),
        cmocka_unit_test(threads_share_a_handle),
        cmocka_unit_test(everything_that_is_missing_is_one_error),
        cmocka_unit_test(many_tensors_are_loaded_at_once),
        cmocka_unit_test(a_verified_read_checks_the_chunks_it_touches_and_no_others),
        cmocka_unit_test(a_damaged_table_of_sums_is_found_out),
        cmocka_unit_test(the_content_hash_does_not_depend_on_the_layout),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
