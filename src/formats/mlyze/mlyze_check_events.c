/* One pass over all events. What is wrong many times is told once, with the number of the first event. */
#include "formats/mlyze/mlyze_check.h"

#include "base/fail.h"
#include "base/report.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/read/mlyze_decode.h"

/* Something that is wrong with events. */
typedef struct tally {
    uint64_t count, first; /* number of the first event */
    uint64_t id;           /* what it refers to */
} tally;

typedef struct survey {
    const coffer__mlyze_checker *check;
    coffer_mlyze_events events;
    coffer__mlyze_decoder decoder;
    coffer__mlyze_level level;
    coffer__mlyze_live live;
    coffer__mlyze_budget budget;
    bool pairing;       /* the table of live blocks has room */
    uint64_t last_time; /* of the block before */
    uint64_t last_delta;
    uint64_t allocs, snapshots_open;
    tally overlong, goes_back, unknown, nowhere, repeated, snapshot;
    tally stack, marker, name; /* that the metadata does not list */
} survey;

static void note(tally *to, uint64_t event, uint64_t id)
{
    if (to->count++ == 0) {
        to->first = event;
        to->id = id;
    }
}

/* ---- One block ---- */

static bool is_listed(const survey *s, const coffer__mlyze_ids *ids, uint64_t id)
{
    return !s->check->understood || coffer__mlyze_ids_find(ids, id) != SIZE_MAX;
}

static void survey_snapshot(survey *s, uint64_t event, bool ends)
{
    if (!ends)
        s->snapshots_open++;
    else if (s->snapshots_open > 0)
        s->snapshots_open--;
    else
        note(&s->snapshot, event, 0);
}

static void survey_event(survey *s, size_t i)
{
    const coffer__mlyze_metadata *metadata = &s->check->trace->metadata;
    const coffer_mlyze_events *events = &s->events;
    uint64_t event = events->first + i, id = events->id[i];
    switch (events->type[i]) {
    case COFFER_MLYZE_ALLOC:
        s->allocs++;
        if (!is_listed(s, &metadata->stacks.ids, id))
            note(&s->stack, event, id);
        if (events->address[i] == 0)
            note(&s->nowhere, event, 0);
        break;
    case COFFER_MLYZE_MARKER:
        if (!is_listed(s, &metadata->functions.ids, id))
            note(&s->marker, event, id);
        break;
    case COFFER_MLYZE_OBJECT:
    case COFFER_MLYZE_REFERENCE:
    case COFFER_MLYZE_THREAD:
        if (!is_listed(s, &metadata->functions.ids, id))
            note(&s->name, event, id);
        break;
    case COFFER_MLYZE_SNAPSHOT:
        survey_snapshot(s, event, events->size[i] == 1);
        break;
    case COFFER_MLYZE_FREE:
    case COFFER_MLYZE_GC:
    case COFFER_MLYZE_RSS:
        break;
    default:
        note(&s->unknown, event, events->type[i]);
    }
}

static void survey_deltas(survey *s, uint64_t start)
{
    uint64_t before = start;
    for (size_t i = 0; i < s->events.count; i++) {
        uint64_t delta = s->events.time[i] - before;
        before = s->events.time[i];
        if (delta > 0 && delta == s->last_delta)
            note(&s->repeated, s->events.first + i, delta);
        s->last_delta = delta;
    }
}

static coffer_status pair_block(survey *s, coffer_error *err)
{
    coffer_status status;
    if (!s->pairing)
        return COFFER_OK;
    status = coffer__mlyze_follow(&s->level, &s->live, &s->events, err);
    if (status != COFFER_E_LIMIT)
        return status;
    s->pairing = false;
    coffer__report_add(s->check->report, COFFER_E_LIMIT, COFFER_NOTE, COFFER_OFFSET_NONE,
                       "frees were not compared with allocations from event %llu on: more is live than fits "
                       "into %zu bytes",
                       (unsigned long long)s->events.first, s->budget.max);
    return COFFER_OK;
}

/* Decodes a block with care; what is wrong with it is told. *readable : all of it was decoded. */
static coffer_status read_block(bool *readable, survey *s, const coffer__mlyze_block *block,
                                coffer_error *err)
{
    const coffer_mlyze *trace = s->check->trace;
    coffer_error found = COFFER_ERROR_INIT;
    *readable = false;
    coffer_status status = coffer__mlyze_decode_block(&s->events, &s->decoder, trace, block, true, &found);
    if (status)
        return coffer__report_take(s->check->report, COFFER_ERROR, &found, err);
    *readable = true;
    if (s->decoder.overlong > 0 && s->overlong.count == 0)
        s->overlong.first = s->events.first + s->decoder.first_overlong;
    s->overlong.count += s->decoder.overlong;
    return COFFER_OK;
}

