#include "support/trace_model.h"

typedef struct model_result {
    coffer_mlyze_totals totals;
    coffer_mlyze_stack_row stacks[MODEL_STACKS];
    coffer_mlyze_thread_row threads[65536];
    coffer_mlyze_histogram sizes, lifetimes;
    coffer_mlyze_mark *marks;
    size_t mark_count;
} model_result;

static uint64_t model_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t model_stack_id(size_t number)
{
    return number < MODEL_STACKS / 2 ? number : (UINT64_C(1) << 60) + number * 977;
}

static size_t model_stack_number(uint64_t id)
{
    size_t number = 0;
    while (model_stack_id(number) != id)
        number++;
    return number;
}

/* ---- Random traces ---- */

static void model_put(trace_builder *to, const model_event *event, uint64_t delta)
{
    switch (event->type) {
    case COFFER_MLYZE_ALLOC:
        trace_alloc(to, delta, event->address, event->size, event->id, event->thread);
        break;
    case COFFER_MLYZE_FREE:
        trace_free(to, delta, event->address);
        break;
    case COFFER_MLYZE_GC:
        trace_gc(to, delta, event->id, event->size);
        break;
    default:
        trace_marker(to, delta, event->id);
        break;
    }
}

static model_event model_new_event(const model_kind *kind, uint64_t *random, bool *is_live)
{
    uint64_t what = model_random(random) % 1000;
    uint64_t place = model_random(random) % kind->addresses;
    model_event event = { .type = COFFER_MLYZE_ALLOC };
    if (what < 4) {
        event.type = what < 2 ? COFFER_MLYZE_GC : COFFER_MLYZE_MARKER;
        event.id = model_random(random) % 3;
        event.size = event.type == COFFER_MLYZE_GC ? model_random(random) % 5000 : 0;
        return event;
    }
    bool frees = model_random(random) % 16 < kind->frees_in_16;
    if (kind->sane)
        frees = is_live[place];
    event.address = (place + 1) * MODEL_STRIDE;
    if (!kind->sane && model_random(random) % 50 == 0)
        event.address = 0;
    else
        is_live[place] = !frees;
    if (frees) {
        event.type = COFFER_MLYZE_FREE;
        return event;
    }
    event.size = model_random(random) >> (16 + model_random(random) % 48);
    event.id = model_stack_id(model_random(random) % MODEL_STACKS);
    event.thread = (uint16_t)(model_random(random) % kind->threads * 257);
    return event;
}

void model_trace_new(model_trace *out, const model_kind *kind, uint64_t seed)
{
    uint64_t random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1, time = 0;
    bool *is_live = calloc((size_t)kind->addresses, 1);
    *out = (model_trace){ .addresses = kind->addresses };
    out->events = calloc(kind->events, sizeof *out->events);
    trace_begin(&out->built, kind->flags, NULL);
    for (size_t i = 0; i < kind->events; i++) {
        uint64_t delta = model_random(&random) % 3 ? 0 : model_random(&random) % 40;
        model_event event = model_new_event(kind, &random, is_live);
        event.time = time += delta;
        model_put(&out->built, &event, delta);
        out->events[out->count++] = event;
        if (kind->flags & COFFER__MLYZE_FLAG_BLOCKS && (i + 1) % kind->per_block == 0)
            trace_end_block(&out->built, i % 3 > 0);
    }
    trace_finish(&out->built);
    free(is_live);
}

void model_trace_free(model_trace *trace)
{
    free(trace->events);
    trace_dispose(&trace->built);
}

/* ---- The slow way ---- */

typedef struct model_block {
    bool live, was_freed, in_window;
    uint64_t size, time, allocs_before;
    size_t stack, event;
    uint16_t thread;
} model_block;

typedef struct model_state {
    const model_trace *trace;
    const coffer_mlyze_stats_opts *query;
    model_result *out;
    model_block *blocks; /* by address */
    uint64_t level, allocs;
    uint64_t *last_of_thread; /* the thread's allocations so far: number of the last + 1 */
    bool counting;
} model_state;

static unsigned model_bucket(uint64_t value)
{
    unsigned bucket = 0;
    while (value >> bucket && bucket < 64)
        bucket++;
    return bucket;
}

static void model_remove(model_state *at, model_block *block)
{
    at->level -= block->size;
    at->out->totals.live_allocs_at_end--;
    at->out->threads[block->thread].live_allocs--;
    at->out->threads[block->thread].live_bytes -= block->size;
    block->live = false;
}

