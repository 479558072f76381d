/* Converts snapshots of Python's tracemalloc: every block that was live becomes an allocation. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"
#include "outside/archives/unpack.h"
#include "outside/profiles/tracemalloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct python_snapshot {
    coffer__mlyze_import import;
    coffer__tracemalloc snapshot;
    coffer_mlyze_frame *frames; /* of one stack */
    size_t frame_capacity;
    coffer__mlyze_sample *samples;
    uint64_t *stacks; /* ids of the stacks in the trace, + 1, by their value in the pickle */
} python_snapshot;

/* tracemalloc knows lines, not functions: a frame is called "app.py:12". */
static coffer_status name_frame(coffer_mlyze_frame *out, python_snapshot *from,
                                coffer__tracemalloc_frame frame, coffer_error *err)
{
    const char *slash = frame.file_len > 0 ? memrchr(frame.file, '/', frame.file_len) : NULL;
    size_t skip = slash ? (size_t)(slash - frame.file) + 1 : 0;
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer__buffer_append(&name, frame.file + skip, frame.file_len - skip);
    coffer__buffer_printf(&name, ":%" PRIu64, frame.line);
    coffer_status status = name.failed
                               ? coffer__fail_no_memory(err, frame.file_len)
                               : coffer__mlyze_import_function(&out->func_id, &from->import,
                                                               coffer__buffer_text(&name), name.len, err);
    coffer__buffer_free(&name);
    out->line = frame.line;
    return status ? status
                  : coffer__mlyze_import_file(&out->file_id, &from->import, frame.file, frame.file_len, err);
}

static coffer_status reserve_frames(python_snapshot *from, uint32_t depth, coffer_error *err)
{
    coffer_status status = coffer__mlyze_import_walk(&from->import, depth, err);
    if (status || depth <= from->frame_capacity)
        return status;
    coffer__free(from->frames);
    from->frame_capacity = 2 * (size_t)depth;
    from->frames = coffer__alloc_array(from->frame_capacity, sizeof *from->frames);
    if (from->frames)
        return COFFER_OK;
    from->frame_capacity = 0;
    return coffer__fail_no_memory(err, depth * sizeof *from->frames);
}

/* A domain that is not Python's own, such as that of NumPy, becomes the outermost frame. */
static coffer_status name_domain(coffer_mlyze_frame *out, python_snapshot *from, uint64_t domain,
                                 coffer_error *err)
{
    char name[40];
    int len = snprintf(name, sizeof name, "domain %" PRIu64, domain);
    out->line = 0;
    coffer_status status =
        coffer__mlyze_import_function(&out->func_id, &from->import, name, (size_t)len, err);
    return status ? status : coffer__mlyze_import_file(&out->file_id, &from->import, "", 0, err);
}

static coffer_status take_stack(uint64_t *stack, python_snapshot *from,
                                const coffer__tracemalloc_trace *trace, coffer_error *err)
{
    uint32_t depth = trace->depth;
    coffer_status status = reserve_frames(from, depth + 1, err);
    for (uint32_t i = 0; !status && i < depth; i++)
        status =
            name_frame(&from->frames[i], from, coffer__tracemalloc_frame_at(&from->snapshot, trace, i), err);
    if (!status && trace->domain != 0)
        status = name_domain(&from->frames[depth++], from, trace->domain, err);
    return status ? status : coffer__mlyze_import_stack(stack, &from->import, from->frames, depth, err);
}

static coffer_status take_traces(python_snapshot *from, coffer_error *err)
{
    coffer__tracemalloc_walk walk = coffer__tracemalloc_begin(&from->snapshot);
    coffer__tracemalloc_trace trace;
    coffer_status status = COFFER_OK;
    size_t count = 0;
    from->samples = coffer__calloc((size_t)from->snapshot.count + 1, sizeof *from->samples);
    from->stacks = coffer__calloc(from->snapshot.pickle.value_count, sizeof *from->stacks);
    if (!from->samples || !from->stacks)
        return coffer__fail_no_memory(err, from->snapshot.count * sizeof *from->samples);
    for (; !status && coffer__tracemalloc_next(&trace, &walk); count++) {
        coffer__mlyze_sample *sample = &from->samples[count];
        sample->total = sample->peak = sample->end = (coffer__mlyze_blocks){ 1, trace.size };
        uint64_t *known = &from->stacks[trace.stack];
        if (*known == 0 || trace.domain != 0)
            status = take_stack(&sample->stack, from, &trace, err);
        else
            sample->stack = *known - 1;
        if (trace.domain == 0)
            *known = sample->stack + 1;
    }
    return status ? status : coffer__mlyze_import_samples(&from->import, from->samples, count, 0, 0, err);
}

static coffer_status take_snapshot(python_snapshot *from, coffer_error *err)
{
    coffer__json_writer *json = &from->import.json;
    coffer__json_key(json, "has_total");
    coffer__json_write_bool(json, false);
    coffer__json_key(json, "has_peak");
    coffer__json_write_bool(json, false);
    coffer__json_key(json, "traceback_limit");
    coffer__json_write_u64(json, from->snapshot.limit);
    coffer_status status = coffer__mlyze_import_expect(&from->import, from->snapshot.count, err);
    if (!status)
        status = coffer__mlyze_import_create(&from->import, NULL, 0, 0, err);
    if (!status)
        status = take_traces(from, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_tracemalloc(const coffer__convert_job *job, coffer_error *err)
{
    python_snapshot from = { .frames = NULL };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer__mlyze_import_open(&from.import, job, true);
    coffer_status status = coffer__unpack_all(&bytes, job->in, job->limits.json_bytes, &job->limits, err);
    if (!status)
        status = coffer__tracemalloc_read(&from.snapshot, coffer__buffer_text(&bytes), bytes.len, err);
    if (!status)
        status = take_snapshot(&from, err);
    coffer__mlyze_import_close(&from.import);
    coffer__tracemalloc_free(&from.snapshot);
    coffer__buffer_free(&bytes);
    coffer__free(from.frames);
    coffer__free(from.samples);
    coffer__free(from.stacks);
    return status;
}
