/* Older states: which there are, and how they are numbered. */
#include "support/container.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static coffer_pycauset_history *history_of(coffer_source *src)
{
    coffer_pycauset_history *history = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_pycauset_history_open(&history, src, NULL, &err))
        fail_msg("%s", err.text);
    return history;
}

/* Expects these generations, 0 for one that was not committed, and the last of the highest active. */
static void expect_generations(coffer_source *src, const uint64_t *expected, size_t count)
{
    coffer_pycauset_history *history = history_of(src);
    assert_int_equal(coffer_pycauset_history_count(history), count);
    assert_null(coffer_pycauset_history_at(history, count));
    for (size_t i = 0; i < count; i++) {
        const coffer_pycauset_generation *facts = coffer_pycauset_history_at(history, i);
        assert_int_equal(facts->generation, expected[i]);
        assert_int_equal(facts->committed, expected[i] > 0);
    }
    coffer_pycauset_history_close(history);
}

static const char *with_commits(unsigned commits)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    container file = container_make("{\"properties\":{\"v\":1}}");
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    for (unsigned i = 0; i < commits; i++)
        container_commit(path, "properties.v", i + 2);
    return path;
}

static void every_generation_is_found_and_can_be_opened(void **state)
{
    static const uint64_t expected[] = { 1, 2, 3, 4, 5, 6 };
    const char *path = with_commits(5);
    coffer_source *src = scan_source(path);
    (void)state;
    expect_generations(src, expected, 6);
    for (uint64_t g = 1; g <= 6; g++) {
        coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
        coffer_pycauset *matrix = NULL;
        opts.generation = g;
        assert_int_equal(coffer_pycauset_open(&matrix, src, &opts, NULL), COFFER_OK);
        assert_int_equal(coffer_pycauset_get_info(matrix)->generation, g);
        assert_int_equal(coffer_pycauset_value_u64(
                             coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.v")),
                         g);
        coffer_pycauset_close(matrix);
    }
    coffer_source_close(src);
}

static void a_missing_generation_is_reported_with_the_existing_ones(void **state)
{
    coffer_source *src = scan_source(with_commits(2));
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    opts.generation = 9;
    assert_int_equal(coffer_pycauset_open(&matrix, src, &opts, &err), COFFER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "generation 9 is not in the file, which has 1 to 3"));
    coffer_source_close(src);
}

static void blocks_that_no_slot_ever_named_are_not_committed(void **state)
{
    static const uint64_t behind[] = { 1, 2, 0 }, between[] = { 1, 2, 0, 3 };
    const char *path = with_commits(1);
    size_t len;
    container file = { temp_read(path, &len), 0 };
    (void)state;
    file.len = len;
    container_append_block(&file, "{\"properties\":{\"v\":99}}");
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    coffer_source *src = scan_source(path);
    expect_generations(src, behind, 3);
    coffer_source_close(src);
    container_commit(path, "properties.v", 3);
    src = scan_source(path);
    expect_generations(src, between, 4);
    coffer_source_close(src);
}

static void a_torn_slot_leaves_its_block_uncommitted(void **state)
{
    static const uint64_t expected[] = { 1, 0 };
    coffer_source *src = scan_source(COFFER_TEST_DATA "/vectors/pycauset/torn-newest-slot.pycauset");
    (void)state;
    expect_generations(src, expected, 2);
    coffer_source_close(src);
}

static void the_history_of_another_program_is_numbered_too(void **state)
{
    static const uint64_t expected[] = { 1, 2, 3, 4 };
    coffer_source *src = scan_source(COFFER_TEST_DATA "/compat/pycauset/vector-cached-ref.pycauset");
    (void)state;
    expect_generations(src, expected, 4);
    coffer_source_close(src);
}

