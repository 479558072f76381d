#include "support/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *make(const char *name, size_t sequences)
{
    const char *path = temp_path(temp_folder, name);
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.model_name = "old";
    opts.extra_json = "{\"note.a\": 1, \"nested\": {\"x\": [1, 2]}}";
    assert_int_equal(scan_create(path, &opts, sequences, 5, NULL), COFFER_OK);
    return path;
}

static void assert_metadata_has(const char *path, const char *text)
{
    coffer_mscan *scan = NULL;
    assert_int_equal(coffer_mscan_open_path(&scan, path, NULL, NULL), COFFER_OK);
    if (!strstr(coffer_mscan_metadata(scan, NULL), text))
        fail_msg("no %s in %s", text, coffer_mscan_metadata(scan, NULL));
    coffer_mscan_close(scan);
}

static void changes_of_one_commit_are_all_written(void **state)
{
    const char *path = make("set.mscan", 2);
    coffer_mscan_editor *editor = NULL;
    (void)state;
    assert_int_equal(coffer_mscan_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set_text(editor, "model_name", "new", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set(editor, "nested.x.1", "{\"y\": null}", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set(editor, "added", "3", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set_text(editor, "params.1", "renamed", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set_text(editor, "sequences.1.source", "text", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_remove(editor, "note.a", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_commit(editor, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_commit(editor, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mscan_editor_close(editor);
    scan_assert_clean(path);
    assert_metadata_has(path, "\"model_name\":\"new\"");
    assert_metadata_has(path, "\"nested\":{\"x\":[1,{\"y\":null}]}");
    assert_metadata_has(path, "\"added\":3");
    assert_metadata_has(path, "\"1\":\"renamed\"");
    assert_metadata_has(path, "\"source\":\"text\"");
}

static void what_follows_from_the_records_cannot_be_set(void **state)
{
    static const char *const keys[] = { "",          "sequences",   "sequences.0", "sequences.0.num_tokens",
                                        "checksums", "front_crc32", "damage",      "id_to_param_name_map" };
    const char *path = make("refused.mscan", 2);
    coffer_mscan_editor *editor = NULL;
    (void)state;
    assert_int_equal(coffer_mscan_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(coffer_mscan_editor_set(editor, keys[i], "1", NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_editor_remove(editor, "params.0", NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_editor_remove(editor, "absent", NULL), COFFER_E_NOT_FOUND);
    assert_int_equal(coffer_mscan_editor_set(editor, "absent.deep", "1", NULL), COFFER_E_NOT_FOUND);
    assert_int_equal(coffer_mscan_editor_set(editor, "model_name", "{", NULL), COFFER_E_BAD_JSON);
    assert_int_equal(coffer_mscan_editor_set(editor, "params.0", "7", NULL), COFFER_E_BAD_VALUE);
    coffer_mscan_editor_close(editor);
    assert_metadata_has(path, "\"model_name\":\"old\"");
}

static void metadata_that_outgrows_its_room_moves_the_records(void **state)
{
    const char *path = make("large.mscan", 2);
    coffer_mscan_editor *editor = NULL;
    char *text = malloc(40001);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', 40000);
    text[40000] = '\0';
    assert_int_equal(coffer_mscan_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_set_text(editor, "note", text, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_editor_commit(editor, NULL), COFFER_OK);
    coffer_mscan_editor_close(editor);
    free(text);
    scan_assert_clean(path);
}

static void assert_ids(const char *path, const uint64_t *ids, size_t count)
{
    coffer_mscan *scan = NULL;
    assert_int_equal(coffer_mscan_open_path(&scan, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_sequence_count(scan), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(coffer_mscan_sequence_at(scan, i)->sequence_id, ids[i]);
    assert_int_equal(coffer_mscan_record_count(scan), count * 10);
    coffer_mscan_close(scan);
    scan_assert_clean(path);
}

static void sequences_keep_their_ids_when_they_are_extracted_joined_and_deleted(void **state)
{
    static const size_t chosen[] = { 1, 3 };
    const char *path = make("all.mscan", 4), *part = temp_path(temp_folder, "part.mscan");
    const char *joined = temp_path(temp_folder, "joined.mscan");
    coffer_mscan_extract_opts opts = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_mscan *scan = NULL;
    (void)state;
    opts.sequences = chosen;
    opts.sequence_count = 2;
    assert_int_equal(coffer_mscan_open_path(&scan, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_extract(part, scan, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_extract(part, scan, &opts, NULL), COFFER_E_EXISTS);
    assert_ids(part, (uint64_t[]){ 1, 3 }, 2);
    const coffer_mscan *both[] = { scan, scan };
    assert_int_equal(coffer_mscan_concat(joined, both, 2, NULL, NULL), COFFER_OK);
    assert_ids(joined, (uint64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, 8);
    coffer_mscan_close(scan);
    assert_int_equal(coffer_mscan_update_keep(joined, &opts, NULL), COFFER_OK);
    assert_ids(joined, (uint64_t[]){ 1, 3 }, 2);
    opts.sequences = (const size_t[]){ 1, 0 };
    assert_int_equal(coffer_mscan_update_keep(joined, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_ids(joined, (uint64_t[]){ 1, 3 }, 2);
}

static void scans_with_different_scales_are_not_joined(void **state)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization scale = COFFER_MSCAN_QUANTIZATION_INIT;
    const char *a = temp_path(temp_folder, "a.mscan"), *b = temp_path(temp_folder, "b.mscan");
    coffer_mscan *scans[2] = { NULL, NULL };
    (void)state;
    opts.activation = &scale;
    scale.scale = 0.5;
    assert_int_equal(scan_create(a, &opts, 1, 2, NULL), COFFER_OK);
    scale.scale = 0.25;
    assert_int_equal(scan_create(b, &opts, 1, 2, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_open_path(&scans[0], a, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_open_path(&scans[1], b, NULL, NULL), COFFER_OK);
    const char *out = temp_path(temp_folder, "never.mscan");
    assert_int_equal(coffer_mscan_concat(out, (const coffer_mscan *const *)scans, 2, NULL, NULL),
                     COFFER_E_INCONSISTENT);
    assert_false(temp_exists(out));
    coffer_mscan_close(scans[0]);
    coffer_mscan_close(scans[1]);
}

static void damage_is_not_copied(void **state)
{
    const char *path = make("bent.mscan", 2), *out = temp_path(temp_folder, "copy.mscan");
    coffer_mscan *scan = NULL;
    size_t len;
    (void)state;
    uint8_t *bytes = temp_read(path, &len);
    bytes[len - 1] ^= 1;
    temp_write(path, bytes, len);
    free(bytes);
    assert_int_equal(coffer_mscan_open_path(&scan, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_extract(out, scan, NULL, NULL), COFFER_E_BAD_CHECKSUM);
    assert_false(temp_exists(out));
    coffer_mscan_close(scan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_one_commit_are_all_written),
        cmocka_unit_test(what_follows_from_the_records_cannot_be_set),
        cmocka_unit_test(metadata_that_outgrows_its_room_moves_the_records),
        cmocka_unit_test(sequences_keep_their_ids_when_they_are_extracted_joined_and_deleted),
        cmocka_unit_test(scans_with_different_scales_are_not_joined),
        cmocka_unit_test(damage_is_not_copied),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
