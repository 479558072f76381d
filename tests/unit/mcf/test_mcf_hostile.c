/* Files made to do harm: each class of mistake that readers of such formats have made, by hand. */
#include "base/bytes.h"
#include "coffer/tensors.h"
#include "formats/mcf/mcf_layout.h"
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- A model put together byte by byte: header, config.json, TensorData, TensorIndex, directory ---- */

typedef struct tensor_row {
    const char *name;
    uint32_t dtype, rank;
    uint64_t dims[2];
    uint64_t offset, size;
} tensor_row;

#define DATA_AT 128
#define DATA_SIZE 512

typedef struct image {
    uint8_t *bytes;
    size_t len;
    size_t index;     /* where the TensorIndex stands */
    size_t directory; /* config, index, data: in the order of their types index, data, config */
} image;

static image make(const tensor_row *rows, uint32_t count, const char *config)
{
    image out = { .len = DATA_AT + DATA_SIZE };
    size_t config_len = strlen(config), names = 0, dims = (size_t)2 * count;
    for (uint32_t i = 0; i < count; i++)
        names += strlen(rows[i].name);
    out.index = out.len;
    size_t index_len = COFFER__MCF_INDEX_HEADER + (size_t)count * COFFER__MCF_ENTRY + dims * 8 + names;
    size_t config_at = (out.index + index_len + 7) / 8 * 8;
    out.directory = (config_at + config_len + 7) / 8 * 8;
    out.len = out.directory + (size_t)3 * COFFER__MCF_DIRECTORY_ENTRY;
    out.bytes = calloc(1, out.len);
    memcpy(out.bytes, "MCF", 4);
    coffer__store_u16(out.bytes + 4, 1);
    coffer__store_u16(out.bytes + 6, 1);
    coffer__store_u32(out.bytes + 8, 40);
    coffer__store_u32(out.bytes + 12, 3);
    coffer__store_u64(out.bytes + 16, out.directory);
    coffer__store_u64(out.bytes + 24, out.len);
    coffer__store_u64(out.bytes + 32, 0);
    const uint64_t sections[3][3] = { { 3, out.index, index_len },
                                      { 4, DATA_AT, DATA_SIZE },
                                      { 0x100, config_at, config_len } };
    for (size_t i = 0; i < 3; i++) {
        uint8_t *entry = out.bytes + out.directory + i * COFFER__MCF_DIRECTORY_ENTRY;
        coffer__store_u32(entry, (uint32_t)sections[i][0]);
        coffer__store_u32(entry + 4, 1);
        coffer__store_u64(entry + 8, sections[i][1]);
        coffer__store_u64(entry + 16, sections[i][2]);
    }
    memcpy(out.bytes + config_at, config, config_len);
    uint8_t *index = out.bytes + out.index, *entry = index + COFFER__MCF_INDEX_HEADER;
    uint8_t *dim = entry + (size_t)count * COFFER__MCF_ENTRY, *name = dim + dims * 8;
    coffer__store_u32(index, 1);
    coffer__store_u32(index + 4, 2);
    coffer__store_u32(index + 8, count);
    coffer__store_u32(index + 12, (uint32_t)dims);
    coffer__store_u64(index + 16, COFFER__MCF_INDEX_HEADER);
    coffer__store_u64(index + 24, (uint64_t)(dim - index));
    coffer__store_u64(index + 32, (uint64_t)(name - index));
    coffer__store_u64(index + 40, names);
    for (uint32_t i = 0, at = 0; i < count; i++, entry += COFFER__MCF_ENTRY, dim += 16) {
        uint32_t name_len = (uint32_t)strlen(rows[i].name);
        coffer__store_u32(entry, at);
        coffer__store_u32(entry + 4, name_len);
        coffer__store_u32(entry + 8, rows[i].dtype);
        coffer__store_u32(entry + 12, rows[i].rank);
        coffer__store_u32(entry + 16, 2 * i);
        coffer__store_u64(entry + 24, rows[i].offset);
        coffer__store_u64(entry + 32, rows[i].size);
        coffer__store_u64(dim, rows[i].dims[0]);
        coffer__store_u64(dim + 8, rows[i].dims[1]);
        memcpy(name + at, rows[i].name, name_len);
        at += name_len;
    }
    return out;
}

