#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/table.h"

#include <string.h>

static void equal_bytes_hash_equal_at_any_address(void **state)
{
    (void)state;
    char a[300], b[301];
    for (size_t len = 0; len < 300; len++) {
        memset(a, 'x', len);
        memset(b + 1, 'x', len);
        assert_true(coffer__hash(a, len) == coffer__hash(b + 1, len));
    }
}

static void one_bit_changes_about_half_of_the_hash(void **state)
{
    (void)state;
    char text[] = "layers.17.attention.wq.weight";
    uint64_t before = coffer__hash(text, sizeof text);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        text[i] ^= 1;
        int changed = __builtin_popcountll(before ^ coffer__hash(text, sizeof text));
        assert_in_range(changed, 10, 54);
        text[i] ^= 1;
    }
}

static void the_length_counts(void **state)
{
    (void)state;
    static const char zeros[64];
    for (size_t len = 1; len < sizeof zeros; len++)
        assert_true(coffer__hash(zeros, len) != coffer__hash(zeros, len - 1));
}

static void a_digest_is_the_same_however_the_stream_is_cut(void **state)
{
    (void)state;
    char bytes[1000], whole[COFFER__DIGEST_HEX + 1], cut[COFFER__DIGEST_HEX + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t step = 1; step < 500; step = step * 2 + 1) {
        coffer__digest *a = coffer__digest_new(), *b = coffer__digest_new();
        coffer__digest_add(a, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i += step)
            coffer__digest_add(b, bytes + i, sizeof bytes - i < step ? sizeof bytes - i : step);
        coffer__digest_hex(whole, a);
        coffer__digest_hex(cut, b);
        assert_string_equal(whole, cut);
        coffer__digest_free(a);
        coffer__digest_free(b);
    }
    coffer__digest_free(NULL);
}

static void the_digest_of_nothing_is_the_one_that_xxh3_defines(void **state)
{
    (void)state;
    char hex[COFFER__DIGEST_HEX + 1];
    coffer__digest *digest = coffer__digest_new();
    coffer__digest_hex(hex, digest);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    coffer__digest_free(digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_hash_equal_at_any_address),
        cmocka_unit_test(one_bit_changes_about_half_of_the_hash),
        cmocka_unit_test(the_length_counts),
        cmocka_unit_test(a_digest_is_the_same_however_the_stream_is_cut),
        cmocka_unit_test(the_digest_of_nothing_is_the_one_that_xxh3_defines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
