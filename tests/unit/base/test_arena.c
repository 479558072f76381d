#include "base/buffer.h"
#include "support/temp.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    enum { PIECES = 3000 };
    static uint8_t *pieces[PIECES];
    coffer__arena arena = COFFER__ARENA_INIT;
    (void)state;
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = coffer__arena_take(&arena, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)(i & 0xff), i);
    }
    for (size_t i = 1; i < PIECES; i++)
        assert_true(pieces[i][0] == (i & 0xff) && pieces[i][i - 1] == (i & 0xff));
    coffer__arena_free(&arena);
    assert_non_null(coffer__arena_take(&arena, 10));
    coffer__arena_free(&arena);
}

static void texts_end_in_a_nul(void **state)
{
    coffer__arena arena = COFFER__ARENA_INIT;
    (void)state;
    assert_string_equal(coffer__arena_text(&arena, "text and more", 4), "text");
    assert_string_equal(coffer__arena_text(&arena, NULL, 0), "");
    coffer__arena_free(&arena);
}

static void a_failure_sticks(void **state)
{
    coffer__arena arena = COFFER__ARENA_INIT;
    (void)state;
    assert_null(coffer__arena_take(&arena, SIZE_MAX));
    assert_true(arena.failed);
    assert_null(coffer__arena_take(&arena, 1));
    coffer__arena_free(&arena);
    assert_false(arena.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(texts_end_in_a_nul),
        cmocka_unit_test(a_failure_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