static void model_alloc(model_state *at, const model_event *event, size_t number)
{
    coffer_mlyze_totals *totals = &at->out->totals;
    coffer_mlyze_stack_row *row = &at->out->stacks[model_stack_number(event->id)];
    coffer_mlyze_thread_row *thread = &at->out->threads[event->thread];
    if (at->counting) {
        totals->allocs++;
        totals->total_allocated_bytes += event->size;
        totals->nowhere_allocs += event->address == 0;
        row->allocs++;
        row->allocated_bytes += event->size;
        thread->allocs++;
        thread->allocated_bytes += event->size;
        at->out->sizes.count[model_bucket(event->size)]++;
        at->out->sizes.bytes[model_bucket(event->size)] += event->size;
    }
    if (event->address > 0) {
        model_block *block = &at->blocks[event->address / MODEL_STRIDE];
        if (block->live && at->counting && totals->double_allocs++ == 0)
            totals->first_double_alloc = number;
        if (!block->live && block->was_freed && at->counting)
            totals->reused_addresses++;
        if (block->live)
            model_remove(at, block);
        *block = (model_block){ .live = true,
                                .was_freed = block->was_freed,
                                .in_window = at->counting,
                                .size = event->size,
                                .time = event->time,
                                .allocs_before = at->allocs,
                                .stack = model_stack_number(event->id),
                                .event = number,
                                .thread = event->thread };
        at->level += event->size;
        totals->live_allocs_at_end++;
        thread->live_allocs++;
        thread->live_bytes += event->size;
    }
    at->allocs++;
    at->last_of_thread[event->thread] = number + 1;
}

static bool model_is_temporary(const model_state *at, const model_block *block, const model_event *event)
{
    const coffer_mlyze_stats_opts *query = at->query;
    if (!block->in_window)
        return false;
    if (query->temporary_allocs == 0 && query->temporary_us == 0)
        return at->last_of_thread[block->thread] == block->event + 1;
    if (query->temporary_us > 0 && event->time - block->time <= query->temporary_us)
        return true;
    return query->temporary_allocs > 0 && at->allocs - block->allocs_before - 1 < query->temporary_allocs;
}

static void model_free(model_state *at, const model_event *event, size_t number)
{
    coffer_mlyze_totals *totals = &at->out->totals;
    model_block *block = &at->blocks[event->address / MODEL_STRIDE];
    totals->frees += at->counting;
    if (event->address == 0)
        return;
    if (!block->live) {
        if (at->counting && totals->unknown_frees++ == 0)
            totals->first_unknown_free = number;
        return;
    }
    if (at->counting) {
        coffer_mlyze_stack_row *row = &at->out->stacks[block->stack];
        uint64_t lifetime = event->time - block->time;
        row->freed_allocs++;
        row->lifetime_us += lifetime;
        at->out->lifetimes.count[model_bucket(lifetime)]++;
        at->out->lifetimes.bytes[model_bucket(lifetime)] += block->size;
        if (model_is_temporary(at, block, event)) {
            row->temporary_allocs++;
            row->temporary_bytes += block->size;
            totals->temporary_allocs++;
            totals->temporary_bytes += block->size;
        }
    }
    model_remove(at, block);
    block->was_freed = true;
}

static void model_mark(model_state *at, const model_event *event, size_t number)
{
    coffer_mlyze_totals *totals = &at->out->totals;
    if (!at->counting)
        return;
    if (event->type == COFFER_MLYZE_GC) {
        totals->collections++;
        totals->collected_objects += event->id;
        totals->collected_bytes += event->size;
    } else {
        totals->markers++;
    }
    at->out->marks = realloc(at->out->marks, (at->out->mark_count + 1) * sizeof *at->out->marks);
    at->out->marks[at->out->mark_count++] = (coffer_mlyze_mark){ .type = (coffer_mlyze_type)event->type,
                                                                 .event = number,
                                                                 .time_us = event->time,
                                                                 .id = event->id,
                                                                 .bytes = event->size,
                                                                 .live_bytes = at->level };
}

/* Everything that is live, stack by stack and thread by thread, as the peak. */
static void model_keep_peak(model_state *at, size_t number, uint64_t time)
{
    coffer_mlyze_totals *totals = &at->out->totals;
    totals->peak_bytes = at->level;
    totals->peak_event = number;
    totals->peak_time_us = time;
    totals->peak_allocs = 0;
    for (size_t i = 0; i < MODEL_STACKS; i++)
        at->out->stacks[i].peak_allocs = at->out->stacks[i].peak_bytes = 0;
    for (size_t i = 0; i < 65536; i += 257)
        at->out->threads[i].peak_bytes = at->out->threads[i].live_bytes;
    for (uint64_t i = 0; i <= at->trace->addresses; i++) {
        const model_block *block = &at->blocks[i];
        if (!block->live)
            continue;
        at->out->stacks[block->stack].peak_allocs++;
        at->out->stacks[block->stack].peak_bytes += block->size;
        totals->peak_allocs++;
    }
}

