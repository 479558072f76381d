/* GGUF files: what other programs wrote, and what nobody should have written. */
#include "outside/models/gguf.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/options.h"
#include "coffer/tensors.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER COFFER_TEST_DATA "/compat/gguf/"

/* ---- Files of the gguf package ---- */

static coffer_tensors *open_set(const char *path, coffer_access access)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    opts.access = access;
    if (coffer_tensors_open_path(&set, path, &opts, &err))
        fail_msg("%s", err.text);
    return set;
}

static void assert_decodes(const coffer_tensors *set, size_t index)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    char path[512];
    size_t len;
    snprintf(path, sizeof path, FOLDER "%s.f32", tensor->name);
    uint8_t *expected = temp_read(path, &len);
    assert_non_null(expected);
    assert_int_equal(len, 4 * tensor->elements);
    float *out = malloc(len);
    assert_int_equal(coffer_tensors_read_as(out, COFFER_DTYPE_F32, set, index, 0, tensor->elements, NULL),
                     COFFER_OK);
    assert_memory_equal(out, expected, len);
    /* The second row alone. */
    uint64_t row = tensor->dims[1];
    assert_int_equal(coffer_tensors_read_as(out, COFFER_DTYPE_F32, set, index, row, row, NULL), COFFER_OK);
    assert_memory_equal(out, expected + 4 * row, 4 * row);
    free(out);
    free(expected);
}

static void blocks_decode_as_the_gguf_package_does_bit_for_bit(void **state)
{
    (void)state;
    for (int access = COFFER_ACCESS_MAP; access <= COFFER_ACCESS_READ; access++) {
        coffer_tensors *set = open_set(FOLDER "blocks.gguf", (coffer_access)access);
        assert_int_equal(coffer_tensors_count(set), 13);
        for (size_t i = 0; i < coffer_tensors_count(set); i++)
            assert_decodes(set, i);
        coffer_tensors_close(set);
    }
}

static void q8_k_is_a_scale_and_256_codes(void **state)
{
    uint8_t block[292] = { 0 };
    float out[256];
    (void)state;
    coffer__store_u32(block, 0x3F000000); /* 0.5 */
    for (size_t i = 0; i < 256; i++)
        block[4 + i] = (uint8_t)i;
    coffer__gguf_find_type(15)->decode(out, block, 1);
    assert_float_equal(out[1], 0.5, 0);
    assert_float_equal(out[128], -64, 0);
    assert_float_equal(out[255], -0.5, 0);
}

static void plain_tensors_have_their_dims_outermost_first(void **state)
{
    coffer_tensors *set = open_set(FOLDER "plain.gguf", COFFER_ACCESS_AUTO);
    const coffer_tensor *tensor = coffer_tensors_at(set, 0);
    int16_t integers[6];
    (void)state;
    assert_string_equal(coffer_tensors_kind(set), "gguf");
    assert_int_equal(coffer_tensors_count(set), 8);
    assert_string_equal(tensor->name, "a.f32");
    assert_string_equal(tensor->type_name, "F32");
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->dims[0], 3);
    assert_int_equal(tensor->dims[1], 5);
    assert_int_equal(coffer_tensors_at(set, coffer_tensors_find(set, "c.bf16"))->dtype, COFFER_DTYPE_BF16);
    assert_int_equal(coffer_tensors_at(set, coffer_tensors_find(set, "d.f64"))->rank, 3);
    assert_int_equal(coffer_tensors_read(integers, set, coffer_tensors_find(set, "e.i16"), 0, 12, NULL),
                     COFFER_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(integers[i], i - 3);
    coffer_tensors_close(set);
}

