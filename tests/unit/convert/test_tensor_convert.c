/* Tensors from one kind of file to another and back: what comes back is what went in. */
#include "coffer/coffer.h"
#include "support/archive.h"
#include "support/safetensors.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int fresh_folder(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    return 0;
}

static const char *in_folder(const char *name)
{
    return temp_path(temp_folder, name);
}

static coffer_status convert(const char *from, const char *to, const coffer_setting *settings, size_t count,
                             coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    opts.settings = settings;
    opts.setting_count = count;
    assert_int_equal(coffer_source_open(&src, in_folder(from), NULL, NULL), COFFER_OK);
    coffer_status status = coffer_convert(src, in_folder(to), &opts, err);
    coffer_source_close(src);
    return status;
}

static void must_convert(const char *from, const char *to, const coffer_setting *settings, size_t count)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (convert(from, to, settings, count, &err))
        fail_msg("%s to %s: %s", from, to, err.text);
}

static void convert_refused(coffer_status expected, const char *from, const char *to, coffer_setting setting,
                            const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = convert(from, to, &setting, setting.name != NULL, &err);
    if (status != expected || !strstr(err.text, part))
        fail_msg("%s, \"%s\" instead of %s, \"%s\"", coffer_status_name(status), err.text,
                 coffer_status_name(expected), part);
}

static coffer_tensors *open_set(const char *name)
{
    coffer_tensors *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_tensors_open_path(&set, in_folder(name), NULL, &err))
        fail_msg("%s: %s", name, err.text);
    return set;
}

static void assert_same_tensors(const coffer_tensors *a, const coffer_tensors *b)
{
    assert_int_equal(coffer_tensors_count(a), coffer_tensors_count(b));
    for (size_t i = 0; i < coffer_tensors_count(a); i++) {
        const coffer_tensor *x = coffer_tensors_at(a, i), *y = coffer_tensors_at(b, i);
        uint8_t *bytes = malloc(2 * (size_t)x->size + 1);
        assert_non_null(bytes);
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->type_name, y->type_name);
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->rank, y->rank);
        for (uint32_t j = 0; j < x->rank; j++)
            assert_int_equal(x->dims[j], y->dims[j]);
        assert_int_equal(x->size, y->size);
        assert_int_equal(coffer_tensors_read(bytes, a, i, 0, (size_t)x->size, NULL), COFFER_OK);
        assert_int_equal(coffer_tensors_read(bytes + x->size, b, i, 0, (size_t)x->size, NULL), COFFER_OK);
        assert_memory_equal(bytes, bytes + x->size, (size_t)x->size);
        free(bytes);
    }
}

