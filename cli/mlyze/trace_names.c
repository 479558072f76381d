#include "trace_names.h"

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

void trace_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    size_t len = coffer_mlyze_frame_text(NULL, 0, trace, frame, true);
    char *text = (char *)coffer__buffer_extend(out, len + 1);
    if (!text)
        return;
    coffer_mlyze_frame_text(text, len + 1, trace, frame, true);
    out->len--;
}

void trace_add_frames(coffer_node *parent, const coffer_mlyze *trace, size_t stack)
{
    coffer_node *list = coffer_node_add_list(parent, "frames");
    size_t depth = 0;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, stack);
    for (size_t i = 0; i < depth; i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "function", coffer_mlyze_function_name(trace, frames[i].func_id));
        coffer_node_add_text(map, "file", coffer_mlyze_file_name(trace, frames[i].file_id));
        coffer_node_add_u64(map, "line", frames[i].line, COFFER_UNIT_NONE);
    }
}

trace_amount trace_amount_of(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure)
{
    return (trace_amount){ coffer_mlyze_stack_row_bytes(row, measure),
                           coffer_mlyze_stack_row_allocs(row, measure) };
}

void trace_add_lost(coffer_node *root, const coffer_mlyze *trace)
{
    coffer_error damage = COFFER_ERROR_INIT, repaired = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    coffer_mlyze_lost(&blocks, &events, trace);
    coffer_status damaged = coffer_mlyze_damage(trace, &damage);
    coffer_status was_repaired = coffer_mlyze_repaired(trace, &repaired);
    bool complete = !damaged && !was_repaired && blocks == 0;
    coffer_node_add_bool(root, "complete", complete);
    if (complete)
        return;
    coffer_node_add_u64(root, "lost_blocks", blocks, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "lost_events", events, COFFER_UNIT_NONE);
    if (damaged || was_repaired)
        coffer_node_add_text(root, "damage", damaged ? damage.text : repaired.text);
}
