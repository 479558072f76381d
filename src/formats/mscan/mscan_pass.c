#include "formats/mscan/mscan_pass.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/work.h"
#include "formats/mscan/mscan_private.h"

#include <string.h>

#define PIECE 16384          /* records that are visited at once: 192 KiB */
#define CHUNK (8 * PIECE)    /* records that a thread takes at once */
#define WORTH_A_THREAD CHUNK /* fewer than this for each do not pay for starting one */

_Static_assert(COFFER__MSCAN_PASS_BYTES == (size_t)2 * PIECE * COFFER__MSCAN_RECORD_SIZE,
               "what a pass says it needs is what it takes");

/* ---- Selection ---- */

static void select_params(coffer__mscan_selection *out, const char *param_glob)
{
    const coffer__mscan_metadata *metadata = &out->scan->metadata;
    out->by_param = param_glob != NULL;
    memset(out->params, out->by_param ? 0 : 0xFF, sizeof out->params);
    for (size_t i = 0; out->by_param && i < metadata->param_count; i++) {
        const coffer_mscan_param *param = &metadata->params[i];
        if (param->id < COFFER__MSCAN_PARAM_IDS &&
            coffer__glob_match(param_glob, param->name, param->name_len))
            out->params[param->id / 64] |= UINT64_C(1) << (param->id % 64);
    }
}

static coffer_status select_tokens(coffer__mscan_selection *out, coffer_error *err)
{
    coffer_status status;
    if (out->token_begin == 0 && out->token_end >= COFFER__MSCAN_MAX_TOKENS)
        return COFFER_OK;
    status = coffer_mscan_is_sorted(&out->sorted, out->scan, err);
    if (!status && out->sorted)
        status = coffer_mscan_find_tokens(&out->first, &out->count, out->scan, out->token_begin,
                                          out->token_end, err);
    out->by_token = !out->sorted;
    return status;
}

coffer_status coffer__mscan_select(coffer__mscan_selection *out, const coffer_mscan *scan,
                                   const char *param_glob, uint64_t begin, uint64_t end, size_t sequence,
                                   coffer_error *err)
{
    memset(out, 0, sizeof *out);
    out->scan = scan;
    out->count = scan->record_count;
    out->token_begin = begin;
    out->token_end = end;
    if (sequence != COFFER_INDEX_NONE) {
        if (sequence >= scan->metadata.sequence_count)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "sequence %zu asked for, the scan has %zu", sequence,
                                scan->metadata.sequence_count);
        const coffer_mscan_sequence *only = &scan->metadata.sequences[sequence];
        uint64_t last = only->first_token + only->num_tokens;
        out->token_begin = begin > only->first_token ? begin : only->first_token;
        out->token_end = end < last ? end : last;
    }
    if (out->token_end < out->token_begin)
        out->token_end = out->token_begin;
    select_params(out, param_glob);
    return select_tokens(out, err);
}

coffer_status coffer__mscan_select_query(coffer__mscan_selection *out, const coffer_mscan *scan,
                                         const coffer_mscan_stats_opts *query, coffer_error *err)
{
    return coffer__mscan_select(out, scan, query->param_glob, query->token_begin, query->token_end,
                                query->sequence, err);
}

/* Copies the selected ones of `count` packed records and returns their number. out : room for count records.
 */
static size_t mscan_pack(uint8_t *out, const coffer__mscan_selection *selection, const uint8_t *records,
                         size_t count)
{
    const uint8_t *end = records + count * COFFER__MSCAN_RECORD_SIZE;
    uint64_t span = selection->by_token ? selection->token_end - selection->token_begin : UINT64_MAX;
    uint64_t begin = selection->by_token ? selection->token_begin : 0;
    size_t kept = 0;
    for (const uint8_t *record = records; record < end; record += COFFER__MSCAN_RECORD_SIZE) {
        /* Every record is written, and the next one over it unless it is kept: no branch to mispredict. */
        memcpy(out + kept * COFFER__MSCAN_RECORD_SIZE, record, COFFER__MSCAN_RECORD_SIZE);
        kept += (size_t)coffer__mscan_has_param(selection, coffer__mscan_load_param(record)) &
                (size_t)(coffer__mscan_load_token(record) - begin < span);
    }
    return kept;
}

