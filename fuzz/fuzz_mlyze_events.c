/* Reading events accepts any file; blocks, counts and times are consistent. */
#include "mlyze_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_block(const coffer_mlyze *trace, size_t index, coffer_mlyze_events *events)
{
    coffer_mlyze_block block = fuzz_block(trace, index);
    coffer_error err = COFFER_ERROR_INIT;
    size_t found = SIZE_MAX;
    MUST(coffer_mlyze_block_of_event(&found, trace, block.first_event, NULL) == COFFER_OK && found == index);
    if (coffer_mlyze_read_block(events, trace, index, &err)) {
        MUST(err.text[0] && events->count == 0);
        return;
    }
    MUST(events->first == block.first_event && events->count == block.event_count && events->count > 0);
    for (size_t i = 0; i < events->count; i++) {
        MUST(events->time[i] >= (i ? events->time[i - 1] : block.time));
        if (events->type[i] == COFFER_MLYZE_FREE)
            MUST(events->size[i] == 0 && events->id[i] == 0 && events->thread[i] == 0);
    }
    MUST(coffer_mlyze_block_of_time(&found, trace, events->time[0], NULL) == COFFER_OK);
}

static void walk_events(const coffer_mlyze *trace)
{
    static const char *const moments[] = { "0", "7", "3us", "1.5s", "main", "x@2", "" };
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error damage = COFFER_ERROR_INIT;
    uint64_t count = 0, sum = 0, event = 0;
    size_t blocks = 0;
    MUST(coffer_mlyze_block_count(&blocks, trace, NULL) == COFFER_OK);
    MUST(coffer_mlyze_event_count(&count, trace, NULL) == COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        MUST(fuzz_block(trace, i).first_event == sum);
        sum += fuzz_block(trace, i).event_count;
        walk_block(trace, i, &events);
    }
    MUST(sum == count);
    MUST(coffer_mlyze_read_block(&events, trace, blocks, NULL) != COFFER_OK);
    if (coffer_mlyze_damage(trace, &damage))
        MUST(damage.text[0]);
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        if (coffer_mlyze_find_moment(&event, trace, moments[i], NULL) == COFFER_OK)
            MUST(event <= count);
    }
    coffer_mlyze_events_free(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.limits = &input.limits;
    if (coffer_mlyze_open(&trace, input.source, &opts, NULL) == COFFER_OK)
        walk_events(trace);
    coffer_mlyze_close(trace);
    fuzz_input_close(&input);
    return 0;
}
