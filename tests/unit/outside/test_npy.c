#include "outside/arrays/npy.h"

#include "base/buffer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Files made of a literal ---- */

typedef struct file {
    coffer__buffer bytes;
    coffer_source *src;
    coffer__npy npy;
    coffer_error err;
    coffer_status status;
} file;

static void put_file(coffer__buffer *out, unsigned version, const char *literal, size_t data_len)
{
    uint8_t prefix[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0 };
    size_t len = strlen(literal), prefix_len = version == 1 ? 10 : 12;
    for (size_t i = 0; i < prefix_len - 8; i++)
        prefix[8 + i] = (uint8_t)(len >> 8 * i);
    coffer__buffer_append(out, prefix, prefix_len);
    coffer__buffer_append(out, literal, len);
    for (size_t i = 0; i < data_len; i++)
        coffer__buffer_append(out, &(uint8_t){ (uint8_t)(i + 1) }, 1);
}

static void read_file(file *out)
{
    assert_int_equal(coffer_source_from_memory(&out->src, out->bytes.data, out->bytes.len, NULL), COFFER_OK);
    out->status = coffer__npy_read(&out->npy, out->src, &out->err);
}

static void close_file(file *done)
{
    coffer__npy_free(&done->npy);
    coffer_source_close(done->src);
    coffer__buffer_free(&done->bytes);
}

static file open_literal(unsigned version, const char *literal, size_t data_len)
{
    file out = { .bytes = COFFER__BUFFER_INIT, .err = COFFER_ERROR_INIT };
    put_file(&out.bytes, version, literal, data_len);
    read_file(&out);
    return out;
}

static void expect_status(const char *literal, coffer_status expected)
{
    file f = open_literal(1, literal, 64);
    if (f.status != expected)
        fail_msg("%s\n gives %s (%s), expected %s", literal, coffer_status_name(f.status), f.err.text,
                 coffer_status_name(expected));
    close_file(&f);
}

/* ---- Reading ---- */

static void a_plain_array_is_read(void **state)
{
    (void)state;
    file f = open_literal(1, "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 5), }    \n", 60);
    assert_int_equal(f.status, COFFER_OK);
    assert_false(f.npy.structured);
    assert_int_equal(f.npy.dimensions, 2);
    assert_int_equal(f.npy.shape[1], 5);
    assert_int_equal(f.npy.count, 15);
    assert_int_equal(f.npy.item_size, 4);
    assert_int_equal(f.npy.data_offset, f.bytes.len - 60);
    close_file(&f);
}

static void a_structured_array_has_fields_at_their_offsets(void **state)
{
    (void)state;
    file f =
        open_literal(1,
                     "{'descr': [('a', '|u1'), ('', '|V3'), ('b', '>f8'), (('title', 'c'), '<i2', (2, 3))], "
                     "'fortran_order': True, 'shape': (2,)}\n",
                     48);
    assert_int_equal(f.status, COFFER_OK);
    assert_true(f.npy.structured);
    assert_true(f.npy.fortran_order);
    assert_int_equal(f.npy.item_size, 1 + 3 + 8 + 12);
    assert_int_equal(coffer__npy_find(&f.npy, "b")->offset, 4);
    assert_true(coffer__npy_find(&f.npy, "b")->big_endian);
    assert_int_equal(coffer__npy_find(&f.npy, "c")->elements, 6);
    assert_false(coffer__npy_is_number(coffer__npy_find(&f.npy, "c")));
    assert_null(coffer__npy_find(&f.npy, "d"));
    close_file(&f);
}

static void what_python_2_wrote_is_read(void **state)
{
    (void)state;
    file f = open_literal(1, "{u'shape': (3L,), \"descr\": [(u'x', u'<u2'),], 'fortran_order': False,}", 6);
    assert_int_equal(f.status, COFFER_OK);
    assert_int_equal(f.npy.count, 3);
    close_file(&f);
}

static void names_are_latin_1_before_version_3_and_utf_8_then(void **state)
{
    (void)state;
    const unsigned versions[] = { 1, 2, 3 };
    for (size_t i = 0; i < 3; i++) {
        const char *literal = versions[i] == 3
                                  ? "{'descr': [('\xc3\xa9', '<u2')], 'fortran_order': False, 'shape': (1,)}"
                                  : "{'descr': [('\xe9', '<u2')], 'fortran_order': False, 'shape': (1,)}";
        file f = open_literal(versions[i], literal, 2);
        assert_int_equal(f.status, COFFER_OK);
        assert_non_null(coffer__npy_find(&f.npy, "\xc3\xa9"));
        close_file(&f);
    }
    file f = open_literal(3, "{'descr': [('\xe9', '<u2')], 'fortran_order': False, 'shape': (1,)}", 2);
    assert_int_equal(f.status, COFFER_E_BAD_TEXT);
    close_file(&f);
}

