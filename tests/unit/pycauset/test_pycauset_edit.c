/* Commits to the metadata. */
#include "formats/pycauset/pycauset_private.h"
#include "support/container.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *fresh(const char *json)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    container file = container_make(json);
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    return path;
}

static coffer_pycauset_changes *list(void)
{
    coffer_pycauset_changes *changes = NULL;
    assert_int_equal(coffer_pycauset_changes_new(&changes, NULL), COFFER_OK);
    return changes;
}

static coffer_pycauset_editor *edit(const char *path)
{
    coffer_pycauset_editor *editor = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_pycauset_editor_open(&editor, path, NULL, &err))
        fail_msg("%s", err.text);
    return editor;
}

/* One commit of the list, which is freed; the status of the commit. */
static coffer_status commit(const char *path, coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_pycauset_editor *editor = edit(path);
    coffer_status status = coffer_pycauset_editor_commit(NULL, editor, changes, err);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    return status;
}

static coffer_status set_json(const char *path, const char *key, const char *json, coffer_error *err)
{
    coffer_pycauset_changes *changes = list();
    coffer_status status = coffer_pycauset_changes_set_json(changes, key, json, strlen(json), err);
    if (status == COFFER_OK)
        return commit(path, changes, err);
    coffer_pycauset_changes_free(changes);
    return status;
}

static void assert_unchanged(const char *path, const uint8_t *before, size_t len)
{
    assert_true(temp_holds(path, before, len));
}

static void a_commit_appends_a_block_and_flips_the_inactive_slot(void **state)
{
    const char *path = fresh("{}");
    size_t before_len, len;
    uint8_t *before = temp_read(path, &before_len), *after;
    container file;
    (void)state;
    assert_int_equal(container_commit(path, "properties.v", 7), 2);
    after = temp_read(path, &len);
    file = (container){ after, len };
    assert_int_equal(container_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_AT),
                     (before_len + 15) / 16 * 16);
    assert_int_equal(container_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION), 2);
    /* All else is as it was. */
    assert_memory_equal(after, before, CONTAINER_SLOT_B);
    assert_memory_equal(after + 272, before + 272, before_len - 272);
    container_expect_clean(&file);
    assert_int_equal(container_commit(path, "properties.v", 8), 3);
    assert_int_equal(container_read(path, "properties.v", NULL), 8);
    free(before);
    free(after);
}

static void unknown_data_is_kept_through_every_commit(void **state)
{
    const char *path = fresh("{\"future\":{\"deep\":[1,-2,2.5,{\"x\":\"y\"}]},\"zz\":true}");
    coffer_source *src;
    coffer_pycauset *matrix;
    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        container_commit(path, "properties.v", i);
    src = scan_source(path);
    matrix = container_open(src);
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(root, "future.deep.1")), -2);
    assert_string_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(root, "future.deep.3.x"), NULL),
                        "y");
    assert_true(coffer_pycauset_value_bool(coffer_pycauset_value_find(root, "zz")));
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
}