static void metadata_of_every_type_is_described(void **state)
{
    coffer_tensors *set = open_set(FOLDER "plain.gguf", COFFER_ACCESS_AUTO);
    coffer_node *root = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_metadata(root, set, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "general.architecture"), NULL), "qwen2");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(root, "test.u8")), 200);
    assert_int_equal(coffer_node_get_i64(coffer_node_find(root, "test.i8")), -5);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(root, "test.u16")), 60000);
    assert_int_equal(coffer_node_get_i64(coffer_node_find(root, "test.i16")), -30000);
    assert_int_equal(coffer_node_get_i64(coffer_node_find(root, "test.i32")), -70000);
    assert_true(coffer_node_get_u64(coffer_node_find(root, "test.u64")) == (UINT64_C(1) << 63) + 1);
    assert_true(coffer_node_get_i64(coffer_node_find(root, "test.i64")) == -(INT64_C(1) << 62));
    assert_true(coffer_node_get_f64(coffer_node_find(root, "test.f64")) == 0.1);
    assert_int_equal(coffer_node_get_kind(coffer_node_find(root, "test.no")), COFFER_NODE_BOOL);
    assert_true(coffer_node_get_bool(coffer_node_find(root, "tokenizer.ggml.add_bos_token")));
    const coffer_node *tokens = coffer_node_find(root, "tokenizer.ggml.tokens");
    assert_int_equal(coffer_node_count(tokens), 4);
    assert_string_equal(coffer_node_get_text(coffer_node_first(tokens), NULL), "<s>");
    coffer_node_free(root);
    coffer_tensors_close(set);
}

/* ---- Files put together byte by byte ---- */

typedef struct file {
    coffer__buffer bytes;
    coffer_error err;
} file;

static file begin(uint64_t tensors, uint64_t keys)
{
    file out = { COFFER__BUFFER_INIT, COFFER_ERROR_INIT };
    coffer__gguf_put_header(&out.bytes, tensors, keys);
    return out;
}

static void put_u32(file *to, uint32_t value)
{
    coffer__gguf_put_integer(&to->bytes, COFFER__GGUF_U32, value);
}

static void put_u64(file *to, uint64_t value)
{
    coffer__gguf_put_integer(&to->bytes, COFFER__GGUF_U64, value);
}

static void put_key(file *to, const char *name, uint32_t type)
{
    coffer__gguf_put_string(&to->bytes, name, strlen(name));
    put_u32(to, type);
}

