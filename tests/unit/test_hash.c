#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

#include <string.h>

static void equal_bytes_hash_equal_wherever_they_lie(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_hash_equal_wherever_they_lie),
        cmocka_unit_test(one_bit_changes_about_half_of_the_hash),
        cmocka_unit_test(the_length_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
