#include "trace_names.h"

#include "term.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

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

/* ---- Sampled traces ---- */

const char *trace_error(term_text out, const coffer_mlyze *trace, uint64_t allocs)
{
    term_text bytes;
    out[0] = 0;
    if (coffer_mlyze_sampling_bytes(trace) > 0)
        snprintf(out, sizeof(term_text), " ± %.20s",
                 term_bytes(bytes, coffer_mlyze_sampling_error(trace, allocs)));
    return out;
}

void trace_add_error(coffer_node *map, const char *prefix, const coffer_mlyze *trace, uint64_t allocs)
{
    char name[64];
    snprintf(name, sizeof name, "%s%serror_bytes", prefix ? prefix : "", prefix ? "_" : "");
    if (coffer_mlyze_sampling_bytes(trace) > 0)
        coffer_node_add_u64(map, name, coffer_mlyze_sampling_error(trace, allocs), COFFER_UNIT_BYTES);
}

void trace_add_sampling(coffer_node *root, const coffer_mlyze *trace)
{
    uint64_t interval = coffer_mlyze_sampling_bytes(trace);
    if (interval > 0)
        coffer_node_add_u64(root, "sampling_bytes", interval, COFFER_UNIT_BYTES);
}

void trace_print_sampling(const char *indent, const coffer_mlyze *trace, uint64_t allocs, FILE *out)
{
    uint64_t interval = coffer_mlyze_sampling_bytes(trace);
    term_text count, bytes;
    if (interval > 0)
        fprintf(
            out,
            "%sestimated from %s sampled block%s, one for every %s on average; ± with 95 %% probability\n",
            indent, term_count(count, allocs), term_plural(allocs), term_bytes(bytes, interval));
}

/* ---- The source of the trace ---- */

static coffer_mlyze_source_info source_of(const coffer_mlyze *trace)
{
    coffer_mlyze_source_info info = COFFER_MLYZE_SOURCE_INFO_INIT;
    coffer_status status = coffer_mlyze_source_of(&info, trace, NULL);
    return status ? (coffer_mlyze_source_info)COFFER_MLYZE_SOURCE_INFO_INIT : info;
}

const char *trace_unit(const coffer_mlyze *trace)
{
    return source_of(trace).time_unit;
}

bool trace_has_order(const coffer_mlyze *trace)
{
    return source_of(trace).has_order;
}

bool trace_knows_leaks(const coffer_mlyze *trace)
{
    return source_of(trace).has_leaks;
}

const char *trace_time(term_text out, const coffer_mlyze *trace, uint64_t time_us)
{
    const char *unit = trace_unit(trace);
    term_text count;
    if (!unit)
        return term_duration(out, (double)time_us / 1e6);
    snprintf(out, sizeof(term_text), "%s %.16s", term_count(count, time_us), unit);
    return out;
}

void trace_tell_note(const char *path, const char *format, ...)
{
    va_list arguments;
    fputs("coffer: ", stderr);
    term_print_text(stderr, path, strlen(path), 0);
    fputs(": note: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

trace_question trace_question_of(coffer_mlyze_measure measure)
{
    return measure == COFFER_MLYZE_MEASURE_PEAK    ? TRACE_ASKS_PEAK
           : measure == COFFER_MLYZE_MEASURE_LIVE  ? TRACE_ASKS_LEAKS
           : measure == COFFER_MLYZE_MEASURE_TOTAL ? TRACE_ASKS_TOTAL
                                                   : TRACE_ASKS_ORDER;
}

int trace_check_source(const cli_args *args, const char *path, const coffer_mlyze *trace,
                       trace_question question)
{
    const coffer_mlyze_source_info info = source_of(trace);
    const char *format = info.format ? info.format : "";
    bool massif = strcmp(format, "massif") == 0;
    if (!info.synthetic)
        return CLI_OK;
    if (question == TRACE_ASKS_ORDER)
        return cli_usage(
            args,
            "%s: a %s profile has sums and no events: lifetimes, temporary blocks and growth are "
            "not known",
            path, format);
    if (question == TRACE_ASKS_LEAKS && !info.has_leaks)
        trace_tell_note(path,
                        "massif takes snapshots: this was live at the last one, and may have been freed "
                        "afterwards");
    else if (question == TRACE_ASKS_PEAK && !info.has_peak)
        trace_tell_note(path, "a %s profile does not know the peak: this was live when it was written",
                        format);
    else if (question == TRACE_ASKS_TOTAL && !info.has_total)
        trace_tell_note(path, "a %s profile does not know all allocations: these are the ones it shows",
                        format);
    else if (question == TRACE_ASKS_COURSE && !massif)
        trace_tell_note(path, "a %s profile has sums and no course in time: the order of events is made up",
                        format);
    if (info.blocks_per_event > 1)
        trace_tell_note(path,
                        "numbers of blocks are too low by a factor of up to %" PRIu64
                        ": the profile counts more than --max-events; bytes are exact",
                        info.blocks_per_event);
    return CLI_OK;
}
