#include "support/container.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/json_write.h"
#include "base/options.h"
#include "formats/pycauset/pycauset_private.h"

#include <stdlib.h>
#include <string.h>

const char container_plain[] =
    "{\"rows\":2,\"cols\":3,\"matrix_type\":\"DENSE_FLOAT\",\"data_type\":\"FLOAT64\",\"seed\":0,"
    "\"payload_layout\":{\"kind\":\"raw_dense\",\"params\":{}},"
    "\"payload_uuid\":\"00112233445566778899aabbccddeeff\","
    "\"view\":{\"is_conjugated\":false,\"is_transposed\":false,\"scalar\":1.0}}";

enum { PAYLOAD = 48 };

static void set_all(coffer_pycauset_changes *changes, const coffer__json_value *object)
{
    for (const coffer__json_value *v = coffer__json_first(object); v; v = coffer__json_next(object, v)) {
        coffer__buffer text = COFFER__BUFFER_INIT;
        coffer__json_writer writer;
        if (v->kind == COFFER__JSON_NULL) {
            assert_int_equal(coffer_pycauset_changes_delete(changes, v->key, NULL), COFFER_OK);
            continue;
        }
        coffer__json_writer_init(&writer, &text, 0);
        coffer__json_write_value(&writer, v);
        assert_int_equal(coffer_pycauset_changes_set_json(changes, v->key, (char *)text.data, text.len, NULL),
                         COFFER_OK);
        coffer__buffer_free(&text);
    }
}