static void every_type_and_byte_order_loads_the_number_it_means(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint8_t bytes[8];
        double expected;
    } cases[] = {
        { "|b1", { 1 }, 1 },
        { "?", { 1 }, 1 },
        { "|u1", { 255 }, 255 },
        { "|i1", { 255 }, -1 },
        { "<u2", { 1, 2 }, 513 },
        { ">u2", { 1, 2 }, 258 },
        { "<i2", { 0xfe, 0xff }, -2 },
        { ">i4", { 0xff, 0xff, 0xff, 0xfd }, -3 },
        { ">u4", { 0xff, 0, 0, 1 }, 4278190081.0 },
        { ">u8", { 0, 0, 0, 1, 0, 0, 0, 0 }, 4294967296.0 },
        { "<i8", { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, -1 },
        { "<f2", { 0x00, 0x3c }, 1.0 },
        { "<f2", { 0x00, 0xc5 }, -5.0 },
        { ">f2", { 0x00, 0x01 }, 5.9604644775390625e-08 },
        { "<f4", { 0, 0, 0x80, 0x3f }, 1.0 },
        { ">f4", { 0x3f, 0x80, 0, 0 }, 1.0 },
        { ">f8", { 0xbf, 0xf8, 0, 0, 0, 0, 0, 0 }, -1.5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char literal[128];
        snprintf(literal, sizeof literal, "{'descr': '%s', 'fortran_order': False, 'shape': ()}",
                 cases[i].type);
        file f = open_literal(1, literal, 8);
        assert_int_equal(f.status, COFFER_OK);
        assert_int_equal(f.npy.count, 1);
        assert_true(coffer__npy_is_number(&f.npy.fields[0]));
        coffer__number number = coffer__npy_number(&f.npy.fields[0], cases[i].bytes);
        if (coffer__number_as_f64(&number) != cases[i].expected)
            fail_msg("%s gives %g, expected %g", cases[i].type, coffer__number_as_f64(&number),
                     cases[i].expected);
        close_file(&f);
    }
}

static void infinities_and_nan_of_half_precision_are_kept(void **state)
{
    (void)state;
    file f = open_literal(1, "{'descr': '<f2', 'fortran_order': False, 'shape': ()}", 2);
    coffer__number infinite = coffer__npy_number(&f.npy.fields[0], (const uint8_t[]){ 0x00, 0xfc });
    coffer__number none = coffer__npy_number(&f.npy.fields[0], (const uint8_t[]){ 0x01, 0x7c });
    assert_true(isinf(infinite.as.f64) && infinite.as.f64 < 0);
    assert_true(isnan(none.as.f64));
    close_file(&f);
}

/* ---- Bad files ---- */

static void an_invalid_header_is_refused_with_a_reason(void **state)
{
    (void)state;
    expect_status("", COFFER_E_BAD_VALUE);
    expect_status("{}", COFFER_E_MISSING);
    expect_status("{'descr': '<u4', 'fortran_order': False}", COFFER_E_MISSING);
    expect_status("{'descr': '<u4', 'descr': '<u4', 'fortran_order': False, 'shape': ()}",
                  COFFER_E_DUPLICATE);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (), 'more': 1}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': ()} x", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u4', 'fortran_order': 0, 'shape': ()}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (-1,)}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (2", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<q4', 'fortran_order': False, 'shape': ()}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u', 'fortran_order': False, 'shape': ()}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '', 'fortran_order': False, 'shape': ()}", COFFER_E_BAD_VALUE);
    expect_status("{'descr': '|O', 'fortran_order': False, 'shape': ()}", COFFER_E_UNSUPPORTED);
    expect_status("{'descr': [('a', [('b', '<u2')])], 'fortran_order': False, 'shape': ()}",
                  COFFER_E_UNSUPPORTED);
    expect_status("{'descr': [('a', '<u2'), ('a', '<u2')], 'fortran_order': False, 'shape': ()}",
                  COFFER_E_DUPLICATE);
    expect_status("{'descr': [('a\\q', '<u2')], 'fortran_order': False, 'shape': ()}", COFFER_E_BAD_TEXT);
    expect_status("{'descr': '<u4", COFFER_E_TRUNCATED);
    expect_status("__import__('os').system('true')", COFFER_E_BAD_VALUE);
}