/* ---- The pass ---- */

typedef struct running_pass {
    const coffer__mscan_pass *pass;
    const coffer__mscan_selection *selection;
    uint8_t *scratch; /* a read buffer and a pack buffer, PIECE records each, for each worker */
    coffer__work *work;
} running_pass;

uint32_t coffer__mscan_pass_threads(const coffer__mscan_selection *selection, uint32_t wanted, uint64_t most)
{
    uint64_t useful = selection->count / WORTH_A_THREAD;
    uint64_t threads = wanted ? wanted : coffer__cpu_count();
    if (threads > most)
        threads = most;
    if (threads > useful)
        threads = useful;
    return threads ? (uint32_t)threads : 1;
}

/* Moves a boundary between chunks, at record `at`, to the end of the group that the record before it is in.
 */
static coffer_status group_boundary(uint64_t *out, const running_pass *run, uint64_t at, coffer_error *err)
{
    const coffer__mscan_selection *selection = run->selection;
    const coffer_mscan *scan = selection->scan;
    uint64_t last = selection->first + selection->count;
    uint8_t scratch[COFFER__MSCAN_RECORD_SIZE];
    const uint8_t *record = NULL;
    uint64_t found, count;
    coffer_status status;

    if (at <= selection->first || at >= last) {
        *out = at < last ? at : last;
        return COFFER_OK;
    }
    status = coffer__mscan_records(&record, scan, at - 1, 1, scratch, err);
    if (status)
        return status;
    uint64_t end = run->pass->group_end(run->pass->context, coffer__mscan_load_token(record));
    status = coffer_mscan_find_tokens(&found, &count, scan, end, UINT64_MAX, err);
    if (!status)
        *out = found < last ? found : last;
    return status;
}

static coffer_status chunk_bounds(uint64_t *first, uint64_t *end, const running_pass *run, uint64_t index,
                                  coffer_error *err)
{
    uint64_t from = run->selection->first + index * CHUNK;
    uint64_t left = run->selection->first + run->selection->count - from;
    uint64_t to = from + (left < CHUNK ? left : CHUNK);
    coffer_status status = COFFER_OK;
    *first = from;
    *end = to;
    if (run->pass->group_end && (status = group_boundary(first, run, from, err)) == COFFER_OK)
        status = group_boundary(end, run, to, err);
    return status;
}

static coffer_status visit_chunk(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    running_pass *run = context;
    const coffer__mscan_selection *selection = run->selection;
    const coffer_mscan *scan = selection->scan;
    uint8_t *read_buffer = run->scratch + worker * COFFER__MSCAN_PASS_BYTES;
    uint8_t *pack_buffer = read_buffer + (size_t)PIECE * COFFER__MSCAN_RECORD_SIZE;
    uint64_t first, end;
    coffer_status status = chunk_bounds(&first, &end, run, index, err);

    while (!status && first < end) {
        size_t count = end - first < PIECE ? (size_t)(end - first) : PIECE;
        size_t kept = count;
        const uint8_t *records = NULL;
        status = coffer__mscan_records(&records, scan, first, count, read_buffer, err);
        if (status)
            break;
        if (coffer__mscan_must_pack(selection)) {
            kept = mscan_pack(pack_buffer, selection, records, count);
            records = pack_buffer;
        }
        run->pass->visit(run->pass->context, worker, records, kept);
        status = coffer__work_advance(run->work, count, err);
        first += count;
    }
    return status;
}

