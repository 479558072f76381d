/* New models: what is written reads back, in the layout that the format asks of writers. */
#include "base/bytes.h"
#include "support/model.h"

#include <stdlib.h>
#include <string.h>

static const char *path_of(const char *name)
{
    return temp_path(temp_folder, name);
}

static coffer_mcf_writer *begin(const char *path, const coffer_mcf_writer_opts *opts)
{
    coffer_mcf_writer *writer = NULL;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, opts, NULL), COFFER_OK);
    return writer;
}

static void what_was_written_reads_back(void **state)
{
    const char *path = path_of("small.mcf");
    const coffer_mcf_model_info *info = NULL;
    float row[3] = { 0 };
    (void)state;
    assert_int_equal(model_create(path, NULL, NULL), COFFER_OK);
    model_assert_clean(path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_tensor_count(model), 3);
    assert_int_equal(coffer_mcf_find_tensor(model, "a", 1), 0);
    assert_int_equal(coffer_mcf_find_tensor(model, "c", 1), 2);
    assert_true(coffer_mcf_find_tensor(model, "d", 1) == SIZE_MAX);
    assert_int_equal(coffer_mcf_read_rows_f32(row, model, 0, 1, 1, NULL), COFFER_OK);
    assert_true(row[0] == 3 && row[1] == 4 && row[2] == 5);
    assert_int_equal(coffer_mcf_get_model_info(&info, model, NULL), COFFER_OK);
    assert_string_equal(info->model_name, "small");
    assert_null(info->base_model);
    assert_int_equal(info->kv_count, 2);
    assert_string_equal(info->kvs[0].key, "a.number"); /* sorted */
    assert_int_equal(info->kvs[0].u32, 7);
    assert_string_equal(info->kvs[1].text, "x");
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void equal_payloads_are_written_once(void **state)
{
    const char *once = path_of("once.mcf"), *twice = path_of("twice.mcf");
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    opts.overwrite = true;
    (void)state;
    opts.no_dedup = true;
    assert_int_equal(model_create(once, NULL, NULL), COFFER_OK);
    assert_int_equal(model_create(twice, &opts, NULL), COFFER_OK);
    coffer_source *a = model_source(once), *b = model_source(twice);
    coffer_mcf *one = model_open(a), *two = model_open(b);
    assert_int_equal(coffer_mcf_tensor_at(one, 0)->offset, coffer_mcf_tensor_at(one, 2)->offset);
    assert_int_not_equal(coffer_mcf_tensor_at(two, 0)->offset, coffer_mcf_tensor_at(two, 2)->offset);
    assert_true(coffer_source_size(a) < coffer_source_size(b));
    coffer_mcf_close(one);
    coffer_mcf_close(two);
    coffer_source_close(a);
    coffer_source_close(b);
}

/* All alike where samples are taken: which are the same shows only when they are looked at whole. */
static void payloads_that_differ_in_one_byte_are_distinguished(void **state)
{
    enum { SIZE = 65536 };
    static const struct {
        const char *name;
        uint8_t byte;
        size_t same_as;
    } tensors[] = { { "a", 1, 0 }, { "b", 2, 1 }, { "c", 3, 2 }, { "d", 2, 1 },
                    { "e", 1, 0 }, { "f", 3, 2 }, { "g", 4, 6 }, { "h", 4, 6 } };
    const char *path = path_of("alike.mcf");
    const uint64_t dims[1] = { SIZE };
    uint8_t *payload = calloc(1, SIZE), *read = malloc(SIZE);
    coffer_mcf_writer *writer = begin(path, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        payload[10000] = tensors[i].byte;
        assert_int_equal(model_add(writer, tensors[i].name, COFFER_DTYPE_U8, 1, dims, payload, NULL),
                         COFFER_OK);
    }
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    model_assert_clean(path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        assert_int_equal(coffer_mcf_tensor_at(model, i)->offset,
                         coffer_mcf_tensor_at(model, tensors[i].same_as)->offset);
        assert_int_equal(coffer_mcf_read(read, model, i, 0, SIZE, NULL), COFFER_OK);
        assert_int_equal(read[10000], tensors[i].byte);
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(payload);
    free(read);
}

static void equal_calls_give_equal_bytes(void **state)
{
    const char *first = path_of("first.mcf"), *second = path_of("second.mcf");
    size_t len = 0;
    (void)state;
    assert_int_equal(model_create(first, NULL, NULL), COFFER_OK);
    assert_int_equal(model_create(second, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(first, &len);
    assert_true(temp_holds(second, bytes, len));
    free(bytes);
}

static void the_layout_is_what_the_format_asks_of_writers(void **state)
{
    const char *path = path_of("layout.mcf");
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    size_t len = 0;
    opts.overwrite = true;
    (void)state;
    opts.align = 4096;
    assert_int_equal(model_create(path, &opts, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path, &len);
    uint64_t directory = coffer__load_u64(bytes + 16);
    uint32_t count = coffer__load_u32(bytes + 12);
    assert_int_equal(directory % 8, 0);
    assert_int_equal(directory + (uint64_t)count * 24, len); /* last */
    assert_int_equal(coffer__load_u64(bytes + 24), len);
    assert_int_equal(coffer__load_u64(bytes + 32) & 1, 1);
    for (uint32_t i = 1; i < count; i++)
        assert_true(coffer__load_u32(bytes + directory + (i - 1) * 24) <
                    coffer__load_u32(bytes + directory + i * 24));
    coffer_source *src = model_source_of(bytes, len);
    coffer_mcf *model = model_open(src);
    for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++)
        assert_int_equal(coffer_mcf_tensor_at(model, i)->offset % 4096, 0);
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(bytes);
}

static void a_reserved_index_is_stored_before_the_payloads(void **state)
{
    const uint64_t dims[1] = { 4 };
    const char *path = path_of("front.mcf");
    coffer_mcf_writer *writer = begin(path, NULL);
    (void)state;
    assert_int_equal(coffer_mcf_writer_reserve_index(writer, 1, 1, 1, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "x", COFFER_DTYPE_U8, 1, dims, "abcd", NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    model_assert_clean(path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_section *index = coffer_mcf_find_section(model, COFFER_MCF_TENSOR_INDEX);
    const coffer_mcf_section *data = coffer_mcf_find_section(model, COFFER_MCF_TENSOR_DATA);
    assert_non_null(index);
    assert_non_null(data);
    assert_true(index->offset < data->offset);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void mistakes_of_the_caller_are_refused(void **state)
{
    const uint64_t dims[2] = { 2, 2 };
    coffer_mcf_new_tensor tensor = { sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_U8, "x", 1, 2, dims, NULL };
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_writer *writer;
    opts.overwrite = true;
    (void)state;
    opts.align = 96;
    assert_int_equal(coffer_mcf_writer_create(&writer, path_of("wrong.mcf"), &opts, &err),
                     COFFER_E_INVALID_ARGUMENT);
    writer = begin(path_of("wrong.mcf"), NULL);
    assert_int_equal(coffer_mcf_writer_write(writer, "a", 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_TENSOR_DATA, 1, "", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{}", 2, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{}", 2, &err),
                     COFFER_E_DUPLICATE);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_writer_write(writer, "abcde", 5, &err), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mcf_writer_write(writer, "abc", 3, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, &err), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mcf_writer_write(writer, "d", 1, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, &err), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), COFFER_E_DUPLICATE);
    tensor.name = "\xff";
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), COFFER_E_BAD_TEXT);
    tensor.name = "y";
    tensor.dtype = COFFER_DTYPE_C64;
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), COFFER_E_BAD_VALUE);
    coffer_mcf_writer_discard(writer);
    assert_false(temp_exists(path_of("wrong.mcf")));
}

/* 40 MiB: sums of its first chunks would have been counted before the scales come. */
static void scales_may_follow_their_codes_and_the_sums_are_right(void **state)
{
    const char *path = path_of("late.mcf");
    uint64_t dims[2] = { 40, (uint64_t)1 << 20 }, size, codes_at;
    coffer_mcf_new_tensor tensor = { sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_Q8, "w", 1, 2, dims, NULL };
    uint8_t *codes = calloc(1, (size_t)1 << 20), scales[64];
    coffer_mcf_writer *writer = begin(path, NULL);
    float row[32];
    (void)state;
    assert_non_null(codes);
    codes[0] = 5;
    for (size_t i = 0; i < sizeof scales; i += 2)
        coffer__store_u16(scales + i, 0x3C00);
    assert_int_equal(coffer_mcf_payload_size(&size, COFFER_DTYPE_Q8, 2, dims, false, NULL), COFFER_OK);
    codes_at = size - (dims[0] << 20);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_skip(writer, codes_at, NULL), COFFER_OK);
    for (uint64_t r = 0; r < dims[0]; r++) {
        assert_int_equal(coffer_mcf_writer_write(writer, codes, (size_t)1 << 20, NULL), COFFER_OK);
        assert_int_equal(coffer_mcf_writer_write_at(writer, r * 65536, scales, sizeof scales, NULL),
                         COFFER_OK);
    }
    assert_int_equal(coffer_mcf_writer_write_at(writer, size - 1, scales, 2, NULL), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_mcf_writer_set_clip(writer, -5.0f, 5.0f, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    model_assert_clean(path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    float *rows = malloc(((size_t)1 << 20) * sizeof *rows);
    assert_non_null(rows);
    assert_int_equal(coffer_mcf_read_rows_f32(rows, model, 0, 39, 1, NULL), COFFER_OK);
    memcpy(row, rows, sizeof row);
    assert_true(row[0] == 5.0f && row[1] == 0.0f);
    assert_true(coffer_mcf_quant_at(model, 0)->max_clip == 5.0f);
    free(rows);
    free(codes);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void an_existing_file_is_replaced_only_when_asked(void **state)
{
    const char *path = path_of("exists.mcf");
    coffer_mcf_writer *writer = NULL;
    (void)state;
    temp_write(path, "old", 3);
    coffer_mcf_writer_opts opts;
    coffer_mcf_writer_opts_init(&opts, sizeof opts);
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &opts, NULL), COFFER_E_EXISTS);
    assert_null(writer);
    opts.overwrite = true;
    assert_int_equal(model_create(path, &opts, NULL), COFFER_OK);
    model_assert_clean(path);
}

/* A program built against an older header passes shorter structs. */
static void shorter_structs_of_older_programs_are_accepted(void **state)
{
    struct {
        uint32_t struct_size;
        coffer_dtype dtype;
        const char *name;
        size_t name_len;
        uint32_t rank;
        const uint64_t *dims;
    } tensor = { sizeof tensor, COFFER_DTYPE_U8, "x", 1, 1, (const uint64_t[]){ 4 } };
    struct {
        uint32_t struct_size;
        coffer_mcf_kv_type type;
        const char *key;
        uint32_t u32;
    } kvs[2] = { { sizeof kvs[0], COFFER_MCF_KV_U32, "b", 2 }, { sizeof kvs[0], COFFER_MCF_KV_U32, "a", 1 } };
    const char *path = path_of("older.mcf");
    coffer_mcf_writer *writer = begin(path, NULL);
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    const coffer_mcf_model_info *found = NULL;
    coffer_mcf *model = NULL;
    (void)state;
    info.kvs = (const coffer_mcf_kv *)(const void *)kvs;
    info.kv_count = 2;
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(
        coffer_mcf_writer_begin_tensor(writer, (const coffer_mcf_new_tensor *)(const void *)&tensor, NULL),
        COFFER_OK);
    assert_int_equal(coffer_mcf_writer_write(writer, "abcd", 4, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_open_path(&model, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_get_model_info(&found, model, NULL), COFFER_OK);
    assert_int_equal(found->kv_count, 2);
    assert_string_equal(coffer_mcf_model_info_kv_at(found, 0)->key, "a");
    assert_int_equal(coffer_mcf_model_info_kv_at(found, 1)->u32, 2);
    assert_null(coffer_mcf_model_info_kv_at(found, 2));
    assert_string_equal(coffer_mcf_tensor_at(model, 0)->name, "x");
    assert_null(coffer_mcf_tensor_at(model, 1));
    coffer_mcf_close(model);
}

static void a_model_of_nothing_is_refused(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_mcf_writer_commit(begin(path_of("nothing.mcf"), NULL), &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_false(temp_exists(path_of("nothing.mcf")));
}

static void quantized_tensors_get_their_records(void **state)
{
    const uint64_t dims[2] = { 3, 40 };
    uint8_t payload[512] = { 0 };
    const char *path = path_of("quantised.mcf");
    coffer_mcf_writer *writer = begin(path, NULL);
    (void)state;
    assert_int_equal(model_add(writer, "z", COFFER_DTYPE_K4, 2, dims, payload, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "a", COFFER_DTYPE_U8, 2, dims, payload, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    model_assert_clean(path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_quant *quant = coffer_mcf_quant_at(model, 1);
    assert_null(coffer_mcf_quant_at(model, 0));
    assert_null(coffer_mcf_quant_at(model, 2));
    assert_non_null(quant);
    assert_int_equal(quant->method, COFFER_DTYPE_K4);
    assert_int_equal(quant->block_size, 32);
    assert_int_equal(quant->super_size, 256);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

/* Larger than what is copied and summed at a time, from a file and from memory, with chunks that straddle
 * tensors, and a duplicate in the middle. */
static void large_payloads_from_any_source_have_right_sums(void **state)
{
    const size_t size = ((size_t)40 << 20) + 12345;
    const uint64_t dims[1] = { size };
    const char *raw = path_of("raw"), *path = path_of("large.mcf");
    uint8_t *bytes = malloc(size);
    coffer_mcf_writer *writer = begin(path, NULL);
    (void)state;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    temp_write(raw, bytes, size);
    coffer_source *file = model_source(raw), *memory = model_source_of(bytes, size);
    coffer_source *sources[] = { file, memory, file };
    const char *names[] = { "file", "memory", "again" };
    for (int i = 0; i < 3; i++) {
        coffer_mcf_new_tensor tensor = {
            sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_U8, names[i], strlen(names[i]), 1, dims, NULL
        };
        if (i == 2)
            bytes[0] ^= 1;
        assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
        assert_int_equal(coffer_mcf_writer_write_from(writer, sources[i], 0, size, NULL), COFFER_OK);
        assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    }
    assert_int_equal(model_add(writer, "other", COFFER_DTYPE_U8, 1, dims, bytes, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    coffer_source_close(file);
    coffer_source_close(memory);
    coffer_source *src = model_source(path);
    assert_true(coffer_source_size(src) < 2 * size + 65536);
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_mcf *model = NULL;
    opts.verify = true;
    assert_int_equal(coffer_mcf_open(&model, src, &opts, NULL), COFFER_OK);
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *view = coffer_mcf_view(model, i);
        assert_non_null(view); /* verified */
        assert_memory_equal(view + 1, bytes + 1, size - 1);
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(equal_payloads_are_written_once),
        cmocka_unit_test(payloads_that_differ_in_one_byte_are_distinguished),
        cmocka_unit_test(equal_calls_give_equal_bytes),
        cmocka_unit_test(the_layout_is_what_the_format_asks_of_writers),
        cmocka_unit_test(a_reserved_index_is_stored_before_the_payloads),
        cmocka_unit_test(mistakes_of_the_caller_are_refused),
        cmocka_unit_test(an_existing_file_is_replaced_only_when_asked),
        cmocka_unit_test(shorter_structs_of_older_programs_are_accepted),
        cmocka_unit_test(a_model_of_nothing_is_refused),
        cmocka_unit_test(scales_may_follow_their_codes_and_the_sums_are_right),
        cmocka_unit_test(quantized_tensors_get_their_records),
        cmocka_unit_test(large_payloads_from_any_source_have_right_sums),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