static void model_keep_live(model_state *at, uint64_t end_time)
{
    for (uint64_t i = 0; i <= at->trace->addresses; i++) {
        const model_block *block = &at->blocks[i];
        uint64_t age = end_time - block->time;
        if (!block->live || block->size < at->query->min_size || age < at->query->min_age_us)
            continue;
        coffer_mlyze_stack_row *row = &at->out->stacks[block->stack];
        row->oldest_us = row->live_allocs == 0 || age > row->oldest_us ? age : row->oldest_us;
        row->newest_us = row->live_allocs == 0 || age < row->newest_us ? age : row->newest_us;
        row->live_allocs++;
        row->live_bytes += block->size;
    }
}

static void model_count_realloc(model_state *at, size_t number)
{
    const model_event *event = &at->trace->events[number];
    if (!at->counting || number <= at->query->begin || event->type != COFFER_MLYZE_ALLOC)
        return;
    at->out->totals.reallocs +=
        event[-1].type == COFFER_MLYZE_FREE && !event[-1].lost && event[-1].time == event->time;
}

/* The peak takes the longest: it is looked for twice, first for its place alone. */
static void model_walk(model_state *at, uint64_t *peak_event, bool keep)
{
    uint64_t end = at->query->end < at->trace->count ? at->query->end : at->trace->count;
    uint64_t begin = at->query->begin < end ? at->query->begin : end, time = 0, peak = 0;
    for (uint64_t i = 0; i <= end; i++) {
        if (i == begin) {
            at->counting = true;
            peak = at->level;
            *peak_event = keep ? *peak_event : UINT64_MAX;
            if (keep && *peak_event == UINT64_MAX)
                model_keep_peak(at, begin > 0 ? (size_t)begin - 1 : 0, time);
        }
        if (i == end)
            break;
        const model_event *event = &at->trace->events[i];
        if (event->lost) {
            at->out->totals.lost_events += at->counting;
            continue;
        }
        at->out->totals.events += at->counting;
        model_count_realloc(at, (size_t)i);
        if (event->type == COFFER_MLYZE_ALLOC)
            model_alloc(at, event, (size_t)i);
        else if (event->type == COFFER_MLYZE_FREE)
            model_free(at, event, (size_t)i);
        else
            model_mark(at, event, (size_t)i);
        time = event->time;
        if (!keep && at->counting && at->level > peak) {
            peak = at->level;
            *peak_event = i;
        }
        if (keep && i == *peak_event)
            model_keep_peak(at, (size_t)i, time);
    }
    at->out->totals.duration_us = time;
    at->out->totals.live_bytes_at_end = at->level;
    if (keep)
        model_keep_live(at, time);
}

static model_result *model_analyze(const model_trace *trace, const coffer_mlyze_stats_opts *query)
{
    model_result *out = NULL;
    uint64_t peak_event = 0;
    for (int round = 0; round < 2; round++) {
        if (out)
            free(out->marks);
        free(out);
        out = calloc(1, sizeof *out);
        model_state at = { .trace = trace, .query = query, .out = out };
        at.blocks = calloc((size_t)trace->addresses + 1, sizeof *at.blocks);
        at.last_of_thread = calloc(65536, sizeof *at.last_of_thread);
        model_walk(&at, &peak_event, round == 1);
        free(at.blocks);
        free(at.last_of_thread);
    }
    if (!query->reuse)
        out->totals.reused_addresses = 0;
    return out;
}

static void model_result_free(model_result *result)
{
    free(result->marks);
    free(result);
}

/* ---- Comparing ---- */

static void model_same_totals(const coffer_mlyze_totals *a, const coffer_mlyze_totals *b)
{
    MODEL_SAME(a, b, events);
    MODEL_SAME(a, b, allocs);
    MODEL_SAME(a, b, frees);
    MODEL_SAME(a, b, collections);
    MODEL_SAME(a, b, markers);
    MODEL_SAME(a, b, total_allocated_bytes);
    MODEL_SAME(a, b, lost_events);
    MODEL_SAME(a, b, live_bytes_at_end);
    MODEL_SAME(a, b, live_allocs_at_end);
    MODEL_SAME(a, b, peak_bytes);
    MODEL_SAME(a, b, peak_event);
    MODEL_SAME(a, b, peak_time_us);
    MODEL_SAME(a, b, peak_allocs);
    MODEL_SAME(a, b, duration_us);
    MODEL_SAME(a, b, reallocs);
    MODEL_SAME(a, b, unknown_frees);
    MODEL_SAME(a, b, first_unknown_free);
    MODEL_SAME(a, b, double_allocs);
    MODEL_SAME(a, b, first_double_alloc);
    MODEL_SAME(a, b, nowhere_allocs);
    MODEL_SAME(a, b, temporary_allocs);
    MODEL_SAME(a, b, temporary_bytes);
    MODEL_SAME(a, b, collected_objects);
    MODEL_SAME(a, b, collected_bytes);
    MODEL_SAME(a, b, reused_addresses);
}

