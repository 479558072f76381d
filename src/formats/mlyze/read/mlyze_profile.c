#include "formats/mlyze/mlyze_check.h"

/* The Python program memlyze writes its metadata before it knows anything, and never again; it knows no
 * address. */
bool coffer__mlyze_has_empty_tables(const coffer_mlyze *trace)
{
    const coffer__mlyze_metadata *metadata = &trace->metadata;
    return metadata->stacks.ids.count == 0 && metadata->files.ids.count == 0 &&
           metadata->functions.ids.count == 0;
}

const char *coffer_mlyze_profile_name(const coffer_mlyze *trace)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    uint64_t nowhere = 0, somewhere = 0;
    size_t blocks = 0;
    if (coffer__mlyze_has_empty_tables(trace) && trace->header.flags == 0 &&
        coffer_mlyze_block_count(&blocks, trace, NULL) == COFFER_OK && blocks > 0 &&
        coffer_mlyze_read_block(&events, trace, 0, NULL) == COFFER_OK) {
        for (size_t i = 0; i < events.count; i++) {
            nowhere += events.type[i] == COFFER_MLYZE_ALLOC && events.address[i] == 0;
            somewhere += events.type[i] == COFFER_MLYZE_ALLOC && events.address[i] != 0;
        }
    }
    coffer_mlyze_events_free(&events);
    return nowhere > 0 && somewhere == 0 ? "memlyze" : NULL;
}