static void false_sizes_are_refused_before_anything_is_allocated(void **state)
{
    (void)state;
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (17,)}", COFFER_E_TRUNCATED);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                  COFFER_E_BAD_VALUE);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (9223372036854775807,)}",
                  COFFER_E_TRUNCATED);
    expect_status("{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                  COFFER_E_BAD_VALUE);
    expect_status("{'descr': '|S99999999999', 'fortran_order': False, 'shape': ()}", COFFER_E_LIMIT);
    expect_status("{'descr': [('a', '<u8', (99999999, 99999999))], 'fortran_order': False, 'shape': ()}",
                  COFFER_E_LIMIT);
}

static void a_header_longer_than_the_limit_is_refused(void **state)
{
    (void)state;
    file f = { .bytes = COFFER__BUFFER_INIT, .err = COFFER_ERROR_INIT };
    put_file(&f.bytes, 2, "{'descr': '<u4', 'fortran_order': False, 'shape': ()}", 4);
    memcpy(f.bytes.data + 8, "\x01\x00\x10\x00", 4);
    read_file(&f);
    assert_int_equal(f.status, COFFER_E_LIMIT);
    close_file(&f);
}

static void an_unknown_version_and_another_magic_are_distinguished(void **state)
{
    (void)state;
    file f = open_literal(4, "{'descr': '<u4', 'fortran_order': False, 'shape': ()}", 4);
    assert_int_equal(f.status, COFFER_E_UNSUPPORTED_VERSION);
    close_file(&f);
    f = (file){ .bytes = COFFER__BUFFER_INIT, .err = COFFER_ERROR_INIT };
    coffer__buffer_append(&f.bytes, "no array", 8);
    read_file(&f);
    assert_int_equal(f.status, COFFER_E_BAD_MAGIC);
    close_file(&f);
}

static void a_header_cut_or_flipped_anywhere_never_reads_past_its_end(void **state)
{
    (void)state;
    file whole = open_literal(
        1, "{'descr': [('a', '<u4'), (('t', 'b'), '>f8', (2,))], 'fortran_order': False, 'shape': (2,), }\n",
        40);
    assert_int_equal(whole.status, COFFER_OK);
    for (size_t i = 0; i < whole.bytes.len * 9; i++) {
        size_t len = i < whole.bytes.len ? i : whole.bytes.len;
        uint8_t *copy = malloc(len + 1);
        coffer_source *src = NULL;
        coffer__npy npy;
        memcpy(copy, whole.bytes.data, len);
        if (i >= whole.bytes.len)
            copy[i / 8 % whole.bytes.len] ^= (uint8_t)(1u << i % 8);
        assert_int_equal(coffer_source_from_memory(&src, copy, len, NULL), COFFER_OK);
        coffer_status status = coffer__npy_read(&npy, src, NULL);
        assert_false(i < whole.bytes.len && status == COFFER_OK);
        if (status == COFFER_OK)
            coffer__npy_free(&npy);
        coffer_source_close(src);
        free(copy);
    }
    close_file(&whole);
}

/* ---- Writing ---- */

static void a_header_reads_back_as_it_was_written(void **state)
{
    (void)state;
    coffer__npy_field fields[] = {
        { .name = (char *)(uintptr_t) "token'\\idx", .kind = 'u', .size = 4, .elements = 1 },
        { .name = (char *)(uintptr_t) "caf\xc3\xa9",
          .kind = 'f',
          .size = 8,
          .elements = 3,
          .offset = 4,
          .big_endian = true },
        { .name = (char *)(uintptr_t) "text", .kind = 'U', .size = 16, .elements = 1, .offset = 28 },
    };
    coffer__npy npy = {
        .structured = true, .fields = fields, .field_count = 3, .shape = { 1, 0, 7 }, .dimensions = 3
    };
    file f = { .bytes = COFFER__BUFFER_INIT, .err = COFFER_ERROR_INIT };
    coffer__npy_put_header(&f.bytes, &npy);
    assert_int_equal(f.bytes.len % 64, 0);
    assert_int_equal(f.bytes.data[6], 3);
    assert_int_equal(f.bytes.data[f.bytes.len - 1], '\n');
    read_file(&f);
    assert_int_equal(f.status, COFFER_OK);
    assert_int_equal(f.npy.field_count, 3);
    assert_int_equal(f.npy.item_size, 44);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(f.npy.fields[i].name, fields[i].name);
        assert_int_equal(f.npy.fields[i].size, fields[i].size);
        assert_int_equal(f.npy.fields[i].offset, fields[i].offset);
        assert_int_equal(f.npy.fields[i].elements, fields[i].elements);
        assert_int_equal(f.npy.fields[i].big_endian, fields[i].big_endian);
    }
    assert_int_equal(f.npy.shape[2], 7);
    close_file(&f);
}

