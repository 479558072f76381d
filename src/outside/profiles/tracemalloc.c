#include "outside/profiles/tracemalloc.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

static const char module[] = "tracemalloc";

bool coffer__tracemalloc_probe(const uint8_t *head, size_t len)
{
    enum { NAME_WITHIN = 48 }; /* the class is the first thing in the pickle */
    size_t reach = len < NAME_WITHIN ? len : NAME_WITHIN;
    return coffer__pickle_probe(head, len) && memmem(head, reach, module, sizeof module - 1);
}

static const coffer__pickle_value *value_of(const coffer__tracemalloc *snapshot, uint32_t value)
{
    return coffer__pickle_at(&snapshot->pickle, value);
}

static const coffer__pickle_value *item_of(const coffer__tracemalloc *snapshot, uint32_t item)
{
    return value_of(snapshot, snapshot->pickle.items[item]);
}

static bool is_count(const coffer__pickle_value *value)
{
    return value->kind == COFFER__PICKLE_INT && value->number <= INT64_MAX;
}

/* ---- One trace ---- */

static bool is_frame(const coffer__tracemalloc *snapshot, uint32_t item)
{
    const coffer__pickle_value *frame = item_of(snapshot, item);
    return frame->kind == COFFER__PICKLE_TUPLE && frame->count == 2 &&
           item_of(snapshot, frame->first)->kind == COFFER__PICKLE_TEXT &&
           is_count(item_of(snapshot, frame->first + 1));
}

/* NULL, or what is wrong with the trace. */
static const char *read_trace(coffer__tracemalloc_trace *out, const coffer__tracemalloc *snapshot,
                              uint32_t value)
{
    const coffer__pickle_value *trace = value_of(snapshot, value);
    if (trace->kind != COFFER__PICKLE_TUPLE || trace->count < 2 || trace->count > 4)
        return "is not a tuple of two to four values";
    uint32_t at = trace->first, end = trace->first + trace->count;
    *out = (coffer__tracemalloc_trace){ 0 };
    if (trace->count > 2) {
        if (!is_count(item_of(snapshot, at)))
            return "has a domain that is not a number";
        out->domain = item_of(snapshot, at++)->number;
    }
    if (!is_count(item_of(snapshot, at)))
        return "has a size that is not a number";
    out->size = item_of(snapshot, at++)->number;
    out->stack = snapshot->pickle.items[at];
    const coffer__pickle_value *stack = item_of(snapshot, at++);
    if (stack->kind != COFFER__PICKLE_TUPLE)
        return "has a stack that is not a tuple";
    if (at < end && item_of(snapshot, at)->kind == COFFER__PICKLE_INT)
        out->all_frames = item_of(snapshot, at)->number;
    out->frames = stack->first;
    out->depth = stack->count;
    return NULL;
}

coffer__tracemalloc_frame coffer__tracemalloc_frame_at(const coffer__tracemalloc *snapshot,
                                                       const coffer__tracemalloc_trace *trace, uint32_t index)
{
    const coffer__pickle_value *frame = item_of(snapshot, trace->frames + index);
    const coffer__pickle_value *file = item_of(snapshot, frame->first);
    return (coffer__tracemalloc_frame){ .file = (const char *)snapshot->pickle.bytes + file->number,
                                        .file_len = file->count,
                                        .line = item_of(snapshot, frame->first + 1)->number };
}

/* ---- All traces ---- */

coffer__tracemalloc_walk coffer__tracemalloc_begin(const coffer__tracemalloc *snapshot)
{
    const coffer__pickle_value *traces = value_of(snapshot, snapshot->traces);
    return (coffer__tracemalloc_walk){ .snapshot = snapshot,
                                       .run = traces->kind == COFFER__PICKLE_LIST ? traces->first : 0 };
}