static uint8_t *entry_of(const image *of, size_t tensor)
{
    return of->bytes + of->index + COFFER__MCF_INDEX_HEADER + tensor * COFFER__MCF_ENTRY;
}

static const tensor_row good_row = { "good", 6, 1, { 64, 0 }, DATA_AT + 256, 64 };

/* The finding is there, the file opens or not without harm, and a good tensor beside stays readable. */
static void assert_found(image of, coffer_status code, const char *text)
{
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, true);
    coffer_mcf *model = NULL;
    uint8_t bytes[64];
    if (!model_has(report, code, COFFER_ERROR))
        fail_msg("%s was not found", coffer_status_name(code));
    if (text && !strstr(model_text(report, code), text))
        fail_msg("\"%s\" does not say \"%s\"", model_text(report, code), text);
    if (coffer_mcf_open(&model, src, NULL, NULL) == COFFER_OK) {
        size_t good = coffer_mcf_find_tensor(model, "good", 4);
        for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            const uint8_t *view = coffer_mcf_view(model, i);
            assert_true(!view || (tensor.offset <= of.len && tensor.size <= of.len - tensor.offset));
        }
        if (good != SIZE_MAX)
            assert_int_equal(coffer_mcf_read_rows(bytes, model, good, 0, 1, NULL), COFFER_OK);
        coffer_mcf_close(model);
    }
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

static void assert_row_found(tensor_row row, coffer_status code, const char *text)
{
    const tensor_row rows[2] = { row, good_row };
    assert_found(make(rows, 2, "{}"), code, text);
}

static void the_image_that_the_others_spoil_is_clean(void **state)
{
    image of = make(&good_row, 1, "{}");
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, true);
    (void)state;
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

static void counts_times_sizes_that_overflow_are_out_of_bounds(void **state)
{
    (void)state;
    for (int table = 0; table < 3; table++) {
        image of = make(&good_row, 1, "{}");
        coffer__store_u32(of.bytes + of.index + 8, 0x80000000u);
        coffer__store_u32(of.bytes + of.index + 12, 0xffffffffu);
        coffer__store_u64(of.bytes + of.index + 16 + 8 * (size_t)table, UINT64_MAX - 39);
        assert_found(of, COFFER_E_OUT_OF_BOUNDS, "TensorIndex");
    }
    image of = make(&good_row, 1, "{}");
    coffer__store_u32(of.bytes + 12, 0xffffffffu);
    assert_found(of, COFFER_E_OUT_OF_BOUNDS, "directory");
}

static void shapes_whose_product_overflows_are_refused(void **state)
{
    (void)state;
    assert_row_found((tensor_row){ "x", 1, 2, { UINT64_C(1) << 33, UINT64_C(1) << 33 }, DATA_AT, 0 },
                     COFFER_E_SIZE_MISMATCH, "64 bits");
    assert_row_found((tensor_row){ "x", 4, 2, { UINT64_MAX / 8 + 1, 1 }, DATA_AT, 0 }, COFFER_E_SIZE_MISMATCH,
                     "64 bits");
    /* Rounding up to blocks, and rows of blocks. */
    assert_row_found((tensor_row){ "x", 0x20, 2, { 1, UINT64_MAX }, DATA_AT, 0 }, COFFER_E_SIZE_MISMATCH,
                     NULL);
    assert_row_found((tensor_row){ "x", 0x31, 2, { UINT64_C(1) << 60, 33 }, DATA_AT, 0 },
                     COFFER_E_SIZE_MISMATCH, NULL);
    /* Nothing times anything is nothing. */
    assert_row_found((tensor_row){ "x", 1, 2, { 0, UINT64_MAX }, DATA_AT, 4 }, COFFER_E_SIZE_MISMATCH,
                     "type and shape require 0");
}

