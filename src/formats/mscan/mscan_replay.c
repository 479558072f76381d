/* Replay of a scan token by token. In a sorted scan a search starts from the current record, so that a step
 * takes time logarithmic in the records of one token; an unsorted scan is indexed by token first. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_private.h"

#include <inttypes.h>

#define INDEX_BATCH 4096

/* The records of token t in an unsorted scan are order[starts[t]] up to order[starts[t + 1]], in the order of
 * the file. */
typedef struct token_index {
    uint32_t *starts; /* tokens + 1 of them */
    uint32_t *order;
    uint64_t tokens; /* one more than the largest token that has records and is below the total */
} token_index;

struct coffer_mscan_replay {
    const coffer_mscan *scan;
    uint64_t memory_bytes; /* the limit */
    bool sorted;
    uint64_t token;  /* next gives this one */
    uint64_t record; /* sorted: the first record whose token is not before it */
    token_index index;
    coffer_mscan_record *records; /* of the last step returned */
    size_t capacity;
};

static coffer_status token_at(uint64_t *token, const coffer_mscan *scan, uint64_t record, coffer_error *err)
{
    coffer_mscan_record found;
    const uint8_t *view = coffer_mscan_view(scan, record, 1);
    if (view) {
        *token = coffer__mscan_load_token(view);
        return COFFER_OK;
    }
    coffer_status status = coffer_mscan_read(&found, scan, record, 1, err);
    if (!status)
        *token = found.token_idx;
    return status;
}

/* First record in [low, high) whose token is not before `token`, or high. */
static coffer_status search(uint64_t *out, const coffer_mscan *scan, uint64_t low, uint64_t high,
                            uint64_t token, coffer_error *err)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, found;
        coffer_status status = token_at(&found, scan, middle, err);
        if (status)
            return status;
        if (found < token)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return COFFER_OK;
}

/* The same from `start` on, with growing strides, so that near records are found fast. */
static coffer_status gallop_forward(uint64_t *out, const coffer_mscan *scan, uint64_t start, uint64_t token,
                                    coffer_error *err)
{
    uint64_t low = start, stride = 1;
    while (low < scan->record_count) {
        uint64_t left = scan->record_count - low;
        uint64_t probe = low + (stride < left ? stride : left) - 1;
        uint64_t found;
        coffer_status status = token_at(&found, scan, probe, err);
        if (status)
            return status;
        if (found >= token)
            return search(out, scan, low, probe, token, err);
        low = probe + 1;
        stride *= 2;
    }
    *out = scan->record_count;
    return COFFER_OK;
}

/* First record whose token is not before `token`; this is known to hold from `start` on. */
static coffer_status gallop_backward(uint64_t *out, const coffer_mscan *scan, uint64_t start, uint64_t token,
                                     coffer_error *err)
{
    uint64_t high = start, stride = 1;
    while (high > 0) {
        uint64_t probe = high - (stride < high ? stride : high);
        uint64_t found;
        coffer_status status = token_at(&found, scan, probe, err);
        if (status)
            return status;
        if (found < token)
            return search(out, scan, probe + 1, high, token, err);
        high = probe;
        stride *= 2;
    }
    *out = 0;
    return COFFER_OK;
}

/* ---- The index of an unsorted scan ---- */

typedef coffer_status (*visit_record)(void *context, uint64_t record, uint32_t token, coffer_error *err);

