#include "formats/mscan/mscan_survey.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "formats/mscan/mscan_private.h"

#define CHUNK 262144 /* records of a task: 3 MiB */

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
    uint64_t first = index * CHUNK;
    size_t count = opts->count - first < CHUNK ? (size_t)(opts->count - first) : CHUNK;
    size_t lead = first > 0; /* the last record of the chunk before, for the order */
    uint8_t *scratch = work->scratch + (size_t)worker * (CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
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
    size_t scratch_size = (size_t)threads * (CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
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
    uint64_t chunks = (opts->count + CHUNK - 1) / CHUNK;
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
