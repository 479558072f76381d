#include "trace_names.h"

#include "base/report.h"

#include <inttypes.h>

static bool is_named(const char *name)
{
    return name && *name;
}

void trace_put_place(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    const char *file = coffer_mlyze_file_name(trace, frame->file_id);
    if (is_named(file) && frame->line)
        coffer__buffer_printf(out, "%s:%" PRIu64, file, frame->line);
    else if (is_named(file))
        coffer__buffer_printf(out, "%s", file);
}

void trace_put_function(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    const char *function = coffer_mlyze_function_name(trace, frame->func_id);
    size_t before = out->len;
    if (is_named(function))
        coffer__buffer_printf(out, "%s", function);
    else
        trace_put_place(out, trace, frame);
    if (out->len == before)
        coffer__buffer_printf(out, "?");
}

void trace_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    bool both = is_named(coffer_mlyze_function_name(trace, frame->func_id)) &&
                is_named(coffer_mlyze_file_name(trace, frame->file_id));
    trace_put_function(out, trace, frame);
    if (both) {
        coffer__buffer_printf(out, " (");
        trace_put_place(out, trace, frame);
        coffer__buffer_printf(out, ")");
    }
}

void trace_add_frames(coffer_node *parent, const coffer_mlyze *trace, size_t stack)
{
    coffer_node *list = coffer__node_list(parent, "frames");
    size_t depth = 0;
    const coffer_mlyze_frame *frames = NULL;
    if (stack != SIZE_MAX)
        frames = coffer_mlyze_frames(&depth, trace, stack);
    for (size_t i = 0; i < depth; i++) {
        coffer_node *map = coffer__node_map(list, NULL);
        coffer__node_text(map, "function", coffer_mlyze_function_name(trace, frames[i].func_id));
        coffer__node_text(map, "file", coffer_mlyze_file_name(trace, frames[i].file_id));
        coffer__node_u64(map, "line", frames[i].line, COFFER_UNIT_NONE);
    }
}

trace_amount trace_amount_of(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return (trace_amount){ row->peak_bytes, row->peak_allocs };
    case COFFER_MLYZE_MEASURE_LIVE:
        return (trace_amount){ row->live_bytes, row->live_allocs };
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return (trace_amount){ row->temporary_bytes, row->temporary_allocs };
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return (trace_amount){ row->allocated_bytes, row->allocs };
}

trace_amount trace_amount_of_all(const coffer_mlyze_totals *totals, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return (trace_amount){ totals->peak_bytes, totals->peak_allocs };
    case COFFER_MLYZE_MEASURE_LIVE:
        return (trace_amount){ totals->live_bytes_at_end, totals->live_allocs_at_end };
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return (trace_amount){ totals->temporary_bytes, totals->temporary_allocs };
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return (trace_amount){ totals->total_allocated_bytes, totals->allocs };
}