static void offsets_and_sizes_that_wrap_are_out_of_bounds(void **state)
{
    (void)state;
    assert_row_found((tensor_row){ "x", 6, 1, { 64, 0 }, UINT64_MAX - 31, 64 }, COFFER_E_OUT_OF_BOUNDS,
                     "file has");
    assert_row_found((tensor_row){ "x", 6, 1, { UINT64_MAX, 0 }, DATA_AT, UINT64_MAX },
                     COFFER_E_OUT_OF_BOUNDS, "file has");
    assert_row_found((tensor_row){ "x", 6, 1, { 64, 0 }, DATA_AT + DATA_SIZE - 32, 64 },
                     COFFER_E_OUT_OF_BOUNDS, "not inside TensorData");
    assert_row_found((tensor_row){ "x", 6, 1, { 64, 0 }, 0, 64 }, COFFER_E_OUT_OF_BOUNDS,
                     "not inside TensorData");
}

static void a_size_that_the_shape_does_not_imply_is_refused(void **state)
{
    (void)state;
    assert_row_found((tensor_row){ "x", 1, 1, { 64, 0 }, DATA_AT, 64 }, COFFER_E_SIZE_MISMATCH,
                     "has 64 bytes, its type and shape require 256");
    assert_row_found((tensor_row){ "x", 0x20, 1, { 32, 0 }, DATA_AT, 96 }, COFFER_E_BAD_VALUE, "dimensions");
}

static void mantles_embeddings_without_scales_are_named_and_the_rest_reads(void **state)
{
    (void)state;
    assert_row_found((tensor_row){ "x", 0x10, 2, { 4, 8 }, DATA_AT, 32 }, COFFER_E_SIZE_MISMATCH,
                     "int8 payload has no scale region (written by mantle's --quant-embed?)");
    assert_row_found((tensor_row){ "x", 0x11, 2, { 3, 3 }, DATA_AT, 5 }, COFFER_E_SIZE_MISMATCH,
                     "int4 payload has no scale region");
}