static void a_plain_ascii_header_is_version_1_and_as_numpy_writes_it(void **state)
{
    (void)state;
    coffer__npy_field field = { .kind = 'u', .size = 2, .elements = 1 };
    coffer__npy npy = { .fields = &field, .field_count = 1, .shape = { 288 }, .dimensions = 1 };
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__npy_put_header(&out, &npy);
    assert_int_equal(out.len, 128);
    assert_memory_equal(
        out.data, "\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (288,), } ",
        10 + 60);
    coffer__buffer_free(&out);
}

static void a_header_too_long_for_version_1_is_written_as_version_2(void **state)
{
    (void)state;
    enum { FIELDS = 3000 };
    static char names[FIELDS][16];
    static coffer__npy_field fields[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        snprintf(names[i], sizeof names[i], "column_%zu", i);
        fields[i] =
            (coffer__npy_field){ .name = names[i], .kind = 'u', .size = 1, .elements = 1, .offset = i };
    }
    coffer__npy npy = { .structured = true, .fields = fields, .field_count = FIELDS, .dimensions = 1 };
    file f = { .bytes = COFFER__BUFFER_INIT, .err = COFFER_ERROR_INIT };
    coffer__npy_put_header(&f.bytes, &npy);
    assert_int_equal(f.bytes.data[6], 2);
    read_file(&f);
    assert_int_equal(f.status, COFFER_OK);
    assert_int_equal(f.npy.field_count, FIELDS);
    close_file(&f);
}

static void every_type_that_numpy_has_leads_there_and_back(void **state)
{
    (void)state;
    coffer__npy_field field;
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        coffer_dtype dtype = (coffer_dtype)i;
        if (!coffer__npy_field_of(&field, dtype))
            continue;
        assert_int_equal(coffer__npy_dtype(&field), dtype);
        assert_int_equal(field.size, coffer_dtype_size(dtype));
    }
    assert_false(coffer__npy_field_of(&field, COFFER_DTYPE_C32));
    assert_false(coffer__npy_field_of(&field, COFFER_DTYPE_BF16));
    assert_int_equal(coffer__npy_dtype(&(coffer__npy_field){ .kind = 'f', .size = 16 }), COFFER_DTYPE_NONE);
    assert_int_equal(coffer__npy_dtype(&(coffer__npy_field){ .kind = 'S', .size = 8 }), COFFER_DTYPE_NONE);
}

static void elements_of_any_size_are_turned_round(void **state)
{
    (void)state;
    uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    coffer__npy_swap(bytes, COFFER_DTYPE_U8, 8);
    assert_memory_equal(bytes, ((uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }), 8);
    coffer__npy_swap(bytes, COFFER_DTYPE_C64, 1);
    assert_memory_equal(bytes, ((uint8_t[]){ 4, 3, 2, 1, 8, 7, 6, 5 }), 8);
    coffer__npy_swap(bytes, COFFER_DTYPE_F64, 1);
    assert_memory_equal(bytes, ((uint8_t[]){ 5, 6, 7, 8, 1, 2, 3, 4 }), 8);
    coffer__npy_swap(bytes, COFFER_DTYPE_F16, 4);
    assert_memory_equal(bytes, ((uint8_t[]){ 6, 5, 8, 7, 2, 1, 4, 3 }), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_array_is_read),
        cmocka_unit_test(a_structured_array_has_fields_at_their_offsets),
        cmocka_unit_test(what_python_2_wrote_is_read),
        cmocka_unit_test(names_are_latin_1_before_version_3_and_utf_8_then),
        cmocka_unit_test(every_type_and_byte_order_loads_the_number_it_means),
        cmocka_unit_test(infinities_and_nan_of_half_precision_are_kept),
        cmocka_unit_test(an_invalid_header_is_refused_with_a_reason),
        cmocka_unit_test(false_sizes_are_refused_before_anything_is_allocated),
        cmocka_unit_test(a_header_longer_than_the_limit_is_refused),
        cmocka_unit_test(an_unknown_version_and_another_magic_are_distinguished),
        cmocka_unit_test(a_header_cut_or_flipped_anywhere_never_reads_past_its_end),
        cmocka_unit_test(a_header_reads_back_as_it_was_written),
        cmocka_unit_test(a_plain_ascii_header_is_version_1_and_as_numpy_writes_it),
        cmocka_unit_test(a_header_too_long_for_version_1_is_written_as_version_2),
        cmocka_unit_test(every_type_that_numpy_has_leads_there_and_back),
        cmocka_unit_test(elements_of_any_size_are_turned_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