static void many_changes_of_every_kind_are_one_commit(void **state)
{
    const char *path = fresh("{\"properties\":{\"old\":1,\"list\":[1,2,3]}}");
    coffer_pycauset_changes *changes = list();
    (void)state;
    assert_int_equal(coffer_pycauset_changes_set_bool(changes, "properties.b", true, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_i64(changes, "properties.i", -5, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_i64(changes, "properties.p", 5, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_f64(changes, "properties.f", 0.5, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_string(changes, "properties.s", "a\0b", 3, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_bytes(changes, "a.b.c\\.d", "\xff", 1, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.list.1", 22, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.list.3", 44, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_delete(changes, "properties.list.0", NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_delete(changes, "properties.old", NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);

    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    size_t len;
    assert_int_equal(coffer_pycauset_get_info(matrix)->generation, 2);
    assert_true(coffer_pycauset_value_bool(coffer_pycauset_value_find(root, "properties.b")));
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(root, "properties.i")), -5);
    assert_int_equal(coffer_pycauset_value_kind(coffer_pycauset_value_find(root, "properties.p")),
                     COFFER_PYCAUSET_U64);
    assert_memory_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(root, "properties.s"), &len),
                        "a\0b", 4);
    assert_int_equal(len, 3);
    assert_int_equal(coffer_pycauset_value_kind(coffer_pycauset_value_find(root, "a.b.c\\.d")),
                     COFFER_PYCAUSET_BYTES);
    const coffer_pycauset_value *array = coffer_pycauset_value_find(root, "properties.list");
    assert_int_equal(coffer_pycauset_value_count(array), 3);
    assert_int_equal(coffer_pycauset_value_u64(coffer_pycauset_value_at(array, 0)), 22);
    assert_int_equal(coffer_pycauset_value_u64(coffer_pycauset_value_at(array, 2)), 44);
    assert_null(coffer_pycauset_value_find(root, "properties.old"));
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
}

static void a_thousand_keys_in_one_commit_are_sorted(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_changes *changes = list();
    char key[40];
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "properties.k%u", i * 7919 % 1000);
        assert_int_equal(coffer_pycauset_changes_set_u64(changes, key, i, NULL), COFFER_OK);
    }
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);
    for (unsigned i = 0; i < 1000; i += 111) {
        snprintf(key, sizeof key, "properties.k%u", i * 7919 % 1000);
        assert_int_equal(container_read(path, key, NULL), i);
    }
    container_assert_sound(path);
}

static void when_one_change_cannot_be_applied_nothing_is_written(void **state)
{
    const char *path = fresh("{\"properties\":{\"text\":\"x\",\"list\":[1]}}");
    static const char *const wrong[] = { "properties.text.below", "properties.list.2", "properties.list.x",
                                         "properties.list.-1" };
    size_t len;
    uint8_t *before = temp_read(path, &len);
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        coffer_pycauset_changes *changes = list();
        assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.good", 1, NULL), COFFER_OK);
        assert_int_equal(coffer_pycauset_changes_set_u64(changes, wrong[i], 1, NULL), COFFER_OK);
        assert_int_equal(commit(path, changes, &err), COFFER_E_INVALID_ARGUMENT);
        assert_unchanged(path, before, len);
    }
    coffer_pycauset_changes *changes = list();
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.good", 1, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_delete(changes, "properties.missing", NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, &err), COFFER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "missing"));
    assert_unchanged(path, before, len);
    free(before);
}

static void keys_that_describe_the_payload_cannot_be_set(void **state)
{
    static const char *const reserved[] = { "rows",
                                            "cols",
                                            "matrix_type",
                                            "data_type",
                                            "payload_uuid",
                                            "payload_layout.kind",
                                            "block_manifest",
                                            "object_type",
                                            "n",
                                            "payload_checksums" };
    coffer_pycauset_changes *changes = list();
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        assert_int_equal(coffer_pycauset_changes_set_u64(changes, reserved[i], 1, &err),
                         COFFER_E_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "is reserved: "));
    }
    assert_int_equal(coffer_pycauset_changes_delete(changes, "rows", &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "rows_of_mine", 1, &err), COFFER_OK);
    coffer_pycauset_changes_free(changes);
}