coffer_status coffer__mscan_pass_run(const coffer__mscan_pass *pass, coffer_error *err)
{
    running_pass run = { .pass = pass, .selection = pass->selection };
    uint64_t chunks = (pass->selection->count + CHUNK - 1) / CHUNK;
    size_t scratch_bytes = pass->threads * COFFER__MSCAN_PASS_BYTES;
    coffer__work_opts opts = { .threads = pass->threads,
                               .progress = pass->progress,
                               .total = pass->selection->count };

    run.scratch = coffer__malloc(scratch_bytes);
    if (!run.scratch)
        return coffer__fail_no_memory(err, scratch_bytes);
    coffer_status status = coffer__work_new(&run.work, &opts, err);
    if (!status)
        status = coffer__work_run(run.work, chunks, visit_chunk, &run, err);
    if (!status)
        status = coffer_source_intact(pass->selection->scan->source, err);
    coffer__work_free(run.work);
    coffer__free(run.scratch);
    return status;
}

#define SURVEY_CHUNK 262144 /* records of a task: 3 MiB */

typedef struct surveyor {
    const coffer__mscan_survey_opts *opts;
    uint64_t total_tokens;
    uint8_t *scratch;                         /* CHUNK + 1 records for each worker */
    coffer__mscan_survey *results;            /* one for each worker */
    uint8_t unknown[COFFER__MSCAN_PARAM_IDS]; /* by param_id: 1 when it has no name */
} surveyor;

/* Summary of a chunk, which is enough for a chunk without damage. */
typedef struct glance {
    uint32_t max_token;
    bool unknown, unsorted;
} glance;

static glance glance_at(const surveyor *work, const uint8_t *records, size_t count, uint32_t before)
{
    uint32_t max = 0, unknown = 0, backward = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint32_t token = coffer__mscan_load_token(record);
        unknown |= work->unknown[coffer__mscan_load_param(record)];
        backward |= token < before;
        max = token > max ? token : max;
        before = token;
    }
    return (glance){ max, unknown != 0, backward != 0 };
}

static void look_closely(coffer__mscan_survey *out, const surveyor *work, const uint8_t *records,
                         uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint16_t param = coffer__mscan_load_param(record);
        if (work->unknown[param]) {
            out->unknown_first = first + i < out->unknown_first ? first + i : out->unknown_first;
            out->unknown_ids[param / 64] |= UINT64_C(1) << param % 64;
            out->unknown_count++;
        }
        if (coffer__mscan_load_token(record) >= work->total_tokens) {
            out->past_first = first + i < out->past_first ? first + i : out->past_first;
            out->past_count++;
        }
    }
}

static void look_at_columns(coffer__mscan_survey *out, const uint8_t *records, size_t count)
{
    uint64_t nonzero[2] = { 0, 0 }, saturated[2] = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint16_t activation = coffer__load_u16(record + COFFER__MSCAN_ACTIVATION_AT);
        uint16_t grad_norm = coffer__load_u16(record + COFFER__MSCAN_GRAD_NORM_AT);
        nonzero[0] += activation != 0;
        nonzero[1] += grad_norm != 0;
        saturated[0] += activation == UINT16_MAX;
        saturated[1] += grad_norm == UINT16_MAX;
    }
    for (int c = 0; c < 2; c++) {
        out->nonzero[c] += nonzero[c];
        out->saturated[c] += saturated[c];
    }
}

