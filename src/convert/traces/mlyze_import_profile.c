/* Events for a profile: a possible run of a program with the sums of the profile. */
#include "base/checked.h"
#include "base/fail.h"
#include "convert/traces/mlyze_import.h"

#include <inttypes.h>

#define ADDRESS_STEP 16

/* The blocks of one stack. */
typedef struct block_fate {
    coffer__mlyze_blocks passing; /* in no moment of the profile */
    coffer__mlyze_blocks staying; /* live at the peak and at the end */
    coffer__mlyze_blocks peak_only, end_only;
} block_fate;

typedef struct synthesis {
    coffer__mlyze_import *import;
    const coffer__mlyze_sample *samples;
    size_t count;
    uint64_t blocks, peak_bytes; /* of all samples */
    uint64_t done;
} synthesis;

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Bytes are in blocks: at least one. */
static coffer__mlyze_blocks blocks_of(uint64_t count, uint64_t bytes)
{
    return (coffer__mlyze_blocks){ count == 0 && bytes > 0 ? 1 : count, bytes };
}

/* The profile does not say which blocks of the peak live until the end: as many as possible, unless the sizes
 * contradict that and the total allows different ones. */
static block_fate decide(const coffer__mlyze_sample *sample)
{
    const coffer__mlyze_blocks *peak = &sample->peak, *end = &sample->end, *total = &sample->total;
    uint64_t count = lesser(peak->count, end->count), bytes = lesser(peak->bytes, end->bytes);
    bool sizes_differ =
        (count == peak->count && bytes < peak->bytes) || (count == end->count && bytes < end->bytes);
    bool room = total->bytes >= peak->bytes && total->bytes - peak->bytes >= end->bytes &&
                total->count >= peak->count && total->count - peak->count >= end->count;
    block_fate fate;
    if (count == 0 || (sizes_differ && room))
        count = bytes = 0;
    fate.staying = blocks_of(count, bytes);
    fate.peak_only = blocks_of(peak->count - count, peak->bytes - bytes);
    fate.end_only = blocks_of(end->count - count, end->bytes - bytes);
    uint64_t held = fate.staying.count + fate.peak_only.count + fate.end_only.count;
    fate.passing =
        blocks_of(minus(total->count, held), minus(minus(total->bytes, peak->bytes), fate.end_only.bytes));
    return fate;
}

/* The number of events for a number of blocks. */
static uint64_t events_of(const synthesis *all, coffer__mlyze_blocks blocks)
{
    uint64_t limit = all->import->max_events;
    if (all->blocks <= limit || blocks.count == 0)
        return blocks.count;
    uint64_t events = (uint64_t)((double)blocks.count / (double)all->blocks * (double)limit);
    /* One event must not be more than the peak. */
    uint64_t enough = all->peak_bytes ? coffer__divide_up(blocks.bytes, all->peak_bytes) : 1;
    if (events < enough)
        events = enough;
    return lesser(events ? events : 1, blocks.count);
}

typedef struct span {
    uint64_t first; /* address */
    uint64_t count;
} span;

static coffer_status put_allocs(synthesis *all, uint64_t time, uint64_t stack, coffer__mlyze_blocks blocks,
                                bool free_at_once, coffer_error *err)
{
    coffer_mlyze_writer *writer = all->import->writer;
    uint64_t events = events_of(all, blocks);
    uint64_t size = events ? blocks.bytes / events : 0, larger = events ? blocks.bytes % events : 0;
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && i < events; i++) {
        uint64_t address = all->import->next_address;
        status = coffer_mlyze_writer_put_alloc(writer, time, address, size + (i < larger), stack, 0, err);
        if (!status && free_at_once)
            status = coffer_mlyze_writer_put_free(writer, time, address, err);
        if (!free_at_once)
            all->import->next_address += ADDRESS_STEP;
        if (!status && (++all->done & 0xfffff) == 0)
            status = coffer__job_progress(all->import->job, all->done, all->blocks, err);
    }
    return status;
}

static coffer_status put_frees(synthesis *all, uint64_t time, span addresses, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && i < addresses.count; i++)
        status =
            coffer_mlyze_writer_put_free(all->import->writer, time, addresses.first + i * ADDRESS_STEP, err);
    return status;
}

static coffer_status survey(synthesis *all, coffer_error *err)
{
    uint64_t total_bytes = 0, end_bytes = 0;
    for (size_t i = 0; i < all->count; i++) {
        const coffer__mlyze_sample *sample = &all->samples[i];
        uint64_t blocks = 0;
        bool fits = coffer__add_u64(&total_bytes, total_bytes, sample->total.bytes) &&
                    coffer__add_u64(&total_bytes, total_bytes, sample->peak.bytes) &&
                    coffer__add_u64(&total_bytes, total_bytes, sample->end.bytes) &&
                    coffer__add_u64(&all->peak_bytes, all->peak_bytes, sample->peak.bytes) &&
                    coffer__add_u64(&end_bytes, end_bytes, sample->end.bytes) &&
                    coffer__add_u64(&blocks, sample->total.count, sample->peak.count) &&
                    coffer__add_u64(&blocks, blocks, sample->end.count) &&
                    coffer__add_u64(&all->blocks, all->blocks, blocks);
        if (!fits)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "the bytes or blocks of the first %zu stacks do not fit into 64 bits", i + 1);
    }
    uint64_t least = all->peak_bytes ? total_bytes / all->peak_bytes : 0;
    if (all->blocks > all->import->max_events && least > all->import->max_events)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the profile has %" PRIu64
                            " times the bytes of its peak, which takes as many events; "
                            "a trace of it may have %" PRIu64 ": \"max-events\" raises that",
                            least, all->import->max_events);
    return COFFER_OK;
}

static coffer_status put_passing(synthesis *all, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < all->count; i++)
        status = put_allocs(all, 0, all->samples[i].stack, decide(&all->samples[i]).passing, true, err);
    return status;
}

/* Blocks that stay come first, then those to be freed: addresses follow from the order. */
static coffer_status put_peak(span *freed_later, synthesis *all, uint64_t time, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < all->count; i++)
        status = put_allocs(all, time, all->samples[i].stack, decide(&all->samples[i]).staying, false, err);
    freed_later->first = all->import->next_address;
    for (size_t i = 0; !status && i < all->count; i++)
        status = put_allocs(all, time, all->samples[i].stack, decide(&all->samples[i]).peak_only, false, err);
    freed_later->count = (all->import->next_address - freed_later->first) / ADDRESS_STEP;
    return status;
}

coffer_status coffer__mlyze_import_samples(coffer__mlyze_import *import, const coffer__mlyze_sample *samples,
                                           size_t count, uint64_t peak_time, uint64_t end_time,
                                           coffer_error *err)
{
    synthesis all = { .import = import, .samples = samples, .count = count };
    span freed = { 0, 0 };
    coffer_status status = survey(&all, err);
    if (!status)
        status = put_passing(&all, err);
    if (!status)
        status = put_peak(&freed, &all, peak_time, err);
    if (!status)
        status = put_frees(&all, end_time, freed, err);
    for (size_t i = 0; !status && i < count; i++)
        status = put_allocs(&all, end_time, samples[i].stack, decide(&samples[i]).end_only, false, err);
    return status;
}