/* Adds a block of container_plain with the keys of json. */
static void encode(coffer__buffer *out, const char *json)
{
    const char *texts[2] = { container_plain, json };
    coffer_limits limits = coffer__limits(NULL);
    coffer_pycauset_changes *changes = NULL;
    const coffer_pycauset_value *root = NULL;
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__pycauset_system_changes_new(&changes, NULL), COFFER_OK);
    for (int i = 0; i < 2; i++) {
        coffer__json *parsed = NULL;
        if (coffer__json_parse(&parsed, texts[i], strlen(texts[i]), 0, &limits, &err))
            fail_msg("%s: %s", texts[i], err.text);
        set_all(changes, coffer__json_root(parsed));
        coffer__json_free(parsed);
    }
    if (coffer__pycauset_apply(&root, &memory, NULL, changes, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(coffer__pycauset_encode_block(out, root, NULL), COFFER_OK);
    coffer__arena_free(&memory);
    coffer_pycauset_changes_free(changes);
}

static container with_block(const coffer__buffer *block)
{
    coffer__pycauset_slot slot = { .generation = 1,
                                   .payload_offset = COFFER__PYCAUSET_HEADER_SIZE,
                                   .payload_length = PAYLOAD,
                                   .metadata_offset = COFFER__PYCAUSET_HEADER_SIZE + PAYLOAD,
                                   .metadata_length = block->len };
    container file = { .len = COFFER__PYCAUSET_HEADER_SIZE + PAYLOAD + block->len };
    file.bytes = malloc(file.len);
    assert_non_null(file.bytes);
    coffer__pycauset_store_fresh_header(file.bytes, &slot);
    for (int i = 0; i < PAYLOAD / 8; i++) {
        double value = i + 0.5;
        memcpy(file.bytes + COFFER__PYCAUSET_HEADER_SIZE + 8 * i, &value, 8);
        coffer__swap_numbers(file.bytes + COFFER__PYCAUSET_HEADER_SIZE + 8 * i, 8, 1);
    }
    memcpy(file.bytes + slot.metadata_offset, block->data, block->len);
    return file;
}

container container_make(const char *json)
{
    coffer__buffer block = COFFER__BUFFER_INIT;
    encode(&block, json);
    container file = with_block(&block);
    coffer__buffer_free(&block);
    return file;
}

container container_of_value(const void *value, size_t len)
{
    coffer__buffer block = COFFER__BUFFER_INIT;
    encode(&block, "{}");
    block.len = COFFER__PYCAUSET_BLOCK_HEADER;
    coffer__buffer_append(&block, value, len);
    coffer__store_u64(block.data + 16, len);
    coffer__store_u32(block.data + 24, coffer__crc32(0, block.data + COFFER__PYCAUSET_BLOCK_HEADER, len));
    container file = with_block(&block);
    coffer__buffer_free(&block);
    return file;
}

void container_free(container *file)
{
    free(file->bytes);
    file->bytes = NULL;
}

void container_set_slot(container *file, int slot, int field, uint64_t value)
{
    coffer__store_u64(file->bytes + slot + field, value);
    coffer__store_u32(file->bytes + slot + COFFER__PYCAUSET_SLOT_CRC_AT,
                      coffer__crc32(0, file->bytes + slot, COFFER__PYCAUSET_SLOT_CRC_AT));
}

uint64_t container_slot(const container *file, int slot, int field)
{
    return coffer__load_u64(file->bytes + slot + field);
}

void container_seal_block(container *file, int slot)
{
    uint8_t *block = file->bytes + container_slot(file, slot, CONTAINER_METADATA_AT);
    size_t len = (size_t)container_slot(file, slot, CONTAINER_METADATA_LEN) - COFFER__PYCAUSET_BLOCK_HEADER;
    coffer__store_u32(block + 24, coffer__crc32(0, block + COFFER__PYCAUSET_BLOCK_HEADER, len));
}

uint64_t container_append_block(container *file, const char *json)
{
    coffer__buffer block = COFFER__BUFFER_INIT;
    size_t place = (file->len + 15) & ~(size_t)15;
    encode(&block, json);
    file->bytes = realloc(file->bytes, place + block.len);
    assert_non_null(file->bytes);
    memset(file->bytes + file->len, 0, place - file->len);
    memcpy(file->bytes + place, block.data, block.len);
    file->len = place + block.len;
    coffer__buffer_free(&block);
    return place;
}

coffer_status container_open_status(const container *file)
{
    coffer_source *src = scan_source_of(file->bytes, file->len);
    coffer_pycauset *matrix = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_pycauset_open(&matrix, src, NULL, &err);
    assert_int_equal(status, err.status);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return status;
}

void container_expect(const container *file, coffer_status code, coffer_severity severity, bool ok)
{
    coffer_source *src = scan_source_of(file->bytes, file->len);
    coffer_report *report = scan_check(src, true);
    if (!scan_has(report, code, severity))
        fail_msg("%s %s is not among the %zu findings; the first is %s", coffer_severity_name(severity),
                 coffer_status_name(code), coffer_report_count(report),
                 coffer_report_count(report) ? coffer_report_at(report, 0)->text : "");
    if (ok != (coffer_report_total(report, COFFER_ERROR) == 0))
        fail_msg("%s: %llu errors", coffer_status_name(code),
                 (unsigned long long)coffer_report_total(report, COFFER_ERROR));
    coffer_report_free(report);
    coffer_source_close(src);
}

void container_expect_clean(const container *file)
{
    coffer_source *src = scan_source_of(file->bytes, file->len);
    coffer_report *report = scan_check(src, true);
    if (coffer_report_count(report) > 0)
        fail_msg("%s", coffer_report_at(report, 0)->text);
    coffer_report_free(report);
    assert_int_equal(container_open_status(file), COFFER_OK);
    coffer_source_close(src);
}

void container_assert_sound(const char *path)
{
    coffer_source *src = scan_source(path);
    coffer_report *report = scan_check(src, true);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (coffer_report_at(report, i)->severity != COFFER_NOTE)
            fail_msg("%s: %s", path, coffer_report_at(report, i)->text);
    }
    coffer_report_free(report);
    coffer_pycauset_close(container_open(src));
    coffer_source_close(src);
}

coffer_pycauset *container_open(coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset *matrix = NULL;
    if (coffer_pycauset_open(&matrix, src, NULL, &err))
        fail_msg("%s", err.text);
    return matrix;
}

uint64_t container_commit(const char *path, const char *key, uint64_t value)
{
    coffer_pycauset_editor *editor = NULL;
    coffer_pycauset_changes *changes = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t generation = 0;
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, key, value, NULL), COFFER_OK);
    if (coffer_pycauset_editor_open(&editor, path, NULL, &err) ||
        coffer_pycauset_editor_commit(&generation, editor, changes, &err))
        fail_msg("%s", err.text);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    return generation;
}

uint64_t container_read(const char *path, const char *key, uint64_t *generation)
{
    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    uint64_t value =
        coffer_pycauset_value_u64(coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), key));
    if (generation)
        *generation = coffer_pycauset_get_info(matrix)->generation;
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return value;
}