static void model_same_stack(const coffer_mlyze_stack_row *a, const coffer_mlyze_stack_row *b)
{
    MODEL_SAME(a, b, allocs);
    MODEL_SAME(a, b, allocated_bytes);
    MODEL_SAME(a, b, peak_allocs);
    MODEL_SAME(a, b, peak_bytes);
    MODEL_SAME(a, b, live_allocs);
    MODEL_SAME(a, b, live_bytes);
    MODEL_SAME(a, b, oldest_us);
    MODEL_SAME(a, b, newest_us);
    MODEL_SAME(a, b, temporary_allocs);
    MODEL_SAME(a, b, temporary_bytes);
    MODEL_SAME(a, b, freed_allocs);
    MODEL_SAME(a, b, lifetime_us);
}

static void model_same(const coffer_mlyze_stats *a, model_result *b)
{
    uint64_t before = 0, allocs = 0;
    model_same_totals(coffer_mlyze_stats_totals(a), &b->totals);
    for (size_t i = 0; i < coffer_mlyze_stats_stack_count(a); i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(a, i);
        assert_true(i == 0 || row->id > before);
        before = row->id;
        allocs += row->allocs;
        assert_int_equal(row->stack, row->id < 2 ? row->id : SIZE_MAX);
        model_same_stack(row, &b->stacks[model_stack_number(row->id)]);
    }
    assert_int_equal(allocs, b->totals.allocs);
    for (size_t i = 0; i < coffer_mlyze_stats_thread_count(a); i++) {
        const coffer_mlyze_thread_row *row = coffer_mlyze_stats_thread_at(a, i);
        MODEL_SAME(row, &b->threads[row->thread], allocs);
        MODEL_SAME(row, &b->threads[row->thread], allocated_bytes);
        MODEL_SAME(row, &b->threads[row->thread], live_allocs);
        MODEL_SAME(row, &b->threads[row->thread], live_bytes);
        MODEL_SAME(row, &b->threads[row->thread], peak_bytes);
    }
    assert_memory_equal(coffer_mlyze_stats_sizes(a), &b->sizes, sizeof b->sizes);
    assert_memory_equal(coffer_mlyze_stats_lifetimes(a), &b->lifetimes, sizeof b->lifetimes);
    assert_int_equal(coffer_mlyze_stats_mark_count(a), b->mark_count);
    for (size_t i = 0; i < b->mark_count; i++) {
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], type);
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], event);
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], time_us);
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], id);
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], bytes);
        MODEL_SAME(coffer_mlyze_stats_mark_at(a, i), &b->marks[i], live_bytes);
    }
}

static void hold_in_form(coffer_mlyze *opened, model_result *expected, const coffer_mlyze_stats_opts *query,
                         uint32_t thread_step)
{
    for (uint32_t threads = 1; threads <= 4; threads += thread_step) {
        coffer_mlyze_stats_opts with_threads = *query;
        coffer_mlyze_stats *stats = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        with_threads.threads = threads;
        if (coffer_mlyze_stats_new(&stats, opened, &with_threads, &err))
            fail_msg("%s", err.text);
        model_same(stats, expected);
        coffer_mlyze_stats_free(stats);
    }
}

/* The same trace as an archive has the same statistics. A damaged one cannot be made an archive. */
static void hold_as_archive(const coffer_mlyze *opened, model_result *expected,
                            const coffer_mlyze_stats_opts *query)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_mlyze *archive = NULL;
    const char *path = temp_path(temp_folder, "archive.mlyze");
    coffer_error err = COFFER_ERROR_INIT;
    opts.archive = opts.overwrite = opts.no_index = true;
    if (coffer_mlyze_rewrite(opened, path, &opts, &err) || coffer_mlyze_open_path(&archive, path, NULL, &err))
        fail_msg("%s", err.text);
    hold_in_form(archive, expected, query, 2);
    coffer_mlyze_close(archive);
}

void model_hold(const model_trace *trace, const coffer_mlyze_stats_opts *query)
{
    coffer_source *src = trace_source(&trace->built);
    coffer_mlyze *opened = trace_open(src, NULL);
    model_result *expected = model_analyze(trace, query);
    bool lost = false;
    for (size_t i = 0; i < trace->count; i++)
        lost |= trace->events[i].lost;
    hold_in_form(opened, expected, query, 1);
    if (!lost && !query->limits) /* what does not fit is analyzed the same way in all forms */
        hold_as_archive(opened, expected, query);
    model_result_free(expected);
    coffer_mlyze_close(opened);
    coffer_source_close(src);
}