static void assert_same_metadata(const coffer_tensors *a, const coffer_tensors *b)
{
    coffer_node *x = NULL, *y = NULL;
    assert_int_equal(coffer_node_new(&x, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&y, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_metadata(x, a, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_metadata(y, b, NULL), COFFER_OK);
    assert_int_equal(coffer_node_count(x), coffer_node_count(y));
    for (const coffer_node *at = coffer_node_first(x); at; at = coffer_node_next(at)) {
        const coffer_node *other = coffer_node_find(y, coffer_node_get_name(at));
        size_t len, other_len;
        assert_non_null(other);
        const char *text = coffer_node_get_text(at, &len),
                   *other_text = coffer_node_get_text(other, &other_len);
        assert_int_equal(len, other_len);
        assert_memory_equal(text, other_text, len);
    }
    coffer_node_free(x);
    coffer_node_free(y);
}

static void round_trip(const char *header, size_t data_len)
{
    safetensors_write(in_folder("in.safetensors"), header, data_len);
    must_convert("in.safetensors", "m.mcf", NULL, 0);
    must_convert("m.mcf", "out.safetensors", NULL, 0);
    coffer_tensors *in = open_set("in.safetensors"), *model = open_set("m.mcf"),
                   *out = open_set("out.safetensors");
    assert_same_tensors(in, out);
    /* The model shows the same types, stored or stood in for. */
    assert_same_tensors(in, model);
    assert_same_metadata(in, out);
    coffer_tensors_close(in);
    coffer_tensors_close(model);
    coffer_tensors_close(out);
}

static const char all_types[] =
    "{\"__metadata__\":{\"note\":\"\\u00e9\\u0000x\",\"format\":\"np\",\"\":\"empty\"},"
    "\"bool\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]},"
    "\"u8\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]},"
    "\"i8\":{\"dtype\":\"I8\",\"shape\":[1,2],\"data_offsets\":[4,6]},"
    "\"e5m2\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[6,8]},"
    "\"e4m3\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,1],\"data_offsets\":[8,10]},"
    "\"e8m0\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[10,12]},"
    "\"fnuz\":{\"dtype\":\"F8_E4M3FNUZ\",\"shape\":[4],\"data_offsets\":[12,16]},"
    "\"i16\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[16,18]},"
    "\"u16\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[18,20]},"
    "\"f16\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[20,22]},"
    "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[22,24]},"
    "\"i32\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[24,28]},"
    "\"u32\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[28,32]},"
    "\"f32\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]},"
    "\"c64\":{\"dtype\":\"C64\",\"shape\":[2,1],\"data_offsets\":[40,56]},"
    "\"c64.scalar\":{\"dtype\":\"C64\",\"shape\":[],\"data_offsets\":[56,64]},"
    "\"f64\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[64,72]},"
    "\"i64\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[72,80]},"
    "\"u64\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[80,88]},"
    "\"empty\":{\"dtype\":\"C64\",\"shape\":[0,3],\"data_offsets\":[88,88]},"
    "\"\\u732b \\\"x\\\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[88,89]}}";

static void every_type_and_all_metadata_come_back(void **state)
{
    (void)state;
    round_trip(all_types, 89);
    round_trip("{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
               "\"data_offsets\":[0,1]}}",
               1);
    round_trip("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    round_trip("{\"__metadata__\":{\"format\":\"pt\",\"b\":\"\"},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
               "\"data_offsets\":[0,1]}}",
               1);
}

static void every_tensor_of_a_new_file_is_aligned_to_its_elements(void **state)
{
    (void)state;
    static const coffer_setting shards = { "shard-size", "20" };
    safetensors_write(in_folder("in.safetensors"), all_types, 89);
    must_convert("in.safetensors", "out.safetensors", &shards, 1);
    coffer_tensors *set = open_set("out.safetensors.index.json");
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        size_t size = coffer_dtype_size(tensor->dtype);
        assert_int_equal(tensor->offset % (size > 8 ? 8 : size ? size : 1), 0);
    }
    coffer_tensors_close(set);
}

static void shards_hold_no_more_than_asked_for_and_are_found_by_the_index(void **state)
{
    (void)state;
    static const coffer_setting small = { "shard-size", "20" }, large = { "shard-size", "1MiB" };
    safetensors_write(in_folder("in.safetensors"), all_types, 89);
    must_convert("in.safetensors", "m.mcf", NULL, 0);
    must_convert("m.mcf", "out.safetensors", &small, 1);
    assert_false(temp_exists(in_folder("out.safetensors")));
    assert_true(temp_exists(in_folder("out-00001-of-00005.safetensors")));
    coffer_tensors *in = open_set("in.safetensors"), *out = open_set("out.safetensors.index.json");
    assert_same_tensors(in, out);
    assert_same_metadata(in, out);
    coffer_tensors_close(out);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        uint64_t bytes = 0;
        snprintf(name, sizeof name, "out-0000%d-of-00005.safetensors", i);
        out = open_set(name);
        for (size_t j = 0; j < coffer_tensors_count(out); j++)
            bytes += coffer_tensors_at(out, j)->size;
        assert_true(bytes <= 20);
        coffer_tensors_close(out);
    }
    /* A model that fits into one file does not need an index. */
    must_convert("m.mcf", "one.safetensors", &large, 1);
    assert_false(temp_exists(in_folder("one.safetensors.index.json")));
    out = open_set("one.safetensors");
    assert_same_tensors(in, out);
    coffer_tensors_close(out);
    coffer_tensors_close(in);
}

static void shards_become_a_model_and_a_single_file(void **state)
{
    (void)state;
    static const coffer_setting shards = { "shard-size", "30" };
    safetensors_write(in_folder("in.safetensors"), all_types, 89);
    must_convert("in.safetensors", "s.safetensors", &shards, 1);
    must_convert("s.safetensors.index.json", "m.mcf", NULL, 0);
    must_convert("s.safetensors.index.json", "one.safetensors", NULL, 0);
    coffer_tensors *in = open_set("in.safetensors"), *model = open_set("m.mcf"),
                   *one = open_set("one.safetensors");
    assert_same_tensors(in, model);
    assert_same_tensors(in, one);
    assert_same_metadata(in, one);
    coffer_tensors_close(in);
    coffer_tensors_close(model);
    coffer_tensors_close(one);
}

static void settings_are_understood(void **state)
{
    (void)state;
    static const coffer_setting settings[] = { { "cast", "bf16" },   { "include", "f*" },
                                               { "include", "i16" }, { "exclude", "f64" },
                                               { "align", "4K" },    { "no-dedup", NULL },
                                               { "model-name", "x" } };
    safetensors_write(in_folder("in.safetensors"), all_types, 89);
    must_convert("in.safetensors", "m.mcf", settings, 7);
    coffer_tensors *set = open_set("m.mcf");
    coffer_node *root = NULL;
    assert_int_equal(coffer_tensors_count(set), 4);
    assert_int_equal(coffer_tensors_at(set, coffer_tensors_find(set, "f16"))->dtype, COFFER_DTYPE_BF16);
    assert_int_equal(coffer_tensors_at(set, coffer_tensors_find(set, "f32"))->dtype, COFFER_DTYPE_BF16);
    assert_int_equal(coffer_tensors_at(set, coffer_tensors_find(set, "i16"))->dtype, COFFER_DTYPE_I16);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(coffer_tensors_at(set, i)->offset % 4096, 0);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_metadata(root, set, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "model_name"), NULL), "x");
    coffer_node_free(root);
    coffer_tensors_close(set);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const bad_sizes[] = {
        "", "0", "-1", "5X", "GB", "99999999999999999999", "20000000TB"
    };
    safetensors_write(in_folder("in.safetensors"), all_types, 89);
    must_convert("in.safetensors", "m.mcf", NULL, 0);
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++)
        convert_refused(COFFER_E_INVALID_ARGUMENT, "m.mcf", "x.safetensors",
                        (coffer_setting){ "shard-size", bad_sizes[i] }, "expected a size");
    convert_refused(COFFER_E_INVALID_ARGUMENT, "m.mcf", "x.safetensors", (coffer_setting){ "cast", "f8" },
                    "f16, bf16");
    convert_refused(COFFER_E_INVALID_ARGUMENT, "m.mcf", "x.safetensors", (coffer_setting){ "include", "z*" },
                    "z*");
    convert_refused(COFFER_E_INVALID_ARGUMENT, "in.safetensors", "x.mcf", (coffer_setting){ "align", "5GB" },
                    "2 MiB");
    convert_refused(COFFER_E_INVALID_ARGUMENT, "in.safetensors", "x.mcf", (coffer_setting){ "align", "100" },
                    "100");
    convert_refused(COFFER_E_INVALID_ARGUMENT, "in.safetensors", "in.safetensors", (coffer_setting){ 0 },
                    "are the same file");
    temp_assert_only(temp_folder, "in.safetensors", "m.mcf", NULL);
}