/* The value of the next trace; COFFER__PICKLE_NONE after the last one. */
static uint32_t next_value(coffer__tracemalloc_walk *walk)
{
    const coffer__tracemalloc *snapshot = walk->snapshot;
    const coffer__pickle_value *traces = value_of(snapshot, snapshot->traces);
    const coffer__pickle *pickle = &snapshot->pickle;
    if (traces->kind == COFFER__PICKLE_TUPLE)
        return walk->at < traces->count ? pickle->items[traces->first + walk->at++] : COFFER__PICKLE_NONE;
    while (walk->run != 0 && walk->at == pickle->runs[walk->run - 1].count) {
        walk->run = pickle->runs[walk->run - 1].next;
        walk->at = 0;
    }
    return walk->run != 0 ? pickle->items[pickle->runs[walk->run - 1].first + walk->at++]
                          : COFFER__PICKLE_NONE;
}

bool coffer__tracemalloc_next(coffer__tracemalloc_trace *out, coffer__tracemalloc_walk *walk)
{
    uint32_t value = next_value(walk);
    walk->number++;
    return value != COFFER__PICKLE_NONE && !read_trace(out, walk->snapshot, value);
}

/* Most blocks share their stack with others; each stack is checked once. */
static coffer_status check_traces(coffer__tracemalloc *snapshot, coffer_error *err)
{
    coffer__tracemalloc_walk walk = coffer__tracemalloc_begin(snapshot);
    bool *checked = coffer__calloc(snapshot->pickle.value_count, sizeof *checked);
    const char *wrong = NULL;
    if (!checked)
        return coffer__fail_no_memory(err, snapshot->pickle.value_count);
    for (uint32_t value; !wrong && (value = next_value(&walk)) != COFFER__PICKLE_NONE;) {
        coffer__tracemalloc_trace trace = { 0 };
        wrong = read_trace(&trace, snapshot, value);
        for (uint32_t i = 0; !wrong && !checked[trace.stack] && i < trace.depth; i++)
            wrong = is_frame(snapshot, trace.frames + i) ? NULL : "has a frame that is not a file and a line";
        if (!wrong && __builtin_add_overflow(snapshot->bytes, trace.size, &snapshot->bytes))
            wrong = "has a size that passes 64 bits with those before";
        checked[trace.stack] = true;
        snapshot->shortened += trace.all_frames > trace.depth;
        snapshot->count += !wrong;
    }
    coffer__free(checked);
    return wrong ? coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "trace %" PRIu64 " %s",
                                snapshot->count, wrong)
                 : COFFER_OK;
}

coffer_status coffer__tracemalloc_read(coffer__tracemalloc *out, const void *bytes, size_t len,
                                       coffer_error *err)
{
    uint32_t state = COFFER__PICKLE_NONE, traces = COFFER__PICKLE_NONE;
    *out = (coffer__tracemalloc){ .traces = COFFER__PICKLE_NONE };
    coffer_status status = coffer__pickle_read(&out->pickle, bytes, len, err);
    if (status)
        return status;
    if (!coffer__pickle_object(&state, &out->pickle, out->pickle.root, module, "Snapshot"))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, 0, "the pickle is not a Snapshot of tracemalloc");
    uint32_t limit = coffer__pickle_get(&out->pickle, state, "traceback_limit");
    if (limit != COFFER__PICKLE_NONE && is_count(value_of(out, limit)))
        out->limit = value_of(out, limit)->number;
    if (coffer__pickle_object(&state, &out->pickle, coffer__pickle_get(&out->pickle, state, "traces"), module,
                              "_Traces"))
        traces = coffer__pickle_get(&out->pickle, state, "_traces");
    if (traces == COFFER__PICKLE_NONE || (value_of(out, traces)->kind != COFFER__PICKLE_LIST &&
                                          value_of(out, traces)->kind != COFFER__PICKLE_TUPLE))
        return coffer__fail(err, COFFER_E_MISSING, 0, "the snapshot of tracemalloc has no list of traces");
    out->traces = traces;
    return check_traces(out, err);
}

void coffer__tracemalloc_free(coffer__tracemalloc *snapshot)
{
    coffer__pickle_free(&snapshot->pickle);
}