/* A payload that holds a whole metadata block. */
static void bytes_of_a_payload_are_not_taken_for_a_block(void **state)
{
    static const uint64_t expected[] = { 1 };
    container inner = container_make("{}");
    size_t block = (size_t)container_slot(&inner, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN);
    size_t payload = (block + 15) / 16 * 16;
    char json[200];
    (void)state;
    snprintf(json, sizeof json,
             "{\"rows\":1,\"cols\":%zu,\"data_type\":\"INT8\",\"matrix_type\":\"INTEGER\"}", payload);
    container file = container_make(json);
    size_t len = (size_t)container_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN);
    uint8_t *bytes = calloc(1, 4096 + payload + len);
    memcpy(bytes, file.bytes, 4096);
    memcpy(bytes + 4096, inner.bytes + 4096 + 48, block);
    memcpy(bytes + 4096 + payload, file.bytes + 4096 + 48, len);
    container whole = { bytes, 4096 + payload + len };
    for (int slot = CONTAINER_SLOT_A; slot <= CONTAINER_SLOT_B; slot += CONTAINER_SLOT_B - CONTAINER_SLOT_A) {
        container_set_slot(&whole, slot, CONTAINER_PAYLOAD_LEN, payload);
        container_set_slot(&whole, slot, CONTAINER_METADATA_AT, 4096 + payload);
    }
    container_expect_clean(&whole);
    coffer_source *src = scan_source_of(whole.bytes, whole.len);
    expect_generations(src, expected, 1);
    coffer_source_close(src);
    container_free(&whole);
    container_free(&file);
    container_free(&inner);
}

static void the_date_comes_from_provenance(void **state)
{
    container file = container_make("{\"provenance\":{\"created\":\"2026-01-02\",\"date\":7}}");
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_pycauset_history *history = history_of(src);
    (void)state;
    assert_string_equal(coffer_pycauset_history_at(history, 0)->date, "2026-01-02");
    coffer_pycauset_history_close(history);
    coffer_source_close(src);
    container_free(&file);
}

/* Every 16 bytes a block seems to begin that reaches to the end of the file. */
static void a_file_full_of_look_alikes_is_given_up_soon(void **state)
{
    enum { TAIL = 8 << 20 };
    container file = container_make("{}");
    uint8_t framing[32] = "PCMB\1\0\0\0\1\0\0\0";
    clock_t start = clock();
    (void)state;
    size_t len = (file.len + 15) / 16 * 16;
    file.bytes = realloc(file.bytes, len + TAIL);
    memset(file.bytes + file.len, 0, len - file.len);
    for (size_t at = 0; at + 32 <= TAIL; at += 32) {
        coffer__store_u64(framing + 16, TAIL - at - 32);
        memcpy(file.bytes + len + at, framing, 32);
    }
    file.len = len + TAIL;
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_pycauset_history *history = NULL;
    assert_int_equal(coffer_pycauset_history_open(&history, src, NULL, NULL), COFFER_E_LIMIT);
    coffer_source_close(src);
    container_expect(&file, COFFER_E_TRAILING_BYTES, COFFER_NOTE, true);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    container_free(&file);
}

static void a_history_that_needs_too_much_memory_is_refused(void **state)
{
    coffer_source *src = scan_source(with_commits(5));
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_pycauset_history *history = NULL;
    (void)state;
    coffer_pycauset_history_opts opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    limits.memory_bytes = 1000;
    opts.limits = &limits;
    assert_int_equal(coffer_pycauset_history_open(&history, src, &opts, NULL), COFFER_E_LIMIT);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_generation_is_found_and_can_be_opened),
        cmocka_unit_test(a_missing_generation_is_reported_with_the_existing_ones),
        cmocka_unit_test(blocks_that_no_slot_ever_named_are_not_committed),
        cmocka_unit_test(a_torn_slot_leaves_its_block_uncommitted),
        cmocka_unit_test(the_history_of_another_program_is_numbered_too),
        cmocka_unit_test(bytes_of_a_payload_are_not_taken_for_a_block),
        cmocka_unit_test(the_date_comes_from_provenance),
        cmocka_unit_test(a_file_full_of_look_alikes_is_given_up_soon),
        cmocka_unit_test(a_history_that_needs_too_much_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