static void paths_and_texts_that_cannot_be_are_refused(void **state)
{
    coffer_pycauset_changes *changes = list();
    char deep[200], *long_key = malloc(70000);
    (void)state;
    memset(long_key, 'k', 69999);
    long_key[69999] = '\0';
    for (size_t i = 0; i < sizeof deep - 1; i++)
        deep[i] = i % 2 ? '.' : 'a';
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "", 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "a..b", 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "a.", 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "\xff", 1, NULL), COFFER_E_BAD_TEXT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, long_key, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, deep, 1, NULL), COFFER_E_LIMIT);
    assert_int_equal(coffer_pycauset_changes_set_string(changes, "s", "\xff", 1, NULL), COFFER_E_BAD_TEXT);
    assert_int_equal(coffer_pycauset_changes_set_json(changes, "s", "null", 4, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_changes_set_json(changes, "s", "[1,", 3, NULL), COFFER_E_BAD_JSON);
    assert_int_equal(coffer_pycauset_changes_set_cached(changes, "", 1, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_changes_free(changes);
    free(long_key);
}

static void what_would_be_nested_too_deep_is_not_written(void **state)
{
    const char *path = fresh("{}");
    char json[200] = "";
    size_t len;
    uint8_t *before = temp_read(path, &len);
    (void)state;
    for (int i = 0; i < 60; i++)
        strcat(json, "[");
    for (int i = 0; i < 60; i++)
        strcat(json, "]");
    assert_int_equal(set_json(path, "a.b.c", json, NULL), COFFER_OK);
    assert_int_equal(set_json(path, "a.b.c.0.0.0", json, NULL), COFFER_E_LIMIT);
    container_assert_sound(path);
    free(before);
}

static void values_of_the_wrong_kind_for_known_keys_are_refused(void **state)
{
    const char *path = fresh("{\"properties\":{\"a\":1}}");
    static const char *const wrong[][2] = { { "properties", "5" },
                                            { "provenance", "[]" },
                                            { "cached", "1" },
                                            { "cached.trace", "1.5" },
                                            { "cached.trace", "{\"value\":1}" },
                                            { "seed", "\"x\"" },
                                            { "view", "[]" },
                                            { "view.is_transposed", "1" },
                                            { "view.scalar", "\"x\"" } };
    size_t len;
    uint8_t *before = temp_read(path, &len);
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (set_json(path, wrong[i][0], wrong[i][1], &err) != COFFER_E_INVALID_ARGUMENT)
            fail_msg("%s = %s was taken", wrong[i][0], wrong[i][1]);
        assert_unchanged(path, before, len);
    }
    assert_int_equal(set_json(path, "seed", "12", NULL), COFFER_OK);
    path = fresh("{\"matrix_type\":\"UNIT_VECTOR\",\"cols\":1}");
    assert_int_equal(set_json(path, "seed", "1", &err), COFFER_E_INVALID_ARGUMENT);
    free(before);
}

static void a_cached_value_is_signed_for_the_view_after_the_commit(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_changes *changes = list();
    bool stale;
    (void)state;
    assert_int_equal(coffer_pycauset_changes_set_cached(changes, "tr.ace", 1.5, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_changes_set_f64(changes, "view.scalar", 3, NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);
    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    assert_true(coffer_pycauset_value_f64(coffer_pycauset_cached(matrix, "tr.ace", &stale)) == 1.5);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);

    changes = list();
    assert_int_equal(coffer_pycauset_changes_set_f64(changes, "view.scalar", 4, NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);
    src = scan_source(path);
    matrix = container_open(src);
    assert_null(coffer_pycauset_cached(matrix, "tr.ace", &stale));
    assert_true(stale);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
}

static void a_scalar_given_as_a_whole_number_is_written_as_a_real_one(void **state)
{
    static const char *const given[][2] = { { "view.scalar", "2" },
                                            { "view.scalar", "-2" },
                                            { "view.scalar", "{\"real\":2,\"imag\":-1}" },
                                            { "view.scalar.imag", "3" },
                                            { "view", "{\"scalar\":4}" } };
    const char *path = fresh("{}");
    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        assert_int_equal(set_json(path, given[i][0], given[i][1], NULL), COFFER_OK);
        coffer_pycauset_editor *editor = edit(path);
        const coffer_pycauset_value *scalar =
            coffer_pycauset_value_find(coffer_pycauset_editor_metadata(editor), "view.scalar");
        const coffer_pycauset_value *imag = coffer_pycauset_value_find(scalar, "imag");
        assert_int_equal(coffer_pycauset_value_kind(imag ? imag : scalar), COFFER_PYCAUSET_F64);
        if (imag)
            assert_int_equal(coffer_pycauset_value_kind(coffer_pycauset_value_find(scalar, "real")),
                             COFFER_PYCAUSET_F64);
        coffer_pycauset_editor_close(editor);
    }
}

static void transposing_the_view_turns_rows_and_cols_and_leaves_the_values(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_changes *changes = list();
    double real, imag;
    (void)state;
    assert_int_equal(coffer_pycauset_changes_set_bool(changes, "view.is_transposed", true, NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);
    coffer_source *src = scan_source(path);
    coffer_pycauset *matrix = container_open(src);
    assert_int_equal(coffer_pycauset_get_info(matrix)->rows, 3);
    assert_int_equal(coffer_pycauset_get_info(matrix)->stored_rows, 2);
    assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, 2, 1, NULL), COFFER_OK);
    assert_true(real == 5.5);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
}

static void checksums_are_kept_and_verified(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_changes *changes = list();
    size_t len;
    (void)state;
    assert_int_equal(coffer_pycauset_changes_set_checksums(changes, NULL), COFFER_OK);
    assert_int_equal(commit(path, changes, NULL), COFFER_OK);
    container_assert_sound(path);
    uint8_t *bytes = temp_read(path, &len);
    container file = { bytes, len };
    bytes[4100] ^= 1;
    container_expect(&file, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, false);
    free(bytes);
}

static void a_second_writer_is_refused(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_editor *first = edit(path), *second = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_pycauset_editor_open(&second, path, NULL, &err), COFFER_E_LOCKED);
    assert_non_null(strstr(err.text, "locked by another writer"));
    coffer_pycauset_editor_close(first);
    second = edit(path);
    coffer_pycauset_editor_close(second);
}