static void arrays_of_numpy_become_a_model(void **state)
{
    (void)state;
    static const double values[] = { 1, 2, 3, 4 };
    coffer__buffer real =
        archive_npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", values, 32);
    coffer__buffer pairs =
        archive_npy("{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }", values, 32);
    archive_member members[] = { { .name = "real.npy", .data = real.data, .len = real.len, .deflate = true },
                                 { .name = "complex.npy", .data = pairs.data, .len = pairs.len } };
    coffer__buffer zip = archive_build(members, 2, false);
    double read[4];
    temp_write(in_folder("a.npz"), zip.data, zip.len);
    temp_write(in_folder("b.npy"), real.data, real.len);
    must_convert("a.npz", "a.mcf", NULL, 0);
    must_convert("b.npy", "b.mcf", NULL, 0);
    coffer_tensors *a = open_set("a.mcf"), *b = open_set("b.mcf");
    assert_int_equal(coffer_tensors_at(a, 0)->dtype, COFFER_DTYPE_C128);
    assert_int_equal(coffer_tensors_at(a, 0)->rank, 1);
    assert_string_equal(coffer_tensors_at(b, 0)->name, "b");
    assert_int_equal(coffer_tensors_read(read, a, 1, 0, sizeof read, NULL), COFFER_OK);
    assert_true(read[0] == 1 && read[1] == 3 && read[2] == 2 && read[3] == 4);
    /* safetensors has no complex numbers of this size. */
    convert_refused(COFFER_E_UNSUPPORTED, "a.mcf", "a.safetensors", (coffer_setting){ 0 }, "complex");
    coffer_tensors_close(a);
    coffer_tensors_close(b);
    coffer__buffer_free(&zip);
    coffer__buffer_free(&real);
    coffer__buffer_free(&pairs);
}

