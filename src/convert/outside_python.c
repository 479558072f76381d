/* info and check for files of Python's memory profilers. */
#include "convert/outside_files.h"

#include "base/buffer.h"
#include "base/options.h"
#include "base/report.h"
#include "outside/archives/unpack.h"
#include "outside/profiles/memray.h"
#include "outside/profiles/tracemalloc.h"

#include <inttypes.h>

/* ---- memray ---- */

typedef struct memray_counts {
    coffer__memray capture;
    uint64_t of_type[COFFER__MEMRAY_END + 1];
    uint64_t last_ms;
} memray_counts;

static coffer_status count_memray(memray_counts *out, coffer_source *src, coffer_error *err)
{
    coffer__memray_record record = { .type = COFFER__MEMRAY_RSS };
    coffer_status status = coffer__memray_open(&out->capture, src, err);
    while (!status && record.type != COFFER__MEMRAY_END) {
        status = coffer__memray_next(&record, &out->capture, err);
        if (!status)
            out->of_type[record.type]++;
        if (!status && record.type == COFFER__MEMRAY_RSS)
            out->last_ms = record.id;
    }
    return status;
}

coffer_status coffer__memray_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                      coffer_error *err)
{
    memray_counts counts = { .last_ms = 0 };
    (void)limits;
    coffer_status status = count_memray(&counts, src, err);
    coffer__memray *capture = &counts.capture;
    if (!status) {
        coffer_node_add_text_len(out, "command", coffer__buffer_text(&capture->command),
                                 capture->command.len);
        coffer_node_add_printf(out, "python", "%u.%u.%u", capture->python >> 24, capture->python >> 16 & 255,
                               capture->python >> 8 & 255);
        coffer_node_add_u64(out, "allocs", counts.of_type[COFFER__MEMRAY_ALLOC], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "frees", counts.of_type[COFFER__MEMRAY_FREE], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "mappings", counts.of_type[COFFER__MEMRAY_MAP], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "unmappings", counts.of_type[COFFER__MEMRAY_UNMAP], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "code_objects", counts.of_type[COFFER__MEMRAY_CODE], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "native_and_object_records", capture->left_out, COFFER_UNIT_NONE);
        coffer_node_add_bool(out, "complete", capture->complete);
        status = coffer_node_status(out, err);
    }
    coffer__memray_close(&counts.capture);
    return status;
}

coffer_status coffer__memray_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                   coffer_error *err)
{
    memray_counts counts = { .last_ms = 0 };
    (void)opts;
    coffer_status status = count_memray(&counts, src, err);
    if (!status && !counts.capture.complete)
        coffer__report_add(out, COFFER_E_TRUNCATED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the capture has no end: the last events are missing");
    coffer__memray_close(&counts.capture);
    return status;
}

/* ---- tracemalloc ---- */

static coffer_status read_tracemalloc(coffer__tracemalloc *out, coffer__buffer *bytes, coffer_source *src,
                                      const coffer_limits *given, coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    coffer_status status = coffer__unpack_all(bytes, src, limits.json_bytes, &limits, err);
    return status ? status : coffer__tracemalloc_read(out, coffer__buffer_text(bytes), bytes->len, err);
}

coffer_status coffer__tracemalloc_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                           coffer_error *err)
{
    coffer__tracemalloc snapshot = { .traces = COFFER__PICKLE_NONE };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = read_tracemalloc(&snapshot, &bytes, src, limits, err);
    if (!status) {
        coffer_node_add_u64(out, "blocks", snapshot.count, COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "live_bytes", snapshot.bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "traceback_limit", snapshot.limit, COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "blocks_with_shortened_stacks", snapshot.shortened, COFFER_UNIT_NONE);
        status = coffer_node_status(out, err);
    }
    coffer__tracemalloc_free(&snapshot);
    coffer__buffer_free(&bytes);
    return status;
}

coffer_status coffer__tracemalloc_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                        coffer_error *err)
{
    (void)out;
    coffer__tracemalloc snapshot = { .traces = COFFER__PICKLE_NONE };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = read_tracemalloc(&snapshot, &bytes, src, opts->limits, err);
    coffer__tracemalloc_free(&snapshot);
    coffer__buffer_free(&bytes);
    return status;
}
