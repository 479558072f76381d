/* Snapshots of the heap of a recorded Python program: when they are taken, and their events. */
#include "recorder.h"

#include "base/fail.h"
#include "base/memory.h"
#include "term.h"

#include <string.h>

/* ---- Events ---- */

coffer_status record_snapshot_name(record_session *session, const uint64_t *words, size_t count)
{
    uint64_t id = 0;
    if (count < 2 || words[0] == 0 || words[1] > (count - 2) * sizeof *words)
        return COFFER_OK;
    char *text = coffer__strndup((const char *)(words + 2), (size_t)words[1]);
    if (!text)
        return coffer__fail_no_memory(&session->err, (size_t)words[1]);
    coffer_status status = coffer_mlyze_writer_add_function(&id, session->writer, text, &session->err);
    coffer__free(text);
    if (!status && !record_map_put(&session->names, words[0] + 1, id))
        status = coffer__fail_no_memory(&session->err, count * sizeof *words);
    return status;
}

uint64_t record_snapshot_words(uint8_t kind)
{
    switch (kind) {
    case COFFER__RECORD_SNAPSHOT:
        return 2;
    case COFFER__RECORD_REFERENCE:
        return 3;
    case COFFER__RECORD_OBJECT:
        return 4;
    default:
        return 0;
    }
}

/* References of most objects have no name: theirs is the empty text. */
static coffer_status name_of(uint64_t *id, record_session *session, uint64_t number)
{
    const uint64_t *known = record_map_find(&session->names, number + 1);
    if (known) {
        *id = *known;
        return COFFER_OK;
    }
    return coffer_mlyze_writer_add_function(id, session->writer, number == 0 ? "" : "?", &session->err);
}

coffer_status record_snapshot_event(record_session *session, const coffer__record_slot *ring, uint64_t tail,
                                    uint64_t time)
{
    record_event event = { .time = time };
    uint64_t second = record_word(ring, tail + 1);
    coffer_status status = COFFER_OK;
    switch ((uint8_t)record_word(ring, tail)) {
    case COFFER__RECORD_SNAPSHOT:
        event.type = COFFER_MLYZE_SNAPSHOT;
        event.size = second & 1;
        event.id = second >> 1;
        session->snapshots += event.size;
        break;
    case COFFER__RECORD_OBJECT:
        event.type = COFFER_MLYZE_OBJECT;
        event.address = session->object = second;
        event.size = record_word(ring, tail + 2);
        status = name_of(&event.id, session, record_word(ring, tail + 3));
        break;
    default:
        event.type = COFFER_MLYZE_REFERENCE;
        event.address = session->object;
        event.size = second;
        status = name_of(&event.id, session, record_word(ring, tail + 2));
    }
    return status ? status : record_session_put(session, &event);
}

/* ---- When ---- */

void record_snapshot_ask(record_reader *reader, record_session *session)
{
    coffer__record_session *entry = &reader->memory->sessions[session->number];
    uint32_t wanted = atomic_load(&entry->snapshots_wanted);
    if (session->over || reader->stopped || atomic_load(&entry->snapshots_answered) != wanted)
        return;
    session->snapshot_us = record_clock_us();
    session->snapshot_bytes = session->live_bytes;
    atomic_store(&entry->snapshots_wanted, wanted + 1);
}

/* Nobody knows the peak before the end: whenever memory is a tenth above the last snapshot, another one is
 * taken, and the last of them has at least ten elevenths of the peak. */
void record_snapshot_at_peak(record_reader *reader, record_session *session)
{
    if (session->live_bytes > session->snapshot_bytes + session->snapshot_bytes / 10)
        record_snapshot_ask(reader, session);
}

void record_snapshot_by_time(record_reader *reader, uint64_t now)
{
    for (size_t i = 0; reader->options->snapshot_every_us && i < reader->session_count; i++) {
        record_session *session = reader->sessions[i];
        uint64_t since = session->snapshot_us ? session->snapshot_us : session->start_us;
        if (!session->over && now >= since + reader->options->snapshot_every_us)
            record_snapshot_ask(reader, session);
    }
}

void record_snapshot_report(const record_reader *reader)
{
    const record_options *options = reader->options;
    const char *why = "the program ended before one was due";
    bool wanted = false, asked = false;
    if (!options->snapshot_at_peak && !options->snapshot_every_us && !options->snapshot_signal)
        return;
    for (size_t i = 0; i < reader->session_count; i++) {
        const coffer__record_session *entry = &reader->memory->sessions[i];
        if (reader->sessions[i]->snapshots > 0)
            return;
        wanted = wanted || atomic_load(&entry->snapshots_wanted) > 0;
        asked = asked || atomic_load(&entry->snapshots_asked) > 0;
    }
    if (asked)
        why = "the main thread of the program ran no Python code before the end";
    else if (wanted)
        why = "the program is not a CPython from 3.9 to 3.13";
    cli_warn(options->output, "no heap snapshot was taken: %s", why);
}
