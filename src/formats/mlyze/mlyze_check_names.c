/* Whether the frees of an archive name the allocations that are live at their addresses. Reading does not
 * need it, but an analysis trusts the names. */
#include "formats/mlyze/mlyze_check_names.h"

#include "base/fail.h"
#include "base/report.h"

#include <inttypes.h>

#define STEP 16384

coffer_status coffer__mlyze_names_init(coffer__mlyze_names_check *names, const coffer_mlyze *trace,
                                       coffer_report *report, coffer_error *err)
{
    *names = (coffer__mlyze_names_check){ .trace = trace, .report = report, .goes_on = true };
    names->budget.max = trace->limits.memory_bytes < SIZE_MAX ? (size_t)trace->limits.memory_bytes : SIZE_MAX;
    coffer__mlyze_live_init(&names->live, coffer__mlyze_new_key(), &names->budget);
    return coffer__mlyze_events_reserve_rows(&names->names, STEP, err);
}

void coffer__mlyze_names_free(coffer__mlyze_names_check *names)
{
    coffer__mlyze_live_free(&names->live);
    coffer__mlyze_unpacker_free(&names->unpacker);
    coffer_mlyze_events_free(&names->names);
}

static void note(coffer__mlyze_names_check *names, uint64_t event)
{
    if (names->wrong++ == 0)
        names->first_wrong = event;
}

static coffer_status check_event(coffer__mlyze_names_check *names, uint64_t address, uint64_t number,
                                 uint8_t kind, uint64_t event, coffer_error *err)
{
    uint64_t hash = coffer__mlyze_hash(&names->live.key, address);
    coffer__mlyze_held block = { .order = number }, old;
    coffer__mlyze_put what = COFFER__MLYZE_PUT_NEW;
    coffer_status status = COFFER_OK;
    switch (kind) {
    case COFFER__MLYZE_KIND_ALLOC:
    case COFFER__MLYZE_KIND_REPLACE:
        if (address == 0) {
            note(names, event);
            return COFFER_OK;
        }
        status = coffer__mlyze_live_put(&what, &names->live, hash, address, &block, &old, err);
        if ((what == COFFER__MLYZE_PUT_REPLACED) != (kind == COFFER__MLYZE_KIND_REPLACE))
            note(names, event);
        break;
    case COFFER__MLYZE_KIND_FREE:
        if (address == 0 || !coffer__mlyze_live_take(&old, &names->live, hash, address) ||
            old.order != number)
            note(names, event);
        break;
    case COFFER__MLYZE_KIND_STRAY:
        if (address == 0 || coffer__mlyze_live_take(&old, &names->live, hash, address))
            note(names, event);
        break;
    default:
        break;
    }
    return status;
}

static coffer_status check_events(coffer__mlyze_names_check *names, const coffer_mlyze_events *events,
                                  coffer_error *err)
{
    coffer__mlyze_unpacker *unpacker = &names->unpacker;
    coffer_status status = COFFER_OK;
    for (size_t done = 0; !status && done < events->count; done += names->names.count) {
        const uint8_t *kinds = unpacker->streams[COFFER__MLYZE_KINDS].at;
        status = coffer__mlyze_unpack_some(&names->names, unpacker, STEP, err);
        for (size_t i = 0; !status && i < names->names.count; i++)
            status = check_event(names, events->address[done + i],
                                 coffer__mlyze_number_of(unpacker, names->names.address[i] - 1), kinds[i],
                                 events->first + done + i, err);
    }
    return status;
}

coffer_status coffer__mlyze_names_block(coffer__mlyze_names_check *names, const coffer__mlyze_block *block,
                                        const coffer_mlyze_events *events, coffer_error *err)
{
    coffer__mlyze_unpacker *unpacker = &names->unpacker;
    if (!names->goes_on)
        return COFFER_OK;
    coffer_status status = coffer__mlyze_unpack_open(unpacker, names->trace, block, true, err);
    if (status)
        return status;
    if (unpacker->first_alloc != names->alloc_count) {
        coffer__report_add(names->report, COFFER_E_INCONSISTENT, COFFER_ERROR, block->offset,
                           "block at offset %" PRIu64 ": its first allocation has the number %" PRIu64
                           ", it is number %" PRIu64,
                           block->offset, unpacker->first_alloc, names->alloc_count);
        names->goes_on = false;
        return COFFER_OK;
    }
    names->alloc_count += unpacker->alloc_count;
    status = check_events(names, events, err);
    if (status == COFFER_E_LIMIT) {
        names->goes_on = false;
        coffer__report_add(names->report, COFFER_E_LIMIT, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "the names of freed blocks were not verified from event %" PRIu64
                           " on: the live blocks do not fit into %zu bytes",
                           events->first, names->budget.max);
        return COFFER_OK;
    }
    return status;
}

void coffer__mlyze_names_report(const coffer__mlyze_names_check *names)
{
    if (names->wrong > 0)
        coffer__report_add(names->report, COFFER_E_INCONSISTENT, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "event %" PRIu64
                           ": the archive names another block than the one at its address (%" PRIu64
                           " events in all); 'coffer compress' to LZ4 and back corrects it",
                           names->first_wrong, names->wrong);
}
