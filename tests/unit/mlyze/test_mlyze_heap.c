/* Heap snapshots: types, objects, paths, and what callers may not ask for. */
#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A list at 0x1000 refers to two texts at 0x2000 and 0x3000. */
static const char tables[] =
    "{\"stack_traces\": {\"1\": []}, \"files\": {}, \"functions\": {\"1\": \"list\", "
    "\"2\": \"text\", \"3\": \"first\"}}";

typedef struct fixture {
    trace_builder built;
    coffer_source *src;
    coffer_mlyze *trace;
} fixture;

static void put_object(trace_builder *to, uint16_t address, uint8_t type)
{
    const uint8_t body[] = { 0, (uint8_t)(address >> 8), 0, 0, 0, 0, 0, 0, type };
    trace_extension(to, 1, COFFER_MLYZE_OBJECT, body, sizeof body);
}

static void put_reference(trace_builder *to, uint16_t from, uint16_t address, uint8_t name)
{
    const uint8_t body[] = { 0,   (uint8_t)(from >> 8),    0, 0, 0, 0, 0, 0,
                             0,   (uint8_t)(address >> 8), 0, 0, 0, 0, 0, 0,
                             name };
    trace_extension(to, 1, COFFER_MLYZE_REFERENCE, body, sizeof body);
}

static void put_snapshot(trace_builder *to, uint8_t number, bool with_second)
{
    const uint8_t begin[] = { 0, number }, end[] = { 1, number };
    trace_extension(to, 1, COFFER_MLYZE_SNAPSHOT, begin, sizeof begin);
    put_object(to, 0x1000, 1);
    put_object(to, 0x2000, 2);
    put_reference(to, 0x1000, 0x2000, 3);
    if (with_second) {
        put_object(to, 0x3000, 2);
        put_reference(to, 0x1000, 0x3000, 9); /* without a name */
    }
    trace_extension(to, 1, COFFER_MLYZE_SNAPSHOT, end, sizeof end);
}

static int open_fixture(void **state)
{
    static fixture made;
    trace_begin(&made.built, COFFER__MLYZE_FLAG_EXTENSIONS, tables);
    trace_alloc(&made.built, 1, 0x1000, 100, 1, 0);
    trace_alloc(&made.built, 1, 0x2000, 20, 1, 0);
    trace_alloc(&made.built, 1, 0x3000, 30, 1, 0);
    put_snapshot(&made.built, 1, false);
    put_snapshot(&made.built, 2, true);
    trace_finish(&made.built);
    made.src = trace_source(&made.built);
    made.trace = trace_open(made.src, NULL);
    *state = &made;
    return 0;
}

static int close_fixture(void **state)
{
    fixture *made = *state;
    coffer_mlyze_close(made->trace);
    coffer_source_close(made->src);
    trace_dispose(&made->built);
    return 0;
}

static coffer_mlyze_heap *read_heap(const fixture *made, uint64_t snapshot, uint64_t since)
{
    coffer_mlyze_heap *heap = NULL;
    coffer_mlyze_heap_opts opts;
    coffer_mlyze_heap_opts_init(&opts, sizeof opts);
    opts.snapshot = snapshot;
    opts.since = since;
    assert_int_equal(coffer_mlyze_heap_new(&heap, made->trace, &opts, NULL), COFFER_OK);
    return heap;
}

static void types_have_their_bytes_and_what_they_retain(void **state)
{
    coffer_mlyze_heap *heap = read_heap(*state, 0, 1);
    const coffer_mlyze_snapshot *snapshot = coffer_mlyze_heap_snapshot(heap);
    assert_true(snapshot->number == 2 && snapshot->snapshots == 2 && snapshot->complete);
    assert_true(snapshot->objects == 3 && snapshot->bytes == 150 && snapshot->references == 2);
    assert_int_equal(coffer_mlyze_heap_type_count(heap), 2);
    const coffer_mlyze_heap_type *list = coffer_mlyze_heap_type_at(heap, 0);
    const coffer_mlyze_heap_type *text = coffer_mlyze_heap_type_at(heap, 1);
    assert_string_equal(list->name, "list");
    assert_true(list->bytes == 100 && list->retained_bytes == 150 && list->bytes_before == 100);
    assert_true(text->objects == 2 && text->objects_before == 1 && text->bytes_before == 20);
    assert_null(coffer_mlyze_heap_type_at(heap, 2));
    coffer_mlyze_heap_free(heap);
}

static void the_largest_objects_come_first(void **state)
{
    coffer_mlyze_heap *heap = read_heap(*state, 2, 0);
    coffer_mlyze_heap_object object;
    coffer_mlyze_heap_object_init(&object, sizeof object);
    size_t list[8];
    assert_int_equal(coffer_mlyze_heap_largest(list, 8, heap), 3);
    assert_int_equal(coffer_mlyze_heap_object_at(&object, heap, list[1], NULL), COFFER_OK);
    assert_true(object.address == 0x3000 && object.bytes == 30 && object.retained_bytes == 30);
    assert_int_equal(coffer_mlyze_heap_largest(list, 1, heap), 1);
    assert_int_equal(coffer_mlyze_heap_object_at(&object, heap, list[0], NULL), COFFER_OK);
    assert_string_equal(object.type, "list");
    assert_int_equal(coffer_mlyze_heap_object_at(&object, heap, 3, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_mlyze_heap_free(heap);
}

static void a_path_names_its_references(void **state)
{
    coffer_mlyze_heap *heap = read_heap(*state, 2, 0);
    coffer_mlyze_heap_step *steps = NULL;
    size_t count = 0;
    assert_int_equal(coffer_mlyze_heap_path(&steps, &count, heap, "text", NULL), COFFER_OK);
    assert_int_equal(count, 2);
    assert_null(steps[0].reference);
    assert_string_equal(steps[1].reference, "first");
    coffer_free(steps);
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mlyze_heap_path(&steps, &count, heap, "tuple", &err), COFFER_E_NOT_FOUND);
    assert_string_equal(err.text, "the snapshot has no object of type 'tuple'");
    coffer_mlyze_heap_free(heap);
}

static void a_missing_snapshot_is_not_found(void **state)
{
    const fixture *made = *state;
    coffer_mlyze_heap *heap = NULL;
    coffer_mlyze_heap_opts opts = COFFER_MLYZE_HEAP_OPTS_INIT;
    opts.snapshot = 3;
    assert_int_equal(coffer_mlyze_heap_new(&heap, made->trace, &opts, NULL), COFFER_E_NOT_FOUND);
    opts.snapshot = 2;
    opts.since = 7;
    assert_int_equal(coffer_mlyze_heap_new(&heap, made->trace, &opts, NULL), COFFER_E_NOT_FOUND);
    opts.struct_size = 0;
    assert_int_equal(coffer_mlyze_heap_new(&heap, made->trace, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_null(heap);
    coffer_mlyze_heap_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_their_bytes_and_what_they_retain),
        cmocka_unit_test(the_largest_objects_come_first),
        cmocka_unit_test(a_path_names_its_references),
        cmocka_unit_test(a_missing_snapshot_is_not_found),
    };
    return cmocka_run_group_tests_name("mlyze_heap", tests, open_fixture, close_fixture);
}