static void an_update_that_never_flipped_its_slot_is_stepped_over(void **state)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    container file = container_make("{}");
    (void)state;
    container_append_block(&file, "{\"properties\":{\"v\":99}}");
    temp_write(path, file.bytes, file.len - 3); /* torn, too */
    assert_int_equal(container_read(path, "properties.v", NULL), 0);
    assert_int_equal(container_commit(path, "properties.v", 2), 2);
    assert_int_equal(container_read(path, "properties.v", NULL), 2);
    container_free(&file);
}

static void a_file_that_another_replaced_or_wrote_to_is_not_committed_to(void **state)
{
    const char *path = fresh("{}"), *aside = temp_path(temp_folder, "aside");
    coffer_pycauset_editor *editor = edit(path);
    coffer_pycauset_changes *changes = list();
    (void)state;
    assert_int_equal(coffer_pycauset_changes_set_u64(changes, "properties.v", 1, NULL), COFFER_OK);
    temp_copy(path, aside);
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, NULL), COFFER_E_CHANGED);
    coffer_pycauset_editor_close(editor);

    editor = edit(path);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_int_equal(coffer_pycauset_editor_commit(NULL, editor, changes, NULL), COFFER_E_CHANGED);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
}

static void an_open_reader_keeps_its_state_through_commits(void **state)
{
    const char *path = fresh("{\"properties\":{\"v\":1}}");
    static const coffer_access kinds[] = { COFFER_ACCESS_MAP, COFFER_ACCESS_READ };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
        coffer_source *src = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset *again = NULL;
        uint64_t before = container_read(path, "properties.v", NULL);
        double real, imag;
        opts.access = kinds[i];
        assert_int_equal(coffer_source_open(&src, path, &opts, NULL), COFFER_OK);
        coffer_pycauset *matrix = container_open(src);
        for (uint64_t v = 10; v < 14; v++)
            container_commit(path, "properties.v", v + i);
        assert_int_equal(coffer_pycauset_value_u64(
                             coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.v")),
                         before);
        assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, 0, 1, NULL), COFFER_OK);
        assert_true(real == 1.5);
        /* Both slots now refer to bytes after the end that this source knows. */
        assert_int_equal(coffer_pycauset_open(&again, src, NULL, &err), COFFER_E_CHANGED);
        assert_non_null(strstr(err.text, "open it again"));
        coffer_pycauset_close(matrix);
        coffer_source_close(src);
        assert_int_equal(container_read(path, "properties.v", NULL), 13 + i);
    }
}

