#include "io/source_private.h"

#include "base/memory.h"
#include "support/temp.h"

#include <string.h>

static const uint8_t bytes[] = "0123456789";

static coffer_status read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    (void)context;
    (void)err;
    memcpy(out, bytes + offset, len);
    return COFFER_OK;
}

/* Over memory, which has views, or over calls, which do not. */
static coffer_source *new_source(bool views)
{
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_at };
    coffer_source *src = NULL;
    if (views)
        assert_int_equal(coffer_source_from_memory(&src, bytes, 10, NULL), COFFER_OK);
    else
        assert_int_equal(coffer_source_new(&src, &ops, NULL, 10, "calls", NULL), COFFER_OK);
    return src;
}

static void a_view_is_lent_where_there_is_one(void **state)
{
    coffer_source *src = new_source(true);
    const uint8_t *found = NULL;
    uint8_t scratch[4], *own = scratch;
    (void)state;
    assert_int_equal(coffer__source_fetch(&found, src, 3, 4, scratch, NULL), COFFER_OK);
    assert_ptr_equal(found, bytes + 3);
    assert_int_equal(coffer__source_fetch_new(&found, &own, src, 2, 4, NULL), COFFER_OK);
    assert_ptr_equal(found, bytes + 2);
    assert_null(own);
    coffer_source_close(src);
}

static void other_sources_are_read_into_memory(void **state)
{
    coffer_source *src = new_source(false);
    const uint8_t *found = NULL;
    uint8_t scratch[4], *own = NULL;
    (void)state;
    assert_int_equal(coffer__source_fetch(&found, src, 3, 4, scratch, NULL), COFFER_OK);
    assert_ptr_equal(found, scratch);
    assert_memory_equal(found, "3456", 4);
    assert_int_equal(coffer__source_fetch_new(&found, &own, src, 5, 5, NULL), COFFER_OK);
    assert_ptr_equal(found, own);
    assert_memory_equal(found, "56789", 5);
    coffer__free(own);
    coffer_source_close(src);
}

static void a_range_past_the_end_leaves_the_outputs_alone(void **state)
{
    (void)state;
    for (int views = 0; views < 2; views++) {
        coffer_source *src = new_source(views);
        const uint8_t *found = NULL;
        uint8_t scratch[4], *own = NULL;
        assert_int_equal(coffer__source_fetch(&found, src, 8, 4, scratch, NULL), COFFER_E_OUT_OF_BOUNDS);
        assert_int_equal(coffer__source_fetch_new(&found, &own, src, 8, 4, NULL), COFFER_E_OUT_OF_BOUNDS);
        assert_null(found);
        assert_null(own);
        coffer_source_close(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_is_lent_where_there_is_one),
        cmocka_unit_test(other_sources_are_read_into_memory),
        cmocka_unit_test(a_range_past_the_end_leaves_the_outputs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