/* dims : innermost first, as the file has them. */
static void put_tensor(file *to, const char *name, uint32_t rank, const uint64_t *dims, uint32_t type,
                       uint64_t offset)
{
    coffer__gguf_put_string(&to->bytes, name, strlen(name));
    put_u32(to, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(to, dims[i]);
    put_u32(to, type);
    put_u64(to, offset);
}

static void put_payload(file *to, size_t len)
{
    coffer__buffer_fill(&to->bytes, 0, (32 - to->bytes.len % 32) % 32 + len);
}

/* Opens it; frees it. */
static coffer_status opened(file *from)
{
    coffer_source *src = NULL;
    coffer_tensors *set = NULL;
    assert_int_equal(coffer_source_from_memory(&src, from->bytes.data, from->bytes.len, NULL), COFFER_OK);
    coffer_status status = coffer_tensors_open(&set, src, NULL, &from->err);
    coffer_tensors_close(set);
    coffer_source_close(src);
    coffer__buffer_free(&from->bytes);
    return status;
}

static void expect(file *from, coffer_status status, const char *text)
{
    coffer_status got = opened(from);
    if (got != status || (text && !strstr(from->err.text, text)))
        fail_msg("expected %s with \"%s\", got %s: %s", coffer_status_name(status), text ? text : "",
                 coffer_status_name(got), from->err.text);
}

static file one_tensor(uint32_t rank, const uint64_t *dims, uint32_t type, uint64_t offset, size_t payload)
{
    file out = begin(1, 0);
    put_tensor(&out, "w", rank, dims, type, offset);
    put_payload(&out, payload);
    return out;
}

static void a_file_of_our_own_opens(void **state)
{
    file f = one_tensor(2, (uint64_t[]){ 4, 2 }, 0, 0, 32);
    (void)state;
    expect(&f, COFFER_OK, NULL);
    f = one_tensor(0, NULL, 0, 0, 4); /* a scalar */
    expect(&f, COFFER_OK, NULL);
    f = one_tensor(2, (uint64_t[]){ 0, 7 }, 0, 0, 0);
    expect(&f, COFFER_OK, NULL);
    f = begin(0, 0);
    expect(&f, COFFER_OK, NULL);
    f = begin(0, 0);
    f.bytes.data[4] = 2;
    expect(&f, COFFER_OK, NULL);
}

static void other_versions_and_byte_orders_are_refused(void **state)
{
    file f = begin(0, 0);
    (void)state;
    f.bytes.data[4] = 1;
    expect(&f, COFFER_E_UNSUPPORTED_VERSION, "version 1");
    f = begin(0, 0);
    f.bytes.data[4] = 4;
    expect(&f, COFFER_E_UNSUPPORTED_VERSION, "version 4");
    f = begin(0, 0);
    f.bytes.data[4] = 0;
    f.bytes.data[7] = 3;
    expect(&f, COFFER_E_UNSUPPORTED_VERSION, "big-endian");
    f = begin(0, 0);
    f.bytes.data[4] = 0;
    expect(&f, COFFER_E_UNSUPPORTED_VERSION, "version 0");
}

/* CVE-2024-21836, CVE-2024-23605. */
static void counts_beyond_the_file_are_refused_before_anything_is_allocated(void **state)
{
    static const uint64_t counts[] = { 2, UINT32_MAX, UINT64_C(1) << 60, UINT64_MAX / 24 + 1, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        file f = begin(counts[i], 0);
        expect(&f, COFFER_E_TRUNCATED, "tensors in");
        f = begin(0, counts[i]);
        expect(&f, COFFER_E_TRUNCATED, "keys in");
    }
}

/* CVE-2024-23496. */
static void strings_longer_than_the_file_are_refused(void **state)
{
    static const uint64_t lengths[] = { 100, UINT32_MAX, UINT64_MAX - 7, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        file f = begin(0, 1); /* a key's name */
        put_u64(&f, lengths[i]);
        put_payload(&f, 40);
        expect(&f, COFFER_E_TRUNCATED, "a key needs");
        f = begin(0, 1); /* a value */
        put_key(&f, "k", COFFER__GGUF_STRING);
        put_u64(&f, lengths[i]);
        expect(&f, COFFER_E_TRUNCATED, "k needs");
        f = begin(0, 1); /* an item */
        put_key(&f, "k", COFFER__GGUF_ARRAY);
        put_u32(&f, COFFER__GGUF_STRING);
        put_u64(&f, 1);
        put_u64(&f, lengths[i]);
        expect(&f, COFFER_E_TRUNCATED, NULL);
        f = begin(1, 0); /* a tensor's name */
        put_u64(&f, lengths[i]);
        put_payload(&f, 40);
        expect(&f, COFFER_E_TRUNCATED, "a tensor needs");
    }
}

/* CVE-2024-21825: count × size of an item wraps. */
static void arrays_longer_than_the_file_are_refused(void **state)
{
    static const uint64_t counts[] = { 9,
                                       UINT64_C(1) << 61,
                                       (UINT64_C(1) << 61) + 1,
                                       (UINT64_C(1) << 62) + 1,
                                       (UINT64_C(1) << 63) + 1,
                                       UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t type = 0; type < COFFER__GGUF_VALUE_COUNT; type++) {
            file f = begin(0, 1);
            put_key(&f, "k", COFFER__GGUF_ARRAY);
            put_u32(&f, type);
            put_u64(&f, counts[i]);
            coffer__buffer_fill(&f.bytes, 0, 8);
            expect(&f, COFFER_E_TRUNCATED, "items of");
        }
    }
}

static void put_nested(file *to, unsigned depth)
{
    put_key(to, "deep", COFFER__GGUF_ARRAY);
    for (unsigned i = 1; i < depth; i++) {
        put_u32(to, COFFER__GGUF_ARRAY);
        put_u64(to, 1);
    }
    put_u32(to, COFFER__GGUF_U8);
    put_u64(to, 1);
    coffer__buffer_fill(&to->bytes, 7, 1);
}

static void arrays_in_arrays_have_a_bottom(void **state)
{
    file f = begin(0, 1);
    (void)state;
    put_nested(&f, COFFER__GGUF_MAX_DEPTH);
    expect(&f, COFFER_OK, NULL);
    f = begin(0, 1);
    put_nested(&f, COFFER__GGUF_MAX_DEPTH + 1);
    expect(&f, COFFER_E_LIMIT, "deep has arrays 9 deep");
    f = begin(0, 1);
    put_nested(&f, 100000);
    expect(&f, COFFER_E_LIMIT, "deep");
}

