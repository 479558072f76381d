/* One pass over all events. A problem that occurs many times is reported once, with the number of its first
 * event. */
#include "formats/mlyze/mlyze_private.h"

#include "base/fail.h"
#include "base/report.h"
#include "base/work.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/mlyze_check_names.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <inttypes.h>

/* A problem of events. */
typedef struct tally {
    uint64_t count, first; /* number of the first event */
    uint64_t id;           /* the id that it refers to */
} tally;

typedef struct survey {
    const coffer__mlyze_checker *check;
    coffer_mlyze_events events;
    coffer__mlyze_decoder decoder;
    coffer__mlyze_level level;
    coffer__mlyze_live live;
    coffer__mlyze_budget budget;
    coffer__mlyze_names_check names; /* of an archive */
    bool pairing;                    /* the table of live blocks has room */
    uint64_t last_time;              /* of the block before */
    uint64_t last_delta;
    uint64_t allocs, snapshots_open;
    tally overlong, goes_back, unknown, nowhere, repeated, snapshot;
    tally stack, marker, name; /* that the metadata does not list */
} survey;

static void note(tally *found, uint64_t event, uint64_t id)
{
    if (found->count++ == 0) {
        found->first = event;
        found->id = id;
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
                       "frees were not compared with allocations from event %" PRIu64
                       " on: the live blocks do not fit "
                       "into %zu bytes",
                       s->events.first, s->budget.max);
    return COFFER_OK;
}

/* Decodes a block with all checks and reports its problems. *readable : all of it was decoded. */
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
    if (status || !readable) {
        s->names.goes_on = false;
        return status;
    }
    for (size_t i = 0; i < s->events.count; i++)
        survey_event(s, i);
    survey_deltas(s, block->time);
    s->last_time = s->decoder.time;
    if (coffer__mlyze_has_archive(&s->check->trace->header)) {
        coffer_error found = COFFER_ERROR_INIT;
        if (coffer__mlyze_names_block(&s->names, block, &s->events, &found))
            status = coffer__report_take(s->check->report, COFFER_ERROR, &found, err);
    }
    return status ? status : pair_block(s, err);
}

/* ---- Report ---- */

static void add(const survey *s, const tally *found, coffer_status code, coffer_severity severity,
                const char *what)
{
    if (found->count == 1)
        coffer__report_add(s->check->report, code, severity, COFFER_OFFSET_NONE, "event %" PRIu64 ": %s",
                           found->first, what);
    else if (found->count > 1)
        coffer__report_add(s->check->report, code, severity, COFFER_OFFSET_NONE,
                           "event %" PRIu64 ": %s (%" PRIu64 " times in all)", found->first, what,
                           found->count);
}

static bool is_memlyze(const survey *s)
{
    return s->check->understood && coffer__mlyze_has_empty_tables(s->check->trace) && s->allocs > 0 &&
           s->nowhere.count == s->allocs;
}

static void add_dangling(const survey *s, const tally *found, const char *what, const char *table)
{
    if (found->count > 0)
        coffer__report_add(s->check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "event %" PRIu64 ": %s %" PRIu64 " is not in %s (events like it: %" PRIu64 ")%s",
                           found->first, what, found->id, table, found->count,
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
        "its block begins before the previous block ends");
    if (s->check->lost_names) {
        coffer__report_add(s->check->report, COFFER_E_MISSING, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "allocations without their stack: %" PRIu64
                           ", markers, threads and objects without their name: %" PRIu64,
                           s->stack.count, (s->marker.count + s->name.count));
    } else {
        add_dangling(s, &s->stack, "stack", "stack_traces");
        add_dangling(s, &s->marker, "marker name", "functions");
        add_dangling(s, &s->name, "name", "functions");
    }
    add(s, &s->overlong, COFFER_E_BAD_VARINT, COFFER_WARNING, "a number takes more bytes than it needs");
    add(s, &unknown_frees, COFFER_E_INCONSISTENT, COFFER_WARNING, "a free of an address that is not live");
    add(s, &double_allocs, COFFER_E_INCONSISTENT, COFFER_WARNING, "an allocation at an address that is live");
    if (s->level.high_bytes > UINT64_MAX)
        coffer__report_add(s->check->report, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the sizes of what is live add up to more than 64 bits");
    add(s, &s->snapshot, COFFER_E_INCONSISTENT, COFFER_WARNING, "a snapshot ends that never began");
    if (s->snapshots_open > 0)
        coffer__report_add(s->check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64 " snapshots do not end", s->snapshots_open);
    report_quirks(s);
    if (s->unknown.count > 0)
        coffer__report_add(s->check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%" PRIu64 " extension events of unknown types were skipped (event %" PRIu64
                           " has "
                           "type %" PRIu64 ")",
                           s->unknown.count, s->unknown.first, s->unknown.id);
}

coffer_status coffer__mlyze_check_events(const coffer__mlyze_checker *check, coffer_error *err)
{
    const coffer_limits *limits = &check->trace->limits;
    survey s = { .check = check, .events = COFFER_MLYZE_EVENTS_INIT, .pairing = true };
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, check->trace, err);
    s.budget.max = limits->memory_bytes < SIZE_MAX ? (size_t)limits->memory_bytes : SIZE_MAX;
    coffer__mlyze_live_init(&s.live, coffer__mlyze_new_key(), &s.budget);
    if (!status && coffer__mlyze_has_archive(&check->trace->header))
        status = coffer__mlyze_names_init(&s.names, check->trace, check->report, err);
    for (size_t i = 0; !status && i < count; i++) {
        coffer__mlyze_block block = coffer__mlyze_block_at(check->trace, i);
        status = survey_block(&s, &block, err);
        if (!status)
            status = coffer__progress_step(check->progress, i + 1, count, err);
    }
    if (!status)
        report_survey(&s);
    if (!status && coffer__mlyze_has_archive(&check->trace->header))
        coffer__mlyze_names_report(&s.names);
    coffer__mlyze_names_free(&s.names);
    coffer__mlyze_live_free(&s.live);
    coffer_mlyze_events_free(&s.events);
    return status;
}
