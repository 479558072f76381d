/* Values with parts, payloads by their offset, and the version of a file. */
#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

static coffer_mldf *open_made(dataset *made, coffer_source **src, uint8_t **bytes)
{
    size_t len;
    *bytes = dataset_make(&len, NULL, made);
    *src = dataset_source_of(*bytes, len);
    dataset_free(made);
    return dataset_open(*src);
}

static void close_made(coffer_mldf *set, coffer_source *src, uint8_t *bytes)
{
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
}

static void the_texts_of_a_hierarchy_are_its_parts(void **state)
{
    static const uint8_t value[] = "\3\0\0\0\3\0\0\0\3\0\0\0\5\0\0\0oneab";
    dataset *made = dataset_new(2, NULL);
    coffer_source *src;
    uint8_t *bytes;
    (void)state;
    dataset_field(made, "h", COFFER_MLDF_TEXT_HIERARCHICAL, 0);
    dataset_bytes(made, 0, 0, value, sizeof value - 1, NULL);
    coffer_mldf *set = open_made(made, &src, &bytes);
    coffer_mldf_parts *parts = NULL;
    coffer_mldf_part part = COFFER_MLDF_PART_INIT;
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 0, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_parts_count(parts), 3);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 0, NULL), COFFER_OK);
    assert_int_equal(part.type, COFFER_MLDF_TEXT);
    assert_null(part.name);
    assert_int_equal(part.size, 3);
    assert_memory_equal(part.bytes, "one", 3);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 1, NULL), COFFER_OK);
    assert_int_equal(part.size, 0);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 2, NULL), COFFER_OK);
    assert_memory_equal(part.bytes, "ab", 2);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 3, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_mldf_parts_free(parts);
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 1, 0, NULL), COFFER_E_MISSING);
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 2, 0, NULL), COFFER_E_OUT_OF_BOUNDS);
    close_made(set, src, bytes);
}

static void a_multimodal_sample_has_names_and_types(void **state)
{
    static const uint8_t value[] = "\2\0\0\0\x28\0\1\0\2\0\0\0thi\x0a\0\2\0\0\0\0\0px";
    dataset *made = dataset_new(2, NULL);
    coffer_source *src;
    uint8_t *bytes;
    (void)state;
    dataset_field(made, "m", COFFER_MLDF_MULTIMODAL, 0);
    dataset_field(made, "n", COFFER_MLDF_INT, 0);
    dataset_bytes(made, 0, 0, value, sizeof value - 1, NULL);
    dataset_bytes(made, 1, 0, value, sizeof value - 2, NULL);
    coffer_mldf *set = open_made(made, &src, &bytes);
    coffer_mldf_parts *parts = NULL;
    coffer_mldf_part part = COFFER_MLDF_PART_INIT;
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 0, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_parts_count(parts), 2);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 0, NULL), COFFER_OK);
    assert_int_equal(part.type, COFFER_MLDF_TEXT);
    assert_int_equal(part.name_len, 1);
    assert_memory_equal(part.name, "t", 1);
    assert_memory_equal(part.bytes, "hi", 2);
    assert_int_equal(coffer_mldf_parts_at(&part, parts, 1, NULL), COFFER_OK);
    assert_int_equal(part.type, COFFER_MLDF_IMAGE_RAW);
    assert_memory_equal(part.name, "px", 2);
    assert_int_equal(part.size, 0);
    coffer_mldf_parts_free(parts);
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 1, 0, NULL), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mldf_get_parts(&parts, set, 0, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    close_made(set, src, bytes);
}

static void a_payload_is_read_by_its_offset(void **state)
{
    dataset_opts opts = { .checksummed = true };
    dataset *made = dataset_small(5, &opts);
    coffer_source *src;
    uint8_t *bytes;
    (void)state;
    coffer_mldf *set = open_made(made, &src, &bytes);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_mldf_allocation found = COFFER_MLDF_ALLOCATION_INIT;
    coffer_bytes value = COFFER_BYTES_INIT, same = COFFER_BYTES_INIT;
    for (uint64_t i = 0; i < coffer_mldf_allocation_count(set); i++) {
        assert_int_equal(coffer_mldf_allocation_at(&found, set, i, NULL), COFFER_OK);
        assert_true(found.has_crc32);
        assert_int_equal(coffer_mldf_read_payload(&value, set, found.offset, NULL), COFFER_OK);
        assert_int_equal(value.size, found.size);
    }
    assert_int_equal(coffer_mldf_allocation_at(&found, set, coffer_mldf_allocation_count(set), NULL),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_mldf_entry_at(&entry, set, 3, SMALL_CAPTION, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_read_payload(&value, set, entry.offset, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_read_stored(&same, set, 3, SMALL_CAPTION, NULL), COFFER_OK);
    assert_int_equal(value.size, same.size);
    assert_memory_equal(value.data, same.data, same.size);
    assert_int_equal(coffer_mldf_read_payload(&value, set, entry.offset + 1, NULL),
                     COFFER_E_DANGLING_REFERENCE);
    bytes[entry.offset] ^= 1;
    assert_int_equal(coffer_mldf_read_payload(&value, set, entry.offset, NULL), COFFER_E_BAD_CHECKSUM);
    coffer_free(value.data);
    coffer_free(same.data);
    close_made(set, src, bytes);
}

static void a_newer_minor_version_is_told_by_the_handle(void **state)
{
    dataset *made = dataset_small(2, NULL);
    size_t len;
    uint8_t *bytes = dataset_make(&len, NULL, made);
    (void)state;
    for (uint16_t minor = 0; minor < 8; minor += 7) {
        coffer__store_u16(bytes + COFFER__MLDF_HEADER_AT + COFFER__MLDF_MINOR_AT, minor);
        coffer_source *src = dataset_source_of(bytes, len);
        coffer_mldf *set = dataset_open(src);
        assert_int_equal(coffer_mldf_version_major(set), 1);
        assert_int_equal(coffer_mldf_version_minor(set), minor);
        assert_int_equal(coffer_mldf_is_newer(set), minor > 0);
        coffer_mldf_close(set);
        coffer_source_close(src);
    }
    free(bytes);
    dataset_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_texts_of_a_hierarchy_are_its_parts),
        cmocka_unit_test(a_multimodal_sample_has_names_and_types),
        cmocka_unit_test(a_payload_is_read_by_its_offset),
        cmocka_unit_test(a_newer_minor_version_is_told_by_the_handle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
