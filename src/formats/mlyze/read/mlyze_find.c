/* Finds blocks and events by number, time or marker. */
#include "formats/mlyze/mlyze_private.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/sorted.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

#define NAMES_SHOWN 8

/* ---- Blocks ---- */

/* The last block that starts before the time, or the first. */
static size_t block_before(const coffer__mlyze_map *map, uint64_t time)
{
    return coffer__last_of(COFFER__COUNT_BELOW(map->items, map->count, coffer__mlyze_block, time, time));
}

/* The last block that starts at the event or before it. */
static size_t block_with(const coffer__mlyze_map *map, uint64_t event)
{
    return COFFER__LAST_UP_TO(map->items, map->count, coffer__mlyze_block, first_event, event);
}

static coffer_status find_block_of_time(size_t *out, const coffer_mlyze *trace, const coffer__mlyze_map *map,
                                        uint64_t time, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t index = block_before(map, time);
    coffer_status status = COFFER_OK;
    /* All its events may be earlier: the next block need not start at the time of the last one. */
    if (map->count > 0)
        status = coffer_mlyze_read_block(&events, trace, index, err);
    if (map->count > 0 && !status && events.time[events.count - 1] < time)
        index++;
    coffer_mlyze_events_free(&events);
    if (status && !coffer__is_about_file(status))
        return status;
    *out = index;
    return COFFER_OK;
}

coffer_status coffer_mlyze_block_of_time(size_t *out, const coffer_mlyze *trace, uint64_t time,
                                         coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer_status status;
    do {
        status = coffer__mlyze_get_map(&map, trace, err);
        if (!status)
            status = find_block_of_time(out, trace, map, time, err);
        if (status)
            return status;
    } while (!coffer__mlyze_is_current_map(trace, map));
    return COFFER_OK;
}

coffer_status coffer_mlyze_block_of_event(size_t *out, const coffer_mlyze *trace, uint64_t event,
                                          coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer__mlyze_block block;
    coffer_status status;
    do {
        status = coffer__mlyze_get_map(&map, trace, err);
        if (status)
            return status;
        if (event >= map->event_count) {
            *out = map->count;
            return COFFER_OK;
        }
        *out = block_with(map, event);
        block = map->items[*out];
        if (map->from_index && !coffer__mlyze_block_agrees(trace, &block))
            status = coffer__mlyze_replace_map(trace, map, err);
        if (status)
            return status;
    } while (!coffer__mlyze_is_current_map(trace, map));
    return COFFER_OK;
}

/* ---- Moments by time ---- */

/* The events of a damaged block are unknown: the moment is then its first event. */
static coffer_status find_time(uint64_t *event, const coffer_mlyze *trace, uint64_t time, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t block = 0, blocks = 0, i = 0;
    coffer_status status = coffer_mlyze_block_count(&blocks, trace, err);
    if (!status)
        status = coffer_mlyze_block_of_time(&block, trace, time, err);
    if (status)
        return status;
    if (block == blocks)
        return coffer_mlyze_event_count(event, trace, err);
    status = coffer_mlyze_read_block(&events, trace, block, err);
    while (i < events.count && events.time[i] < time)
        i++;
    coffer_mlyze_events_free(&events);
    if (status && !coffer__is_about_file(status))
        return status;
    *event = coffer__mlyze_block_at(trace, block).first_event + i;
    return COFFER_OK;
}

/* ---- Moments by marker ---- */

typedef struct marker_search {
    const coffer_mlyze *trace;
    const char *name;
    size_t name_len;
    uint64_t occurrence; /* from 1 */
    uint64_t seen;
    uint64_t event; /* where it was found */
    uint64_t shown_ids[NAMES_SHOWN];
    size_t shown;
} marker_search;

static bool is_named(const marker_search *search, uint64_t id)
{
    size_t len = 0;
    const char *name = coffer__mlyze_name(&search->trace->metadata.functions, id, &len);
    return name && len == search->name_len && memcmp(name, search->name, len) == 0;
}

static void remember(marker_search *search, uint64_t id)
{
    for (size_t i = 0; i < search->shown; i++) {
        if (search->shown_ids[i] == id)
            return;
    }
    if (search->shown < NAMES_SHOWN)
        search->shown_ids[search->shown++] = id;
}

static bool search_block(marker_search *search, const coffer_mlyze_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        if (events->type[i] != COFFER_MLYZE_MARKER)
            continue;
        remember(search, events->id[i]);
        if (is_named(search, events->id[i]) && ++search->seen == search->occurrence) {
            search->event = events->first + i;
            return true;
        }
    }
    return false;
}

/* Searches the trace until the marker is found. */
static coffer_status run_search(bool *found, marker_search *search, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t blocks = 0;
    coffer_status status = coffer_mlyze_block_count(&blocks, search->trace, err);
    *found = false;
    for (size_t i = 0; !status && !*found && i < blocks; i++) {
        status = coffer_mlyze_read_block(&events, search->trace, i, err);
        if (!status)
            *found = search_block(search, &events);
        else if (coffer__is_about_file(status))
            status = COFFER_OK;
    }
    coffer_mlyze_events_free(&events);
    return status;
}

static coffer_status fail_not_found(const marker_search *search, const char *text, coffer_error *err)
{
    coffer__buffer names = COFFER__BUFFER_INIT;
    coffer_status status;
    for (size_t i = 0; i < search->shown; i++) {
        const char *name = coffer_mlyze_function_name(search->trace, search->shown_ids[i]);
        coffer__buffer_printf(&names, "%s%.40s", i ? ", " : "", name ? name : "?");
    }
    if (search->seen > 0)
        status = coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                              "\"%s\": the trace has %" PRIu64 " such markers", text, search->seen);
    else
        status = coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                              "\"%s\" is not a time, an event number or a marker; markers: %s", text,
                              search->shown ? coffer__buffer_text(&names) : "none");
    coffer__buffer_free(&names);
    return status;
}

static bool has_function(const coffer_mlyze *trace, const char *name, size_t len)
{
    const coffer__mlyze_names *functions = &trace->metadata.functions;
    for (size_t i = 0; i < functions->ids.count; i++) {
        if (functions->values[i]->string_len == len &&
            memcmp(functions->values[i]->as.string, name, len) == 0)
            return true;
    }
    return false;
}

/* "NAME@2" is the second one, unless a marker has exactly that name. */
static void split_name(marker_search *search, const char *text)
{
    const char *at = strrchr(text, '@');
    uint64_t occurrence;
    search->name = text;
    search->name_len = strlen(text);
    search->occurrence = 1;
    if (!at || has_function(search->trace, text, search->name_len) ||
        !coffer__mlyze_parse_id(&occurrence, at + 1, strlen(at + 1)) || occurrence == 0)
        return;
    search->name_len = (size_t)(at - text);
    search->occurrence = occurrence;
}

coffer_status coffer_mlyze_find_moment(uint64_t *event, const coffer_mlyze *trace, const char *text,
                                       coffer_error *err)
{
    marker_search search = { .trace = trace };
    uint64_t number, count = 0;
    bool found;
    coffer_status status;
    if (coffer__mlyze_parse_id(&number, text, strlen(text))) {
        status = coffer_mlyze_event_count(&count, trace, err);
        if (!status)
            *event = number < count ? number : count;
        return status;
    }
    if (coffer__parse_duration(&number, text))
        return find_time(event, trace, number, err);
    split_name(&search, text);
    status = run_search(&found, &search, err);
    if (status)
        return status;
    if (!found)
        return fail_not_found(&search, text, err);
    *event = search.event;
    return COFFER_OK;
}