static void payloads_that_share_some_bytes_overlap_and_aliases_do_not(void **state)
{
    const tensor_row alias[2] = { good_row, { "twin", 5, 2, { 8, 8 }, DATA_AT + 256, 64 } };
    (void)state;
    assert_row_found((tensor_row){ "x", 6, 1, { 64, 0 }, DATA_AT + 256 + 32, 64 }, COFFER_E_OVERLAP, "\"x\"");
    assert_row_found((tensor_row){ "x", 6, 1, { 32, 0 }, DATA_AT + 256, 32 }, COFFER_E_OVERLAP, NULL);
    assert_row_found((tensor_row){ "x", 6, 1, { 256, 0 }, DATA_AT + 128, 256 }, COFFER_E_OVERLAP, NULL);
    image of = make(alias, 2, "{}");
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

/* Without a TensorData section payloads may stand anywhere, but not on other things. */
static void payloads_over_sections_or_the_header_overlap(void **state)
{
    const tensor_row rows[2] = { { "x", 6, 1, { 16, 0 }, 8, 16 }, good_row };
    image of = make(rows, 2, "{}");
    (void)state;
    coffer__store_u32(of.bytes + of.directory + COFFER__MCF_DIRECTORY_ENTRY, 0x7777);
    assert_found(of, COFFER_E_OVERLAP, "\"x\"");
}

static void bytes_that_nothing_refers_to_are_a_note(void **state)
{
    image of = make(&good_row, 1, "{}");
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, false);
    (void)state;
    assert_true(model_has(report, COFFER_E_TRAILING_BYTES, COFFER_NOTE));
    assert_non_null(strstr(model_text(report, COFFER_E_TRAILING_BYTES), "unreferenced bytes"));
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

static void duplicate_names_are_found(void **state)
{
    const tensor_row rows[3] = { { "b", 6, 1, { 4, 0 }, DATA_AT, 4 },
                                 { "a", 6, 1, { 4, 0 }, DATA_AT + 64, 4 },
                                 { "b", 6, 1, { 4, 0 }, DATA_AT + 128, 4 } };
    (void)state;
    assert_found(make(rows, 3, "{}"), COFFER_E_DUPLICATE, "\"b\"");
}

static void names_outside_of_the_strings_are_found(void **state)
{
    static const uint32_t wrong[3][2] = { { 0xffffffffu, 1 }, { 0, 0xffffffffu }, { 4, 5 } };
    const tensor_row rows[2] = { { "x", 6, 1, { 4, 0 }, DATA_AT, 4 }, good_row };
    (void)state;
    for (int i = 0; i < 3; i++) {
        image of = make(rows, 2, "{}");
        coffer__store_u32(entry_of(&of, 0), wrong[i][0]);
        coffer__store_u32(entry_of(&of, 0) + 4, wrong[i][1]);
        assert_found(of, COFFER_E_OUT_OF_BOUNDS, "name");
    }
}

static void reserved_fields_types_ranks_and_text_are_looked_at(void **state)
{
    const tensor_row rows[2] = { { "x", 6, 1, { 4, 0 }, DATA_AT, 4 }, good_row };
    (void)state;
    image of = make(rows, 2, "{}");
    coffer__store_u32(entry_of(&of, 0) + COFFER__MCF_ENTRY_RESERVED_AT, 7);
    assert_found(of, COFFER_E_RESERVED_NOT_ZERO, "7");
    of = make(rows, 2, "{}");
    coffer__store_u32(entry_of(&of, 0) + 8, 0x10001);
    assert_found(of, COFFER_E_BAD_VALUE, "0x10001");
    of = make(rows, 2, "{}");
    coffer__store_u32(entry_of(&of, 0) + 12, 0xffffffffu);
    assert_found(of, COFFER_E_OUT_OF_BOUNDS, "dims");
    of = make((const tensor_row[2]){ { "\xff\xfe", 6, 1, { 4, 0 }, DATA_AT, 4 }, good_row }, 2, "{}");
    assert_found(of, COFFER_E_BAD_TEXT, NULL);
    of = make(rows, 2, "{}");
    coffer__store_u64(of.bytes + 32, 1); /* the flags promise 64-byte starts */
    coffer__store_u64(entry_of(&of, 0) + COFFER__MCF_ENTRY_OFFSET_AT, DATA_AT + 8);
    assert_found(of, COFFER_E_MISALIGNED, "\"x\"");
    of = make(rows, 2, "{}");
    coffer__store_u32(of.bytes + of.index, 2);
    assert_found(of, COFFER_E_UNSUPPORTED_VERSION, "TensorIndex");
}

static void quantized_tensors_need_flag_record_and_alignment(void **state)
{
    tensor_row row = { "x", 0x21, 2, { 1, 32 }, DATA_AT, 80 };
    (void)state;
    assert_row_found(row, COFFER_E_INCONSISTENT, "flag for 64-aligned");
    assert_row_found(row, COFFER_E_MISSING, "QuantInfo");
    row.offset += 8;
    assert_row_found(row, COFFER_E_MISALIGNED, "not a multiple of 64");
}

static void json_that_is_deep_broken_or_cut_is_found(void **state)
{
    char *deep = malloc(200001);
    (void)state;
    memset(deep, '[', 100000);
    memset(deep + 100000, ']', 100000);
    deep[200000] = 0;
    assert_found(make(&good_row, 1, deep), COFFER_E_LIMIT, "config.json");
    free(deep);
    assert_found(make(&good_row, 1, "{\"a\": "), COFFER_E_BAD_JSON, "config.json");
    assert_found(make(&good_row, 1, "{\"a\": \"\xff\"}"), COFFER_E_BAD_TEXT, "config.json");
}

static void a_duplicate_section_is_a_warning(void **state)
{
    image of = make(&good_row, 1, "{}");
    (void)state;
    coffer__store_u32(of.bytes + of.directory + 2 * COFFER__MCF_DIRECTORY_ENTRY, 3);
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, false);
    coffer_mcf *model = model_open(src); /* the first counts */
    assert_true(model_has(report, COFFER_E_DUPLICATE, COFFER_WARNING));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_int_equal(coffer_mcf_tensor_count(model), 1);
    coffer_mcf_close(model);
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

#ifndef COFFER__PORTABLE /* which has no coffer/tensors.h */

/* Nothing of the tensor is divided by or read; the others stay. */
static void a_quantized_tensor_with_a_false_shape_is_refused_not_decoded(void **state)
{
    static const uint32_t types[] = { 0x10, 0x11, 0x20, 0x31 };
    const tensor_row rows[2] = { { "bad", 0x20, 2, { 1, 32 }, DATA_AT, 96 }, good_row };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        image of = make(rows, 2, "{}");
        coffer_tensors *set = NULL;
        float value[32];
        coffer__store_u32(entry_of(&of, 0) + 8, types[i]);
        coffer__store_u32(entry_of(&of, 0) + 12, 99);
        coffer_source *src = model_source_of(of.bytes, of.len);
        assert_int_equal(coffer_tensors_open(&set, src, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_tensors_read_as(value, COFFER_DTYPE_F32, set, 0, 0, 1, NULL),
                         COFFER_E_OUT_OF_BOUNDS);
        assert_int_equal(coffer_tensors_read_as(value, COFFER_DTYPE_F32, set, 1, 0, 32, NULL), COFFER_OK);
        coffer_tensors_close(set);
        coffer_source_close(src);
        free(of.bytes);
    }
}

static void names_that_are_not_text_are_escaped_and_found(void **state)
{
    const tensor_row rows[2] = { { "w\xff\xc3\xa9_", 6, 1, { 4, 0 }, DATA_AT, 4 }, good_row };
    image of = make(rows, 2, "{}");
    coffer_tensors *set = NULL;
    (void)state;
    memset(of.bytes + of.index + COFFER__MCF_INDEX_HEADER + 2 * (COFFER__MCF_ENTRY + 16) + 4, 0, 1); /* _ */
    coffer_source *src = model_source_of(of.bytes, of.len);
    assert_int_equal(coffer_tensors_open(&set, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_find(set, "w\\xff\xc3\xa9\\x00"), 1);
    assert_int_equal(coffer_tensors_find(set, "good"), 0);
    coffer_tensors_close(set);
    coffer_source_close(src);
    free(of.bytes);
}

#endif

/* ---- Small files that expand to large tables ---- */

/* Every entry has the whole string table for its name, or every dim of the table for its shape. */
static image sharing_image(uint32_t count, bool names)
{
    tensor_row *rows = malloc(count * sizeof *rows);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = (tensor_row){ "0123456789abcdef", 6, 1, { 1, 1 }, DATA_AT, 1 };
    image of = make(rows, count, "{}");
    for (uint32_t i = 0; i < count; i++) {
        coffer__store_u32(entry_of(&of, i) + (names ? 0 : 16), 0);
        coffer__store_u32(entry_of(&of, i) + (names ? 4 : 12), names ? 16 * count : 2 * count);
    }
    free(rows);
    return of;
}

static void names_and_shapes_that_all_entries_share_are_bounded(void **state)
{
    (void)state;
    for (int names = 0; names < 2; names++) {
        image of = sharing_image(20000, names);
        coffer_source *src = model_source_of(of.bytes, of.len);
        coffer_report *report = model_check(src, true);
        coffer_mcf *model = NULL;
        assert_true(model_has(report, COFFER_E_LIMIT, COFFER_ERROR));
        assert_int_equal(coffer_mcf_open(&model, src, NULL, NULL), COFFER_E_LIMIT);
        coffer_report_free(report);
        coffer_source_close(src);
        free(of.bytes);
    }
}

/* A ModelInfo in which 10000 keys have one text of 100000 bytes: a gigabyte. */
static void texts_that_all_keys_share_are_bounded(void **state)
{
    enum { KEYS = 10000, TEXT = 100000, TABLE = COFFER__MCF_MODEL_INFO_SIZE + 8 + TEXT };
    size_t len = TABLE + (size_t)KEYS * COFFER__MCF_KV_ENTRY;
    char *config = malloc(len + 1);
    (void)state;
    memset(config, 'x', len);
    config[len] = 0;
    image of = make(&good_row, 1, config);
    uint8_t *section = of.bytes + of.directory + (size_t)2 * COFFER__MCF_DIRECTORY_ENTRY;
    uint8_t *info = of.bytes + coffer__load_u64(section + 8);
    coffer__store_u32(section, 1);
    memset(info, 0, COFFER__MCF_MODEL_INFO_SIZE);
    coffer__store_u32(info, 1);
    coffer__store_u32(info + 72, KEYS);
    coffer__store_u64(info + 80, TABLE);
    coffer__store_u32(info + COFFER__MCF_MODEL_INFO_SIZE, TEXT);
    for (size_t i = 0; i < KEYS; i++) {
        uint8_t *kv = info + TABLE + i * COFFER__MCF_KV_ENTRY;
        memset(kv, 0, COFFER__MCF_KV_ENTRY);
        coffer__store_u64(kv, COFFER__MCF_MODEL_INFO_SIZE);
        coffer__store_u32(kv + 8, 3);
        coffer__store_u64(kv + 16, COFFER__MCF_MODEL_INFO_SIZE);
    }
    assert_found(of, COFFER_E_LIMIT, "shared");
    free(config);
}

/* ---- Payloads of quantized tensors ---- */

static image quantized_image(uint32_t dtype, uint64_t rows, uint64_t cols, uint64_t size)
{
    const char *path = temp_path(temp_folder, "q.mcf");
    const uint64_t dims[2] = { rows, cols };
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    coffer_mcf_writer *writer = NULL;
    uint8_t payload[1024] = { 0 };
    image of = { 0 };
    opts.overwrite = true;
    opts.no_checksums = true;
    assert_true(size <= sizeof payload);
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &opts, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "q", coffer_mcf_dtype_from_code(dtype), 2, dims, payload, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    of.bytes = temp_read(path, &of.len);
    return of;
}

static void assert_payload_found(uint32_t dtype, uint64_t rows, uint64_t cols, uint64_t at, uint8_t value,
                                 coffer_status code, coffer_severity severity, const char *text)
{
    image of = quantized_image(dtype, rows, cols, 0);
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_mcf *model = model_open(src);
    of.bytes[coffer_mcf_tensor_at(model, 0)->offset + at] = value;
    coffer_mcf_close(model);
    coffer_report *report = model_check(src, true);
    if (!model_has(report, code, severity) || !strstr(model_text(report, code), text))
        fail_msg("type 0x%lx: \"%s\" does not say \"%s\"", (unsigned long)dtype, model_text(report, code),
                 text);
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
}

static void what_quantized_payloads_may_not_hold_is_found(void **state)
{
    (void)state;
    /* 2 rows of 40: 2 blocks and 1 super a row. q: scales 8 bytes, codes at 64. k: supers 4, subs at 64,
     * codes at 128. */
    assert_payload_found(0x20, 2, 40, 64, 0x80, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x21, 2, 40, 64, 0x08, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x30, 2, 40, 128, 0x20, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x31, 2, 40, 128, 0x80, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x32, 2, 40, 128, 0x04, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x33, 2, 40, 128, 0x02, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
    assert_payload_found(0x20, 2, 40, 64 + 32 + 8, 1, COFFER_E_BAD_VALUE, COFFER_ERROR, "last column");
    assert_payload_found(0x32, 2, 40, 128 + 3 * 12 + 3, 1, COFFER_E_BAD_VALUE, COFFER_ERROR, "last column");
    assert_payload_found(0x31, 2, 40, 64, 64, COFFER_E_BAD_VALUE, COFFER_ERROR, "sub-scales over 63");
    assert_payload_found(0x20, 2, 40, 1, 0x7c, COFFER_E_BAD_VALUE, COFFER_WARNING, "not finite");
    assert_payload_found(0x20, 2, 40, 9, 1, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, "between its regions");
    assert_payload_found(0x31, 2, 40, 127, 1, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                         "between its regions");
    assert_payload_found(0x11, 3, 3, 64 + 4, 0x10, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, "half byte");
    assert_payload_found(0x10, 3, 3, 64 + 8, 0x80, COFFER_E_BAD_VALUE, COFFER_WARNING, "most negative");
}

/* ---- Many ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others may be at work */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A million names in an order that suits nothing, each with the same payload. */
static void a_million_tensors_take_no_quadratic_time(void **state)
{
    const uint32_t count = 1000000;
    tensor_row *rows = malloc(count * sizeof *rows);
    char(*names)[16] = malloc(count * sizeof *names);
    double start = seconds();
    (void)state;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%07lu", (unsigned long)((uint64_t)i * 7919 % count));
        rows[i] = (tensor_row){ names[i], 6, 1, { 4, 0 }, DATA_AT, 4 };
    }
    image of = make(rows, count, "{}");
    coffer_source *src = model_source_of(of.bytes, of.len);
    coffer_report *report = model_check(src, true);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    for (uint32_t i = 0; i < count; i += 997)
        assert_int_equal(coffer_mcf_find_tensor(model, names[i], 7), i);
    coffer_mcf_close(model);
    coffer_report_free(report);
    coffer_source_close(src);
    free(of.bytes);
    free(names);
    free(rows);
    assert_true(seconds() - start < 120); /* a quadratic step takes hours */
}

/* Empty sections of as many types, each type twice: what counts is the first. */
static void a_great_many_sections_take_no_quadratic_time(void **state)
{
    const uint32_t count = 400000;
    const char *path = temp_path(temp_folder, "sections.mcf"), *small = temp_path(temp_folder, "small.mcf");
    size_t len = COFFER__MCF_HEADER_SIZE + (size_t)count * COFFER__MCF_DIRECTORY_ENTRY;
    uint8_t *bytes = calloc(1, len);
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *node = NULL;
    double start = seconds();
    (void)state;
    memcpy(bytes, "MCF", 4);
    coffer__store_u16(bytes + 4, 1);
    coffer__store_u32(bytes + 8, COFFER__MCF_HEADER_SIZE);
    coffer__store_u32(bytes + 12, count);
    coffer__store_u64(bytes + 16, COFFER__MCF_HEADER_SIZE);
    coffer__store_u64(bytes + 24, len);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = bytes + COFFER__MCF_HEADER_SIZE + (size_t)i * COFFER__MCF_DIRECTORY_ENTRY;
        coffer__store_u32(entry, 0x10000 + i % (count / 2));
        coffer__store_u32(entry + 4, i < count / 2); /* the version tells which was taken */
        coffer__store_u64(entry + 8, COFFER__MCF_HEADER_SIZE);
    }
    temp_write(path, bytes, len);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(node, path, small, &opts, NULL), COFFER_OK);
    coffer_node_free(node);
    coffer_source *src = model_source(small);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_section_count(model), count / 2);
    for (size_t i = 0; i < count / 2; i++)
        assert_int_equal(coffer_mcf_section_at(model, i)->version, 1);
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(bytes);
    assert_true(seconds() - start < 120); /* a quadratic step takes minutes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_image_that_the_others_spoil_is_clean),
        cmocka_unit_test(counts_times_sizes_that_overflow_are_out_of_bounds),
        cmocka_unit_test(shapes_whose_product_overflows_are_refused),
        cmocka_unit_test(offsets_and_sizes_that_wrap_are_out_of_bounds),
        cmocka_unit_test(a_size_that_the_shape_does_not_imply_is_refused),
        cmocka_unit_test(mantles_embeddings_without_scales_are_named_and_the_rest_reads),
        cmocka_unit_test(payloads_that_share_some_bytes_overlap_and_aliases_do_not),
        cmocka_unit_test(payloads_over_sections_or_the_header_overlap),
        cmocka_unit_test(bytes_that_nothing_refers_to_are_a_note),
        cmocka_unit_test(duplicate_names_are_found),
        cmocka_unit_test(names_outside_of_the_strings_are_found),
        cmocka_unit_test(reserved_fields_types_ranks_and_text_are_looked_at),
        cmocka_unit_test(quantized_tensors_need_flag_record_and_alignment),
        cmocka_unit_test(json_that_is_deep_broken_or_cut_is_found),
        cmocka_unit_test(a_duplicate_section_is_a_warning),
#ifndef COFFER__PORTABLE
        cmocka_unit_test(a_quantized_tensor_with_a_false_shape_is_refused_not_decoded),
        cmocka_unit_test(names_that_are_not_text_are_escaped_and_found),
#endif
        cmocka_unit_test(names_and_shapes_that_all_entries_share_are_bounded),
        cmocka_unit_test(texts_that_all_keys_share_are_bounded),
        cmocka_unit_test(what_quantized_payloads_may_not_hold_is_found),
        cmocka_unit_test(a_million_tensors_take_no_quadratic_time),
        cmocka_unit_test(a_great_many_sections_take_no_quadratic_time),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