static void values_that_are_none_are_refused(void **state)
{
    file f = begin(0, 1);
    (void)state;
    put_key(&f, "k", 13);
    put_payload(&f, 8);
    expect(&f, COFFER_E_BAD_VALUE, "value type 13");
    f = begin(0, 1);
    put_key(&f, "k", COFFER__GGUF_ARRAY);
    put_u32(&f, UINT32_MAX);
    put_u64(&f, 0);
    expect(&f, COFFER_E_BAD_VALUE, "value type 4294967295");
    f = begin(0, 1);
    put_key(&f, "k", COFFER__GGUF_BOOL);
    coffer__buffer_fill(&f.bytes, 2, 1);
    expect(&f, COFFER_E_BAD_VALUE, "the bool 2");
    f = begin(0, 1);
    put_key(&f, "k", COFFER__GGUF_ARRAY);
    put_u32(&f, COFFER__GGUF_BOOL);
    put_u64(&f, 70000);
    coffer__buffer_fill(&f.bytes, 1, 69999);
    coffer__buffer_fill(&f.bytes, 9, 1);
    expect(&f, COFFER_E_BAD_VALUE, "the bool 9");
}

static void names_are_text_and_unique(void **state)
{
    uint64_t dims[] = { 4 };
    file f = begin(0, 1);
    (void)state;
    put_key(&f, "\xff", COFFER__GGUF_U8);
    coffer__buffer_fill(&f.bytes, 0, 1);
    expect(&f, COFFER_E_BAD_TEXT, "not UTF-8");
    f = begin(1, 0);
    coffer__gguf_put_string(&f.bytes, "a\0b", 3);
    put_payload(&f, 64);
    expect(&f, COFFER_E_BAD_TEXT, "NUL");
    f = begin(0, 3);
    for (size_t i = 0; i < 3; i++) {
        put_key(&f, i == 1 ? "b" : "a", COFFER__GGUF_U8);
        coffer__buffer_fill(&f.bytes, 0, 1);
    }
    expect(&f, COFFER_E_DUPLICATE, "duplicate key \"a\"");
    f = begin(2, 0);
    put_tensor(&f, "w", 1, dims, 0, 0);
    put_tensor(&f, "w", 1, dims, 0, 32);
    put_payload(&f, 48);
    expect(&f, COFFER_E_DUPLICATE, "\"w\"");
}

/* CVE-2024-21802, CVE-2026-33298: the product of the shape, and its bytes, wrap. */
static void shapes_that_wrap_are_refused(void **state)
{
    static const uint64_t shapes[][4] = {
        { UINT64_C(1) << 32, UINT64_C(1) << 32, 1, 1 },
        { UINT64_C(1) << 62, 4, 1, 1 },
        { UINT64_C(1) << 62, 1, 1, 1 },
        { 65536, 65536, 65536, 65536 },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
        { UINT64_C(0x4000000000000001), 4, 1, 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        file f = one_tensor(4, shapes[i], 28, 0, 64);
        expect(&f, COFFER_E_SIZE_MISMATCH, "does not fit into 64 bits");
    }
    file f = one_tensor(2, (uint64_t[]){ 256, UINT64_C(1) << 56 }, 15, 0, 64); /* blocks of 292 bytes */
    expect(&f, COFFER_E_SIZE_MISMATCH, "does not fit into 64 bits");
}

/* CVE-2025-53630, CVE-2026-27940: offsets and sizes wrap when they are added. CVE-2026-7482: a tensor ends
 * past the file. */
static void payloads_are_inside_the_file(void **state)
{
    static const uint64_t dims[] = { 8 };
    (void)state;
    file f = one_tensor(1, dims, 0, 0, 31);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, "the file has 95 bytes instead of 96");
    f = one_tensor(1, dims, 0, 32, 32);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, "\"w\" ends at");
    f = one_tensor(1, dims, 0, UINT64_MAX - 31, 64);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, "past 64 bits");
    f = one_tensor(1, dims, 0, UINT64_C(1) << 63, 64);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, NULL);
    f = one_tensor(2, (uint64_t[]){ 1024, UINT64_C(1) << 51 }, 0, 0, 64);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, NULL);
    f = one_tensor(2, (uint64_t[]){ 32, 3 }, COFFER__GGUF_Q4_0, 0, 53);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, NULL);
    f = one_tensor(2, (uint64_t[]){ 32, 3 }, COFFER__GGUF_Q4_0, 0, 54);
    expect(&f, COFFER_OK, NULL);
}