static coffer_status survey_chunk(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    surveyor *work = context;
    const coffer__mscan_survey_opts *opts = work->opts;
    coffer__mscan_survey *out = &work->results[worker];
    uint64_t first = index * SURVEY_CHUNK;
    size_t count = opts->count - first < SURVEY_CHUNK ? (size_t)(opts->count - first) : SURVEY_CHUNK;
    size_t lead = first > 0; /* the last record of the chunk before, for the order */
    uint8_t *scratch = work->scratch + (size_t)worker * (SURVEY_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    const uint8_t *records = NULL;
    glance seen;
    coffer_status status =
        coffer__mscan_fetch(&records, opts->source, opts->area, first - lead, count + lead, scratch, err);
    if (status)
        return status;
    seen = glance_at(work, records + lead * COFFER__MSCAN_RECORD_SIZE, count,
                     lead ? coffer__mscan_load_token(records) : 0);
    records += lead * COFFER__MSCAN_RECORD_SIZE;
    out->max_token = seen.max_token > out->max_token ? seen.max_token : out->max_token;
    out->unsorted |= seen.unsorted;
    if (seen.unknown || seen.max_token >= work->total_tokens)
        look_closely(out, work, records, first, count);
    if (opts->columns)
        look_at_columns(out, records, count);
    return COFFER_OK;
}

static void merge(coffer__mscan_survey *into, const coffer__mscan_survey *from)
{
    into->unknown_count += from->unknown_count;
    into->past_count += from->past_count;
    if (from->unknown_first < into->unknown_first)
        into->unknown_first = from->unknown_first;
    if (from->past_first < into->past_first)
        into->past_first = from->past_first;
    if (from->max_token > into->max_token)
        into->max_token = from->max_token;
    into->unsorted |= from->unsorted;
    for (int c = 0; c < 2; c++) {
        into->nonzero[c] += from->nonzero[c];
        into->saturated[c] += from->saturated[c];
    }
    for (size_t i = 0; i < sizeof into->unknown_ids / sizeof into->unknown_ids[0]; i++)
        into->unknown_ids[i] |= from->unknown_ids[i];
}

static surveyor *new_surveyor(const coffer__mscan_survey_opts *opts, uint32_t threads, coffer_error *err)
{
    size_t scratch_size = (size_t)threads * (SURVEY_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    surveyor *work = coffer__calloc(1, sizeof *work);
    if (!work) {
        coffer__fail_no_memory(err, sizeof *work);
        return NULL;
    }
    work->opts = opts;
    work->total_tokens = opts->metadata ? opts->metadata->total_tokens : 0;
    for (size_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++)
        work->unknown[id] = !opts->metadata || !opts->metadata->param_index[id];
    work->scratch = coffer__malloc(scratch_size);
    work->results = coffer__calloc(threads, sizeof *work->results);
    if (!work->scratch || !work->results) {
        coffer__fail_no_memory(err, scratch_size);
        coffer__free(work->scratch);
        coffer__free(work->results);
        coffer__free(work);
        return NULL;
    }
    for (uint32_t i = 0; i < threads; i++)
        work->results[i].unknown_first = work->results[i].past_first = UINT64_MAX;
    return work;
}

coffer_status coffer__mscan_survey_records(coffer__mscan_survey *out, const coffer__mscan_survey_opts *opts,
                                           coffer_error *err)
{
    uint64_t chunks = (opts->count + SURVEY_CHUNK - 1) / SURVEY_CHUNK;
    coffer__work_opts work_opts = { .threads = chunks < 4 ? 1 : opts->threads, .progress = opts->progress };
    coffer__work *work = NULL;
    coffer_status status = coffer__work_new_pieces(&work, chunks, &work_opts, err);
    if (status)
        return status;
    surveyor *survey = new_surveyor(opts, coffer__work_threads(work), err);
    if (!survey) {
        status = COFFER_E_NO_MEMORY;
        goto out;
    }
    status = coffer__work_run(work, chunks, survey_chunk, survey, err);
    if (!status)
        status = coffer_source_intact(opts->source, err);
    if (status)
        goto out;
    *out = survey->results[0];
    for (uint32_t i = 1; i < coffer__work_threads(work); i++)
        merge(out, &survey->results[i]);
out:
    if (survey) {
        coffer__free(survey->scratch);
        coffer__free(survey->results);
        coffer__free(survey);
    }
    coffer__work_free(work);
    return status;
}

uint32_t coffer__mscan_next_unknown(const coffer__mscan_survey *survey, uint32_t from)
{
    while (from < COFFER__MSCAN_PARAM_IDS && !(survey->unknown_ids[from / 64] >> from % 64 & 1))
        from++;
    return from;
}
