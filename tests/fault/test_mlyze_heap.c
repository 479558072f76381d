/* Every allocation and every read fails once while a heap snapshot is read: no leak, and an error or the
 * same answer. */
#include "support/fault.h"
#include "support/trace.h"

#include <stdio.h>

enum { OBJECTS = 40 };

/* A chain of objects, each with a reference to the next. */
static void setup(const char *folder, void *context)
{
    trace_builder built;
    char path[512];
    const uint8_t begin[] = { 0, 1 }, end[] = { 1, 1 };
    (void)context;
    trace_begin(&built, COFFER__MLYZE_FLAG_EXTENSIONS, NULL);
    trace_extension(&built, 1, COFFER_MLYZE_SNAPSHOT, begin, sizeof begin);
    for (uint8_t i = 1; i <= OBJECTS; i++) {
        const uint8_t object[] = { 0, i, 0, 0, 0, 0, 0, 0, (uint8_t)(i % 3), i };
        const uint8_t reference[] = { 0, i, 0, 0, 0, 0, 0, 0, 0, (uint8_t)(i + 1), 0, 0, 0, 0, 0, 0, 0 };
        trace_extension(&built, 1, COFFER_MLYZE_OBJECT, object, sizeof object);
        trace_extension(&built, 1, COFFER_MLYZE_REFERENCE, reference, sizeof reference);
    }
    trace_extension(&built, 1, COFFER_MLYZE_SNAPSHOT, end, sizeof end);
    trace_finish(&built);
    snprintf(path, sizeof path, "%s/heap.mlyze", folder);
    FILE *file = fopen(path, "wb");
    fwrite(built.file.data, 1, built.file.len, file);
    fclose(file);
    trace_dispose(&built);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    uint64_t *retained = context;
    char path[512];
    coffer_mlyze *trace = NULL;
    coffer_mlyze_heap *heap = NULL;
    coffer_mlyze_heap_step *steps = NULL;
    coffer_mlyze_heap_opts opts = COFFER_MLYZE_HEAP_OPTS_INIT;
    size_t count = 0;
    snprintf(path, sizeof path, "%s/heap.mlyze", folder);
    opts.since = 1;
    *retained = 0;
    coffer_status status = coffer_mlyze_open_path(&trace, path, NULL, err);
    if (!status)
        status = coffer_mlyze_heap_new(&heap, trace, &opts, err);
    if (!status)
        status = coffer_mlyze_heap_path(&steps, &count, heap, coffer_mlyze_heap_type_at(heap, 0)->name, err);
    if (!status) {
        coffer_mlyze_heap_object object = COFFER_MLYZE_HEAP_OBJECT_INIT;
        status = coffer_mlyze_heap_object_at(&object, heap, steps[0].object, err);
        *retained = object.retained_bytes;
    }
    coffer_free(steps);
    coffer_mlyze_heap_free(heap);
    coffer_mlyze_close(trace);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const uint64_t *retained = context;
    (void)folder;
    return which->status == COFFER_OK && *retained != OBJECTS * (OBJECTS + 1) / 2
               ? "the first object does not retain all others"
               : NULL;
}

static void a_heap_snapshot_is_read_or_an_error(void **state)
{
    uint64_t retained = 0;
    const fault_test test = { setup, run, verify, &retained };
    (void)state;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_heap_snapshot_is_read_or_an_error) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