static coffer_status visit_tokens(const coffer_mscan *scan, visit_record visit, void *context,
                                  coffer_error *err)
{
    uint8_t scratch[INDEX_BATCH * COFFER__MSCAN_RECORD_SIZE];
    for (uint64_t first = 0; first < scan->record_count; first += INDEX_BATCH) {
        uint64_t left = scan->record_count - first;
        size_t count = left < INDEX_BATCH ? (size_t)left : INDEX_BATCH;
        const uint8_t *packed;
        coffer_status status = coffer__mscan_records(&packed, scan, first, count, scratch, err);
        for (size_t i = 0; !status && i < count; i++)
            status = visit(context, first + i,
                           coffer__mscan_load_token(packed + i * COFFER__MSCAN_RECORD_SIZE), err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

typedef struct index_build {
    token_index *index;
    uint64_t total_tokens; /* records of tokens from here on belong to no sequence: left out */
} index_build;

static coffer_status find_last_token(void *context, uint64_t record, uint32_t token, coffer_error *err)
{
    index_build *build = context;
    (void)record;
    (void)err;
    if (token < build->total_tokens && token >= build->index->tokens)
        build->index->tokens = (uint64_t)token + 1;
    return COFFER_OK;
}

/* A mapped file may change between two passes: this keeps the accesses within the arrays. */
static bool is_indexed(const index_build *build, uint32_t token)
{
    return token < build->total_tokens && token < build->index->tokens;
}

static coffer_status count_token(void *context, uint64_t record, uint32_t token, coffer_error *err)
{
    index_build *build = context;
    (void)record;
    (void)err;
    if (is_indexed(build, token))
        build->index->starts[token + 1]++;
    return COFFER_OK;
}

static coffer_status place_record(void *context, uint64_t record, uint32_t token, coffer_error *err)
{
    index_build *build = context;
    token_index *index = build->index;
    if (!is_indexed(build, token))
        return COFFER_OK;
    if (index->starts[token] >= index->starts[index->tokens])
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "the file changed while it was read");
    index->order[index->starts[token]++] = (uint32_t)record;
    return COFFER_OK;
}

/* Placing moved every start to the start of the next token. */
static void restore_starts(token_index *index)
{
    for (uint64_t token = index->tokens; token > 0; token--)
        index->starts[token] = index->starts[token - 1];
    index->starts[0] = 0;
}

static coffer_status index_new(token_index *index, const coffer_mscan *scan, uint64_t memory_bytes,
                               coffer_error *err)
{
    index_build build = { index, scan->metadata.total_tokens };
    coffer_status status = visit_tokens(scan, find_last_token, &build, err);
    if (status)
        return status;
    uint64_t bytes = (index->tokens + 1 + scan->record_count) * sizeof(uint32_t);
    if (bytes > memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the records are not sorted by token: their index takes %" PRIu64
                            " bytes, the limit is %" PRIu64,
                            bytes, memory_bytes);
    index->starts = coffer__calloc((size_t)index->tokens + 1, sizeof *index->starts);
    index->order = coffer__alloc_array((size_t)scan->record_count, sizeof *index->order);
    if (!index->starts || !index->order)
        return coffer__fail_no_memory(err, bytes);
    status = visit_tokens(scan, count_token, &build, err);
    if (status)
        return status;
    for (uint64_t token = 0; token < index->tokens; token++)
        index->starts[token + 1] += index->starts[token];
    status = visit_tokens(scan, place_record, &build, err);
    restore_starts(index);
    return status;
}

/* ---- Replay ---- */

COFFER__INIT_FUNCTION(coffer_mscan_replay_opts, COFFER_MSCAN_REPLAY_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mscan_step, COFFER_MSCAN_STEP_INIT)

coffer_status coffer_mscan_replay_new(coffer_mscan_replay **out, const coffer_mscan *scan,
                                      const coffer_mscan_replay_opts *opts, coffer_error *err)
{
    coffer_mscan_replay_opts options = COFFER_MSCAN_REPLAY_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_mscan_replay *replay = coffer__calloc(1, sizeof *replay);
    if (!replay)
        return coffer__fail_no_memory(err, sizeof *replay);
    replay->scan = scan;
    replay->memory_bytes = (options.limits ? coffer__limits(options.limits) : scan->limits).memory_bytes;
    status = coffer_mscan_is_sorted(&replay->sorted, scan, err);
    if (!status && !replay->sorted)
        status = index_new(&replay->index, scan, replay->memory_bytes, err);
    if (status) {
        coffer_mscan_replay_free(replay);
        return status;
    }
    *out = replay;
    return COFFER_OK;
}

void coffer_mscan_replay_free(coffer_mscan_replay *replay)
{
    if (!replay)
        return;
    coffer__free(replay->index.starts);
    coffer__free(replay->index.order);
    coffer__free(replay->records);
    coffer__free(replay);
}

/* Moves to `token` and finds its first record, starting from the current one. */
static coffer_status move_to(coffer_mscan_replay *replay, uint64_t token, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint64_t record = replay->record;
    if (replay->sorted && token > replay->token)
        status = gallop_forward(&record, replay->scan, replay->record, token, err);
    else if (replay->sorted && token < replay->token)
        status = gallop_backward(&record, replay->scan, replay->record, token, err);
    if (status)
        return status;
    replay->token = token;
    replay->record = record;
    return COFFER_OK;
}

coffer_status coffer_mscan_replay_seek(coffer_mscan_replay *replay, uint64_t token, coffer_error *err)
{
    uint64_t total = replay->scan->metadata.total_tokens;
    if (token > total)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "token %" PRIu64 ", the scan has %" PRIu64, token, total);
    return move_to(replay, token, err);
}

static coffer_status make_room(coffer_mscan_replay *replay, uint64_t count, coffer_error *err)
{
    size_t bytes;
    if (count <= replay->capacity)
        return COFFER_OK;
    if (!coffer__mul_size(&bytes, (size_t)count, sizeof *replay->records) || bytes > replay->memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "token %" PRIu64 " has %" PRIu64 " records, the limit is %" PRIu64 " bytes",
                            replay->token, count, replay->memory_bytes);
    coffer_mscan_record *records = coffer__realloc(replay->records, bytes);
    if (!records)
        return coffer__fail_no_memory(err, bytes);
    replay->records = records;
    replay->capacity = (size_t)count;
    return COFFER_OK;
}

static coffer_status load_sorted(size_t *count, uint64_t *end, coffer_mscan_replay *replay, coffer_error *err)
{
    coffer_status status = gallop_forward(end, replay->scan, replay->record, replay->token + 1, err);
    if (status)
        return status;
    uint64_t found = *end - replay->record;
    status = make_room(replay, found, err);
    if (!status && found > 0)
        status = coffer_mscan_read(replay->records, replay->scan, replay->record, found, err);
    *count = (size_t)found;
    return status;
}

static coffer_status load_indexed(size_t *count, coffer_mscan_replay *replay, coffer_error *err)
{
    const token_index *index = &replay->index;
    uint32_t first = 0, end = 0;
    if (replay->token < index->tokens) {
        first = index->starts[replay->token];
        end = index->starts[replay->token + 1];
    }
    coffer_status status = make_room(replay, end - first, err);
    for (uint32_t i = first; !status && i < end; i++)
        status = coffer_mscan_read(&replay->records[i - first], replay->scan, index->order[i], 1, err);
    *count = end - first;
    return status;
}

/* Makes a step of the current token; in a sorted scan *end is the first record after it. */
static coffer_status take_step(coffer_mscan_step *step, uint64_t *end, coffer_mscan_replay *replay,
                               coffer_error *err)
{
    size_t count;
    *end = replay->record;
    coffer_status status =
        replay->sorted ? load_sorted(&count, end, replay, err) : load_indexed(&count, replay, err);
    if (status)
        return status;
    size_t sequence = coffer_mscan_sequence_of_token(replay->scan, replay->token);
    coffer_mscan_step found = {
        .token = replay->token,
        .sequence = sequence,
        .position = replay->token - replay->scan->metadata.sequences[sequence].first_token,
        .records = count ? replay->records : NULL,
        .record_count = count,
    };
    return coffer__give_struct(step, &found, sizeof found, err);
}

coffer_status coffer_mscan_replay_next(bool *more, coffer_mscan_step *step, coffer_mscan_replay *replay,
                                       coffer_error *err)
{
    uint64_t end;
    if (replay->token >= replay->scan->metadata.total_tokens) {
        *more = false;
        return COFFER_OK;
    }
    coffer_status status = take_step(step, &end, replay, err);
    if (status)
        return status;
    replay->token++;
    replay->record = end;
    *more = true;
    return COFFER_OK;
}

coffer_status coffer_mscan_replay_prev(bool *more, coffer_mscan_step *step, coffer_mscan_replay *replay,
                                       coffer_error *err)
{
    uint64_t end;
    if (replay->token == 0) {
        *more = false;
        return COFFER_OK;
    }
    coffer_status status = move_to(replay, replay->token - 1, err);
    if (!status)
        status = take_step(step, &end, replay, err);
    if (!status)
        *more = true;
    return status;
}