static coffer_status survey_block(survey *s, const coffer__mlyze_block *block, coffer_error *err)
{
    bool readable = false;
    coffer_status status = read_block(&readable, s, block, err);
    if (block->time < s->last_time)
        note(&s->goes_back, block->first_event, block->offset);
    s->last_time = block->time;
    if (status || !readable)
        return status;
    for (size_t i = 0; i < s->events.count; i++)
        survey_event(s, i);
    survey_deltas(s, block->time);
    s->last_time = s->decoder.time;
    return pair_block(s, err);
}

/* ---- What came out ---- */

static void add(const survey *s, const tally *of, coffer_status code, coffer_severity severity,
                const char *what)
{
    if (of->count == 1)
        coffer__report_add(s->check->report, code, severity, COFFER_OFFSET_NONE, "event %llu: %s",
                           (unsigned long long)of->first, what);
    else if (of->count > 1)
        coffer__report_add(s->check->report, code, severity, COFFER_OFFSET_NONE,
                           "event %llu: %s (%llu times in all)", (unsigned long long)of->first, what,
                           (unsigned long long)of->count);
}

static bool is_memlyze(const survey *s)
{
    return s->check->understood && coffer__mlyze_has_empty_tables(s->check->trace) && s->allocs > 0 &&
           s->nowhere.count == s->allocs;
}

static void add_dangling(const survey *s, const tally *of, const char *what, const char *table)
{
    if (of->count > 0)
        coffer__report_add(s->check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "event %llu: %s %llu is not in %s (events like it: %llu)%s",
                           (unsigned long long)of->first, what, (unsigned long long)of->id, table,
                           (unsigned long long)of->count,
                           is_memlyze(s) ? ": memlyze writes its tables at the start, empty, and never again"
                                         : "");
}

static void report_quirks(const survey *s)
{
    add(s, &s->nowhere, COFFER_E_INCONSISTENT, COFFER_WARNING,
        "an allocation at address 0: the writer did not know it, so no free can be paired with it");
    if (is_memlyze(s))
        add(s, &s->repeated, COFFER_E_INCONSISTENT, COFFER_WARNING,
            "the same delta as before: memlyze repeats the time since its last sample, so times run ahead");
}

static void report_survey(const survey *s)
{
    tally unknown_frees = { s->level.unknown_frees, s->level.first_unknown_free, 0 };
    tally double_allocs = { s->level.double_allocs, s->level.first_double_alloc, 0 };
    add(s, &s->goes_back, COFFER_E_NOT_SORTED, COFFER_ERROR,
        "its block begins before the block in front ends");
    add_dangling(s, &s->stack, "stack", "stack_traces");
    add_dangling(s, &s->marker, "marker name", "functions");
    add_dangling(s, &s->name, "name", "functions");
    add(s, &s->overlong, COFFER_E_BAD_VARINT, COFFER_WARNING, "a number takes more bytes than it needs");
    add(s, &unknown_frees, COFFER_E_INCONSISTENT, COFFER_WARNING, "a free of an address that is not live");
    add(s, &double_allocs, COFFER_E_INCONSISTENT, COFFER_WARNING, "an allocation at an address that is live");
    if (s->level.high_bytes > UINT64_MAX)
        coffer__report_add(s->check->report, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the sizes of what is live add up to more than 64 bits");
    add(s, &s->snapshot, COFFER_E_INCONSISTENT, COFFER_WARNING, "a snapshot ends that did not begin");
    if (s->snapshots_open > 0)
        coffer__report_add(s->check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%llu snapshots do not end", (unsigned long long)s->snapshots_open);
    report_quirks(s);
    if (s->unknown.count > 0)
        coffer__report_add(s->check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%llu extension events of types that are not known were skipped (event %llu has "
                           "type %llu)",
                           (unsigned long long)s->unknown.count, (unsigned long long)s->unknown.first,
                           (unsigned long long)s->unknown.id);
}

coffer_status coffer__mlyze_check_events(const coffer__mlyze_checker *check, coffer_error *err)
{
    const coffer_limits *limits = &check->trace->limits;
    survey s = { .check = check, .events = COFFER_MLYZE_EVENTS_INIT, .pairing = true };
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, check->trace, err);
    s.budget.max = limits->memory_bytes < SIZE_MAX ? (size_t)limits->memory_bytes : SIZE_MAX;
    coffer__mlyze_live_init(&s.live, coffer__mlyze_new_key(), &s.budget);
    for (size_t i = 0; status == COFFER_OK && i < count; i++) {
        coffer__mlyze_block block = coffer__mlyze_block_at(check->trace, i);
        status = survey_block(&s, &block, err);
        if (status == COFFER_OK && check->progress &&
            check->progress->step(check->progress->context, i + 1, count))
            status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
    }
    if (status == COFFER_OK)
        report_survey(&s);
    coffer__mlyze_live_free(&s.live);
    coffer_mlyze_events_free(&s.events);
    return status;
}
