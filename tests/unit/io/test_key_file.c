/* Keys as people keep them. */
#include "io/key_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "key-file-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);
    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static coffer_status read_back(uint8_t key[COFFER__KEY_SIZE], const char *text, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
    return coffer__key_file_read(key, path, NULL);
}

static void thirty_two_bytes_are_a_key_as_they_are(void **state)
{
    uint8_t key[COFFER__KEY_SIZE];
    char bytes[COFFER__KEY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 9); /* NULs and line ends among them */
    bytes[31] = '\n';
    assert_int_equal(read_back(key, bytes, sizeof bytes), COFFER_OK);
    assert_memory_equal(key, bytes, sizeof bytes);
}

static void sixty_four_digits_are_a_key_with_a_line_end_or_without(void **state)
{
    static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
    static const char *const ends[] = { "", "\n", "\r\n", " \n\n" };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        uint8_t key[COFFER__KEY_SIZE];
        char text[96];
        int len = snprintf(text, sizeof text, "%s%s", digits, ends[i]);
        assert_int_equal(read_back(key, text, (size_t)len), COFFER_OK);
        for (uint8_t j = 0; j < COFFER__KEY_SIZE; j++)
            assert_int_equal(key[j], j);
    }
}

static void anything_else_is_refused_and_leaves_no_key(void **state)
{
    static const char *const wrong[] = {
        "",
        "short",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f and a remark after it",
    };
    static const uint8_t none[COFFER__KEY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t key[COFFER__KEY_SIZE];
        memset(key, 7, sizeof key);
        assert_int_equal(read_back(key, wrong[i], strlen(wrong[i])), COFFER_E_INVALID_ARGUMENT);
        assert_memory_equal(key, none, sizeof key);
    }
}

static void a_missing_file_is_reported(void **state)
{
    uint8_t key[COFFER__KEY_SIZE];
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer__key_file_read(key, "no-such-key", &err), COFFER_E_IO);
    assert_int_equal(err.system_error, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thirty_two_bytes_are_a_key_as_they_are),
        cmocka_unit_test(sixty_four_digits_are_a_key_with_a_line_end_or_without),
        cmocka_unit_test(anything_else_is_refused_and_leaves_no_key),
        cmocka_unit_test(a_missing_file_is_reported),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