static void payloads_share_no_bytes_unless_they_share_all(void **state)
{
    static const uint64_t sixteen[] = { 16 }, eight[] = { 8 };
    (void)state;
    file f = begin(2, 0);
    put_tensor(&f, "a", 1, sixteen, 0, 0);
    put_tensor(&f, "b", 1, eight, 0, 32);
    put_payload(&f, 64);
    expect(&f, COFFER_E_OVERLAP, "\"b\" begins at");
    f = begin(2, 0);
    put_tensor(&f, "a", 1, sixteen, 0, 0);
    put_tensor(&f, "b", 1, eight, 0, 0);
    put_payload(&f, 64);
    expect(&f, COFFER_E_OVERLAP, NULL);
    f = begin(2, 0);
    put_tensor(&f, "a", 1, sixteen, 0, 0);
    put_tensor(&f, "b", 1, sixteen, 0, 0);
    put_payload(&f, 64);
    expect(&f, COFFER_OK, NULL);
}

static void tensors_keep_the_rules_of_their_type(void **state)
{
    (void)state;
    file f = one_tensor(1, (uint64_t[]){ 33 }, COFFER__GGUF_Q8_0, 0, 64);
    expect(&f, COFFER_E_SIZE_MISMATCH, "rows of 33 elements, Q8_0 blocks have 32");
    f = one_tensor(2, (uint64_t[]){ 128, 2 }, 12, 0, 144);
    expect(&f, COFFER_E_SIZE_MISMATCH, "Q4_K blocks have 256");
    f = one_tensor(1, (uint64_t[]){ 32 }, 4, 0, 64); /* a type that was taken back */
    expect(&f, COFFER_E_BAD_VALUE, "the type 4");
    f = one_tensor(1, (uint64_t[]){ 32 }, UINT32_MAX, 0, 64);
    expect(&f, COFFER_E_BAD_VALUE, "which is unknown");
    f = one_tensor(5, (uint64_t[]){ 1, 1, 1, 1, 1 }, 0, 0, 64);
    expect(&f, COFFER_E_BAD_VALUE, "5 dimensions");
    f = one_tensor(0, NULL, 0, 4, 64);
    expect(&f, COFFER_E_MISALIGNED, "begins at 4, which is not a multiple of 32");
}

/* CVE-2025-0317: division by the alignment. */
static void the_alignment_is_a_power_of_two(void **state)
{
    static const uint32_t bad[] = { 0, 3, 48, UINT32_MAX };
    uint64_t dims[] = { 1 };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        file f = begin(0, 1);
        put_key(&f, "general.alignment", COFFER__GGUF_U32);
        put_u32(&f, bad[i]);
        expect(&f, COFFER_E_BAD_VALUE, "not a power of two");
    }
    file f = begin(0, 1);
    put_key(&f, "general.alignment", COFFER__GGUF_U64);
    put_u64(&f, 32);
    expect(&f, COFFER_E_BAD_VALUE, "of type u64");
    f = begin(1, 1);
    put_key(&f, "general.alignment", COFFER__GGUF_U32);
    put_u32(&f, UINT32_C(1) << 31);
    put_tensor(&f, "w", 1, dims, 0, 0);
    put_payload(&f, 64);
    expect(&f, COFFER_E_OUT_OF_BOUNDS, "ends at 2147483652");
    f = begin(1, 1);
    put_key(&f, "general.alignment", COFFER__GGUF_U32);
    put_u32(&f, 8);
    put_tensor(&f, "w", 1, dims, 0, 8);
    coffer__buffer_fill(&f.bytes, 0, (8 - f.bytes.len % 8) % 8 + 12);
    expect(&f, COFFER_OK, NULL);
}