enum { COMMITTERS = 8, COMMITS = 20 };

typedef struct committer {
    coffer_pycauset_editor *editor;
    size_t index;
    uint64_t generations[COMMITS]; /* 0: refused */
    size_t refused;
} committer;

/* Every fifth list of a thread cannot be applied. */
static void *commit_many(void *context)
{
    committer *self = context;
    for (size_t i = 0; i < COMMITS; i++) {
        char key[64];
        coffer_pycauset_changes *changes = NULL;
        snprintf(key, sizeof key, "properties.t%zu%s", self->index, i % 5 == 4 ? ".below" : "");
        if (coffer_pycauset_changes_new(&changes, NULL) == COFFER_OK &&
            coffer_pycauset_changes_set_u64(changes, key, i, NULL) == COFFER_OK &&
            coffer_pycauset_editor_commit(&self->generations[i], self->editor, changes, NULL) != COFFER_OK)
            self->refused++;
        coffer_pycauset_changes_free(changes);
    }
    return NULL;
}

static void commits_of_many_threads_all_count_and_a_wrong_one_fails_alone(void **state)
{
    const char *path = fresh("{}");
    coffer_pycauset_editor *editor = edit(path);
    committer committers[COMMITTERS] = { 0 };
    pthread_t threads[COMMITTERS];
    bool seen[COMMITTERS * COMMITS + 2] = { false };
    (void)state;
    for (size_t i = 0; i < COMMITTERS; i++) {
        committers[i] = (committer){ .editor = editor, .index = i };
        assert_int_equal(pthread_create(&threads[i], NULL, commit_many, &committers[i]), 0);
    }
    for (size_t i = 0; i < COMMITTERS; i++)
        pthread_join(threads[i], NULL);
    coffer_pycauset_editor_close(editor);
    for (size_t i = 0; i < COMMITTERS; i++) {
        char key[64];
        snprintf(key, sizeof key, "properties.t%zu", i);
        assert_int_equal(container_read(path, key, NULL), COMMITS - 2);
        assert_int_equal(committers[i].refused, COMMITS / 5);
        uint64_t last = 1;
        for (size_t k = 0; k < COMMITS; k++) {
            uint64_t generation = committers[i].generations[k];
            if (k % 5 == 4)
                continue;
            assert_true(generation > last && generation < sizeof seen / sizeof *seen && !seen[generation]);
            seen[generation] = true;
            last = generation;
        }
    }
    size_t len;
    uint8_t *bytes = temp_read(path, &len);
    container file = { bytes, len };
    container_expect_clean(&file);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_appends_a_block_and_flips_the_inactive_slot),
        cmocka_unit_test(unknown_data_is_kept_through_every_commit),
        cmocka_unit_test(many_changes_of_every_kind_are_one_commit),
        cmocka_unit_test(a_thousand_keys_in_one_commit_are_sorted),
        cmocka_unit_test(when_one_change_cannot_be_applied_nothing_is_written),
        cmocka_unit_test(keys_that_describe_the_payload_cannot_be_set),
        cmocka_unit_test(paths_and_texts_that_cannot_be_are_refused),
        cmocka_unit_test(what_would_be_nested_too_deep_is_not_written),
        cmocka_unit_test(values_of_the_wrong_kind_for_known_keys_are_refused),
        cmocka_unit_test(a_cached_value_is_signed_for_the_view_after_the_commit),
        cmocka_unit_test(a_scalar_given_as_a_whole_number_is_written_as_a_real_one),
        cmocka_unit_test(transposing_the_view_turns_rows_and_cols_and_leaves_the_values),
        cmocka_unit_test(checksums_are_kept_and_verified),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(an_update_that_never_flipped_its_slot_is_stepped_over),
        cmocka_unit_test(a_file_that_another_replaced_or_wrote_to_is_not_committed_to),
        cmocka_unit_test(an_open_reader_keeps_its_state_through_commits),
        cmocka_unit_test(commits_of_many_threads_all_count_and_a_wrong_one_fails_alone),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
