/* Reading past the page cache gives the same bytes, wherever the range lies and whatever memory it goes to.
 */
#include "coffer/source.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE ((size_t)3 * 1024 * 1024 + 1234)

/* In the working folder: the folder of other tests is in memory, where some systems refuse O_DIRECT. */
static const char on_disk[] = "test_source_direct.tmp";
static uint8_t *expected;

static int make_file(void **state)
{
    (void)state;
    expected = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        expected[i] = (uint8_t)(i * 2654435761u >> 11);
    temp_write(on_disk, expected, SIZE);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    unlink(on_disk);
    free(expected);
    return 0;
}

static coffer_source *open_direct(const char *path)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    opts.access = COFFER_ACCESS_DIRECT;
    if (coffer_source_open(&src, path, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return src;
}

static void assert_range(coffer_source *src, uint8_t *memory, uint64_t offset, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    memory[len] = 0xa5;
    if (coffer_source_read_at(memory, src, offset, len, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(memory, expected + offset, len);
    assert_int_equal(memory[len], 0xa5); /* not a byte more */
}

static void any_range_reads_into_any_memory(void **state)
{
    static const size_t places[] = { 0, 1, 511, 4095, 4096, 4097, 1048576, SIZE - 5000, SIZE - 1 };
    static const size_t lens[] = { 0, 1, 100, 4096, 5000, 8192, 1048576, 1500000, SIZE };
    uint8_t *memory = aligned_alloc(4096, 4 * 1024 * 1024 + 8192);
    coffer_source *src = open_direct(on_disk);
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        for (size_t l = 0; l < sizeof lens / sizeof lens[0]; l++) {
            size_t len = lens[l] < SIZE - places[p] ? lens[l] : SIZE - places[p];
            assert_range(src, memory, places[p], len);
            assert_range(src, memory + 3, places[p], len);
        }
    }
    coffer_source_close(src);
    free(memory);
}

static void a_file_system_without_it_is_read_all_the_same(void **state)
{
    uint8_t *memory = malloc(SIZE + 1);
    const char *path = temp_path(temp_folder, "in-memory");
    (void)state;
    temp_write(path, expected, SIZE);
    coffer_source *src = open_direct(path);
    assert_range(src, memory, 0, SIZE);
    assert_range(src, memory, 77, 12345);
    coffer_source_close(src);
    free(memory);
}

static void a_file_that_was_cut_is_an_error(void **state)
{
    uint8_t bytes[4096];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = open_direct(on_disk);
    (void)state;
    assert_int_equal(truncate(on_disk, 10000), 0);
    assert_int_equal(coffer_source_read_at(bytes, src, SIZE - 4096, 4096, &err), COFFER_E_CHANGED);
    assert_int_equal(coffer_source_read_at(bytes, src, 9000, 4096, &err), COFFER_E_CHANGED);
    coffer_source_close(src);
    temp_write(on_disk, expected, SIZE);
}

static void an_empty_file_has_nothing_to_read(void **state)
{
    const char *path = temp_path(temp_folder, "empty");
    (void)state;
    temp_write(path, "", 0);
    coffer_source *src = open_direct(path);
    assert_int_equal(coffer_source_size(src), 0);
    coffer_source_close(src);
}

static int setup(void **state)
{
    return make_file(state) || temp_setup(state);
}

static int teardown(void **state)
{
    return remove_file(state) || temp_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_range_reads_into_any_memory),
        cmocka_unit_test(a_file_system_without_it_is_read_all_the_same),
        cmocka_unit_test(a_file_that_was_cut_is_an_error),
        cmocka_unit_test(an_empty_file_has_nothing_to_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