static void a_quantized_model_is_decoded_on_its_way_out(void **state)
{
    (void)state;
    temp_copy(COFFER_TEST_DATA "/compat/mcf/mantle-q8.mcf", in_folder("q.mcf"));
    must_convert("q.mcf", "q.safetensors", NULL, 0);
    coffer_tensors *model = open_set("q.mcf"), *out = open_set("q.safetensors");
    float a[256], b[256];
    for (size_t i = 0; i < coffer_tensors_count(model); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(model, i);
        if (!coffer_dtype_is_quantized(tensor->dtype) || tensor->dims[tensor->rank - 1] > 256)
            continue;
        uint64_t row = tensor->dims[tensor->rank - 1];
        assert_int_equal(coffer_tensors_at(out, i)->dtype, COFFER_DTYPE_F32);
        assert_int_equal(coffer_tensors_read_as(a, COFFER_DTYPE_F32, model, i, 0, row, NULL), COFFER_OK);
        assert_int_equal(coffer_tensors_read_as(b, COFFER_DTYPE_F32, out, i, 0, row, NULL), COFFER_OK);
        assert_memory_equal(a, b, (size_t)row * sizeof *a);
        assert_int_equal(coffer_tensors_read_as(a, COFFER_DTYPE_F32, model, i, 1, row - 1, NULL),
                         COFFER_E_INVALID_ARGUMENT);
    }
    coffer_tensors_close(model);
    coffer_tensors_close(out);
}

/* ---- Memory ---- */

/* A sparse file of 256 MiB, converted in a process of its own. */
static long peak_kilobytes(const char *from, const char *to, coffer_setting setting)
{
    struct rusage usage;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(convert(from, to, &setting, setting.name != NULL, NULL) == COFFER_OK ? 0 : 1);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return usage.ru_maxrss;
}

static void memory_does_not_grow_with_the_model(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[65536,1024],\"data_offsets\":[0,"
                                 "268435456]}}";
    static const coffer_setting bf16 = { "cast", "bf16" };
#ifdef __SANITIZE_ADDRESS__
    const long limit = 400L << 10; /* freed memory stays in the quarantine, 256 MiB of it */
#else
    const long limit = 128L << 10;
#endif
    safetensors_write(in_folder("in.safetensors"), header, 0);
    assert_int_equal(truncate(in_folder("in.safetensors"), (off_t)(8 + strlen(header)) + 268435456), 0);
    assert_true(peak_kilobytes("in.safetensors", "m.mcf", (coffer_setting){ 0 }) < limit);
    assert_true(peak_kilobytes("in.safetensors", "cast.mcf", bf16) < limit);
    assert_true(peak_kilobytes("m.mcf", "out.safetensors", (coffer_setting){ 0 }) < limit);
    assert_true(peak_kilobytes("m.mcf", "cast.safetensors", bf16) < limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_type_and_all_metadata_come_back, fresh_folder),
        cmocka_unit_test_setup(every_tensor_of_a_new_file_is_aligned_to_its_elements, fresh_folder),
        cmocka_unit_test_setup(shards_hold_no_more_than_asked_for_and_are_found_by_the_index, fresh_folder),
        cmocka_unit_test_setup(shards_become_a_model_and_a_single_file, fresh_folder),
        cmocka_unit_test_setup(settings_are_understood, fresh_folder),
        cmocka_unit_test_setup(settings_that_make_no_sense_are_refused, fresh_folder),
        cmocka_unit_test_setup(arrays_of_numpy_become_a_model, fresh_folder),
        cmocka_unit_test_setup(a_quantized_model_is_decoded_on_its_way_out, fresh_folder),
        cmocka_unit_test_setup(memory_does_not_grow_with_the_model, fresh_folder),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
