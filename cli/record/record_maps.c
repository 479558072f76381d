/* Mappings of a recorded process. A mapping can be released in parts or replaced by another one; the trace
 * gets a release of the whole, and an allocation of each part that stays. */
#include "recorder.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>
#include <unistd.h>

static coffer_status put(record_session *session, uint8_t type, uint64_t time, const record_mapping *mapping)
{
    record_event event = { .time = time, .address = mapping->start, .type = type };
    if (type == COFFER_MLYZE_ALLOC) {
        event.size = mapping->end - mapping->start;
        event.id = mapping->stack;
        event.thread = mapping->thread;
    }
    return record_session_put(session, &event);
}

static coffer_status insert(record_session *session, uint64_t time, const record_mapping *mapping)
{
    if (session->map_count == session->map_capacity) {
        size_t capacity = session->map_capacity ? 2 * session->map_capacity : 64;
        record_mapping *larger = coffer__realloc(session->maps, capacity * sizeof *larger);
        if (!larger)
            return coffer__fail_no_memory(&session->err, capacity * sizeof *larger);
        session->maps = larger;
        session->map_capacity = capacity;
    }
    session->maps[session->map_count++] = *mapping;
    return put(session, COFFER_MLYZE_ALLOC, time, mapping);
}

static uint64_t page_end(uint64_t start, uint64_t len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return start + (len + page - 1) / page * page;
}

coffer_status record_session_unmap(record_session *session, uint64_t time, uint64_t start, uint64_t len)
{
    uint64_t end = page_end(start, len);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < session->map_count;) {
        record_mapping whole = session->maps[i];
        if (whole.start >= end || whole.end <= start) {
            i++;
            continue;
        }
        session->maps[i] = session->maps[--session->map_count];
        record_mapping before = whole, after = whole;
        before.end = start;
        after.start = end;
        status = put(session, COFFER_MLYZE_FREE, time, &whole);
        if (!status && before.start < before.end)
            status = insert(session, time, &before);
        if (!status && after.start < after.end)
            status = insert(session, time, &after);
    }
    return status;
}

coffer_status record_session_map(record_session *session, uint64_t time, const record_mapping *mapping)
{
    record_mapping whole = *mapping;
    whole.end = page_end(mapping->start, mapping->end - mapping->start);
    coffer_status status = record_session_unmap(session, time, whole.start, whole.end - whole.start);
    return status ? status : insert(session, time, &whole);
}