static void types_that_are_not_decoded_are_named(void **state)
{
    file f = one_tensor(2, (uint64_t[]){ 256, 1 }, 16, 0, 66);
    coffer_source *src = NULL;
    coffer_tensors *set = NULL;
    float out[256];
    (void)state;
    assert_int_equal(coffer_source_from_memory(&src, f.bytes.data, f.bytes.len, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open(&set, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_read_as(out, COFFER_DTYPE_F32, set, 0, 0, 256, &f.err),
                     COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(f.err.text, "\"w\" is IQ2_XXS"));
    assert_non_null(strstr(f.err.text, "llama-quantize"));
    coffer_tensors_close(set);
    coffer_source_close(src);
    coffer__buffer_free(&f.bytes);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    size_t len;
    uint8_t *bytes = temp_read(FOLDER "plain.gguf", &len);
    (void)state;
    /* The last payload is followed by padding that nobody needs. */
    for (size_t cut = 0; cut < len - 32; cut++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_limits limits = coffer__limits(NULL);
        coffer_source *src = NULL;
        coffer__gguf *gguf = NULL;
        uint8_t *part = malloc(cut + 1); /* for the sanitizer to see the end */
        memcpy(part, bytes, cut);
        assert_int_equal(coffer_source_from_memory(&src, part, cut, NULL), COFFER_OK);
        coffer_status status = coffer__gguf_open(&gguf, src, &limits, &err);
        assert_true(status == COFFER_E_TRUNCATED || status == COFFER_E_OUT_OF_BOUNDS);
        assert_true(err.text[0] != 0);
        coffer_source_close(src);
        free(part);
    }
    free(bytes);
}

static void limits_hold(void **state)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    coffer__gguf *gguf = NULL;
    (void)state;
    assert_int_equal(coffer_source_open(&src, FOLDER "plain.gguf", NULL, NULL), COFFER_OK);
    limits.string_bytes = 20;
    assert_int_equal(coffer__gguf_open(&gguf, src, &limits, &err), COFFER_E_LIMIT);
    limits = coffer__limits(NULL);
    limits.entries = 7;
    assert_int_equal(coffer__gguf_open(&gguf, src, &limits, &err), COFFER_E_LIMIT);
    limits = coffer__limits(NULL);
    limits.json_bytes = 30;
    assert_int_equal(coffer__gguf_open(&gguf, src, &limits, &err), COFFER_OK);
    uint8_t *bytes;
    size_t len;
    assert_int_equal(coffer__gguf_read_value(&bytes, &len, gguf,
                                             coffer__gguf_find(gguf, "tokenizer.ggml.tokens"), &err),
                     COFFER_E_LIMIT);
    coffer__gguf_close(gguf);
    coffer_source_close(src);
}

static void a_hundred_thousand_tensors_take_no_quadratic_time(void **state)
{
    uint64_t dims[] = { 1 };
    file f = begin(100000, 0);
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", 99999 - i);
        put_tensor(&f, name, 1, dims, 0, (uint64_t)32 * i);
    }
    put_payload(&f, 3200000);
    expect(&f, COFFER_OK, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_decode_as_the_gguf_package_does_bit_for_bit),
        cmocka_unit_test(q8_k_is_a_scale_and_256_codes),
        cmocka_unit_test(plain_tensors_have_their_dims_outermost_first),
        cmocka_unit_test(metadata_of_every_type_is_described),
        cmocka_unit_test(a_file_of_our_own_opens),
        cmocka_unit_test(other_versions_and_byte_orders_are_refused),
        cmocka_unit_test(counts_beyond_the_file_are_refused_before_anything_is_allocated),
        cmocka_unit_test(strings_longer_than_the_file_are_refused),
        cmocka_unit_test(arrays_longer_than_the_file_are_refused),
        cmocka_unit_test(arrays_in_arrays_have_a_bottom),
        cmocka_unit_test(values_that_are_none_are_refused),
        cmocka_unit_test(names_are_text_and_unique),
        cmocka_unit_test(shapes_that_wrap_are_refused),
        cmocka_unit_test(payloads_are_inside_the_file),
        cmocka_unit_test(payloads_share_no_bytes_unless_they_share_all),
        cmocka_unit_test(tensors_keep_the_rules_of_their_type),
        cmocka_unit_test(the_alignment_is_a_power_of_two),
        cmocka_unit_test(types_that_are_not_decoded_are_named),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_hundred_thousand_tensors_take_no_quadratic_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
