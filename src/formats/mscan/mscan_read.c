#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sorted.h"
#include "base/work.h"
#include "formats/mscan/mscan_keys.h"
#include "formats/mscan/mscan_private.h"
#include "formats/mscan/mscan_sums.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <math.h>

/* Whether the records are sorted by token, and finding tokens in sorted ones. */

#define ORDER_CHUNK 262144 /* records a task looks at: 3 MiB */

typedef struct order_search {
    const coffer_mscan *scan;
    uint8_t *scratch; /* ORDER_CHUNK + 1 records for each worker */
    atomic_bool unsorted;
} order_search;

static bool is_ascending(const uint8_t *records, size_t count)
{
    uint32_t before = 0;
    uint32_t backward = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t token = coffer__mscan_load_token(records + i * COFFER__MSCAN_RECORD_SIZE);
        backward |= token < before;
        before = token;
    }
    return !backward;
}

static coffer_status check_order(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    order_search *search = context;
    const coffer_mscan *scan = search->scan;
    uint64_t first = index * ORDER_CHUNK;
    uint64_t end = first + ORDER_CHUNK < scan->record_count ? first + ORDER_CHUNK : scan->record_count;
    uint8_t *scratch = search->scratch + (size_t)worker * (ORDER_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    const uint8_t *records = NULL;
    coffer_status status;

    if (atomic_load(&search->unsorted))
        return COFFER_OK;
    first -= first > 0; /* with the last record of the chunk before, so that no neighbors go unseen */
    status = coffer__mscan_records(&records, scan, first, (size_t)(end - first), scratch, err);
    if (!status && !is_ascending(records, (size_t)(end - first)))
        atomic_store(&search->unsorted, true);
    return status;
}

static coffer_status find_order(coffer__mscan_order *out, const coffer_mscan *scan, coffer_error *err)
{
    uint64_t chunks = (scan->record_count + ORDER_CHUNK - 1) / ORDER_CHUNK;
    order_search search = { .scan = scan };
    coffer__pool *pool = NULL;
    size_t scratch_size;
    coffer_status status = coffer__pool_new(&pool, chunks < 4 ? 1 : 0, err);
    if (status)
        return status;
    scratch_size = (size_t)coffer__pool_threads(pool) * (ORDER_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    search.scratch = coffer__malloc(scratch_size);
    if (!search.scratch) {
        status = coffer__fail_no_memory(err, scratch_size);
        goto out;
    }
    status = coffer__pool_run(pool, chunks, check_order, &search, err);
    if (!status)
        status = coffer_source_intact(scan->source, err);
    if (!status)
        *out = atomic_load(&search.unsorted) ? COFFER__MSCAN_ORDER_UNSORTED : COFFER__MSCAN_ORDER_SORTED;
out:
    coffer__free(search.scratch);
    coffer__pool_free(pool);
    return status;
}

coffer_status coffer_mscan_is_sorted(bool *out, const coffer_mscan *scan, coffer_error *err)
{
    /* Caching does not change the logical value of a const scan. */
    atomic_int *memory = &((coffer_mscan *)(uintptr_t)scan)->order;
    coffer__mscan_order order = (coffer__mscan_order)atomic_load(memory);
    if (order == COFFER__MSCAN_ORDER_UNKNOWN) {
        coffer_status status = find_order(&order, scan, err);
        if (status)
            return status;
        atomic_store(memory, (int)order);
    }
    *out = order == COFFER__MSCAN_ORDER_SORTED;
    return COFFER_OK;
}

/* Index of the first record whose token is not below `token`; the records are sorted. */
static coffer_status lower_bound(uint64_t *out, const coffer_mscan *scan, uint64_t token, coffer_error *err)
{
    uint64_t low = 0, high = scan->record_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint8_t scratch[COFFER__MSCAN_RECORD_SIZE];
        const uint8_t *record = NULL;
        coffer_status status = coffer__mscan_records(&record, scan, middle, 1, scratch, err);
        if (status)
            return status;
        if (coffer__mscan_load_token(record) < token)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return COFFER_OK;
}

coffer_status coffer_mscan_find_tokens(uint64_t *first, uint64_t *count, const coffer_mscan *scan,
                                       uint64_t begin, uint64_t end, coffer_error *err)
{
    uint64_t low, high;
    bool sorted = false;
    coffer_status status = coffer_mscan_is_sorted(&sorted, scan, err);
    if (status)
        return status;
    if (!sorted)
        return coffer__fail(err, COFFER_E_NOT_SORTED, scan->record_area,
                            "token_idx is not sorted: tokens cannot be found by searching");
    if (begin > end)
        end = begin;
    status = lower_bound(&low, scan, begin, err);
    if (!status)
        status = lower_bound(&high, scan, end, err);
    if (!status)
        status = coffer_source_intact(scan->source, err);
    if (status)
        return status;
    *first = low;
    *count = high - low;
    return COFFER_OK;
}

/* ---- Opening ---- */

coffer_status coffer__mscan_read_header(coffer__mscan_header *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    uint8_t bytes[COFFER__MSCAN_HEADER_SIZE];
    size_t have = size < sizeof bytes ? (size_t)size : sizeof bytes;
    coffer__mscan_header header;
    coffer_status status = coffer_source_read_at(bytes, src, 0, have, err);
    if (status)
        return status;
    if (have < COFFER__MSCAN_MAGIC_SIZE || memcmp(bytes, COFFER__MSCAN_MAGIC, COFFER__MSCAN_MAGIC_SIZE) != 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "not a scan: it does not begin with %s",
                            COFFER__MSCAN_MAGIC);
    if (have < sizeof bytes)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "the header takes %d bytes, file has %" PRIu64,
                            COFFER__MSCAN_HEADER_SIZE, size);
    header.version = coffer__load_u16(bytes + COFFER__MSCAN_VERSION_AT);
    header.header_len = coffer__load_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT);
    header.record_count = coffer__load_u32(bytes + COFFER__MSCAN_COUNT_AT);
    if (header.version != COFFER__MSCAN_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__MSCAN_VERSION_AT,
                            "version %u, this program reads version %d", header.version,
                            COFFER__MSCAN_VERSION);
    if (header.header_len < COFFER__MSCAN_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__MSCAN_HEADER_LEN_AT,
                            "header length %lu is less than the header's %d bytes",
                            (unsigned long)header.header_len, COFFER__MSCAN_HEADER_SIZE);
    if (header.header_len > size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MSCAN_HEADER_LEN_AT,
                            "metadata ends at %lu, file has %" PRIu64, (unsigned long)header.header_len,
                            size);
    *out = header;
    return COFFER_OK;
}

void coffer__mscan_write_header(uint8_t out[COFFER__MSCAN_HEADER_SIZE], uint32_t header_len,
                                uint32_t record_count)
{
    memcpy(out, COFFER__MSCAN_MAGIC, COFFER__MSCAN_MAGIC_SIZE);
    coffer__store_u16(out + COFFER__MSCAN_VERSION_AT, COFFER__MSCAN_VERSION);
    coffer__store_u32(out + COFFER__MSCAN_HEADER_LEN_AT, header_len);
    coffer__store_u32(out + COFFER__MSCAN_COUNT_AT, record_count);
}

coffer_status coffer__mscan_read_metadata(coffer__mscan_metadata *out, coffer_source *src,
                                          const coffer__mscan_header *header, const coffer_limits *limits,
                                          coffer_report *report, coffer_error *err)
{
    size_t len = header->header_len - COFFER__MSCAN_HEADER_SIZE;
    coffer_status status;
    char *text;
    if (len > limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MSCAN_HEADER_SIZE,
                            "metadata of %zu bytes, the limit is %" PRIu64, len, limits->json_bytes);
    text = coffer__malloc(len + 1);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer_source_read_at(text, src, COFFER__MSCAN_HEADER_SIZE, len, err);
    if (status) {
        coffer__free(text);
        return status;
    }
    coffer__mscan_seal seal = coffer__mscan_seal_of(header, text, len);
    status = coffer__mscan_metadata_load(out, text, len, COFFER__MSCAN_HEADER_SIZE, limits, report, err);
    if (!status)
        out->seal = seal;
    return status;
}

coffer_status coffer_mscan_open(coffer_mscan **out, coffer_source *src, const coffer_mscan_open_opts *opts,
                                coffer_error *err)
{
    coffer_mscan_open_opts options = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer__mscan_header header;
    coffer_mscan *scan;
    uint64_t whole;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    scan = coffer__calloc(1, sizeof *scan);
    if (!scan)
        return coffer__fail_no_memory(err, sizeof *scan);
    scan->source = src;
    scan->limits = coffer__limits(options.limits);
    status = coffer__mscan_read_header(&header, src, err);
    if (!status)
        status = coffer__mscan_read_metadata(&scan->metadata, src, &header, &scan->limits, NULL, err);
    if (!status)
        status = coffer__mscan_check_seal(&scan->metadata, header.record_count, NULL, err);
    if (status)
        goto out;
    scan->record_area = header.header_len;
    scan->record_count = header.record_count;
    whole = (coffer_source_size(src) - header.header_len) / COFFER__MSCAN_RECORD_SIZE;
    if (whole < header.record_count && !options.lenient) {
        status = coffer__fail(err, COFFER_E_TRUNCATED, coffer_source_size(src),
                              "header says %lu records, file has %" PRIu64,
                              (unsigned long)header.record_count, whole);
        goto out;
    }
    if (whole < header.record_count)
        scan->record_count = whole;
    status = coffer__mscan_verifier_new(&scan->verifier, src, scan->record_area, scan->record_count,
                                        &scan->metadata, false, err);
    if (!status)
        status = coffer__mscan_find_layers(scan, err);
out:
    /* Whatever was found, right or wrong, may be a mixture of an old and a new state. */
    if (!coffer__source_settled(src))
        status =
            coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was opened, try again");
    if (status) {
        coffer_mscan_close(scan);
        return status;
    }
    *out = scan;
    return COFFER_OK;
}

void coffer_mscan_close(coffer_mscan *scan)
{
    if (!scan)
        return;
    coffer__mscan_verifier_free(scan->verifier);
    coffer__free(scan->layers.names);
    coffer__free(scan->layers.of_param);
    coffer__mscan_metadata_free(&scan->metadata);
    coffer_source_close(scan->own_source);
    coffer__free(scan);
}

coffer_status coffer_mscan_open_path(coffer_mscan **out, const char *path, const coffer_mscan_open_opts *opts,
                                     coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mscan *scan = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mscan_open(&scan, src, opts, err);
    if (status) {
        coffer_source_close(src);
        return status;
    }
    scan->own_source = src;
    *out = scan;
    return COFFER_OK;
}

coffer_status coffer_mscan_open_metadata(coffer_mscan **out, const char *json, size_t len,
                                         const coffer_mscan_open_opts *opts, coffer_error *err)
{
    coffer_mscan_open_opts options = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_mscan *scan = coffer__calloc(1, sizeof *scan);
    char *text = coffer__strndup(json, len);
    if (!scan || !text) {
        coffer__free(scan);
        coffer__free(text);
        return coffer__fail_no_memory(err, sizeof *scan + len);
    }
    scan->limits = coffer__limits(options.limits);
    status = coffer__mscan_metadata_load(&scan->metadata, text, len, 0, &scan->limits, NULL, err);
    if (!status)
        status = coffer__mscan_find_layers(scan, err);
    if (!status)
        status = coffer_source_from_memory(&scan->own_source, "", 0, err);
    if (status) {
        coffer_mscan_close(scan);
        return status;
    }
    scan->source = scan->own_source;
    *out = scan;
    return COFFER_OK;
}

COFFER__INIT_FUNCTION(coffer_mscan_open_opts, COFFER_MSCAN_OPEN_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mscan_quantization, COFFER_MSCAN_QUANTIZATION_INIT)

/* ---- Metadata ---- */

uint64_t coffer_mscan_record_count(const coffer_mscan *scan)
{
    return scan->record_count;
}

uint64_t coffer_mscan_total_tokens(const coffer_mscan *scan)
{
    return scan->metadata.total_tokens;
}

const char *coffer_mscan_model_name(const coffer_mscan *scan)
{
    return scan->metadata.model_name;
}

size_t coffer_mscan_sequence_count(const coffer_mscan *scan)
{
    return scan->metadata.sequence_count;
}

const coffer_mscan_sequence *coffer_mscan_sequence_at(const coffer_mscan *scan, size_t index)
{
    return index < scan->metadata.sequence_count ? &scan->metadata.sequences[index] : NULL;
}

size_t coffer_mscan_sequence_of_token(const coffer_mscan *scan, uint64_t token)
{
    if (token >= scan->metadata.total_tokens)
        return COFFER_INDEX_NONE;
    /* The last that begins at or before the token: empty ones share a start and come first. */
    return COFFER__COUNT_UP_TO(scan->metadata.sequences, scan->metadata.sequence_count, coffer_mscan_sequence,
                               first_token, token) -
           1;
}

size_t coffer_mscan_find_sequence(const coffer_mscan *scan, uint64_t sequence_id)
{
    for (size_t i = 0; i < scan->metadata.sequence_count; i++)
        if (scan->metadata.sequences[i].sequence_id == sequence_id)
            return i;
    return COFFER_INDEX_NONE;
}

size_t coffer_mscan_param_count(const coffer_mscan *scan)
{
    return scan->metadata.param_count;
}

const coffer_mscan_param *coffer_mscan_param_at(const coffer_mscan *scan, size_t index)
{
    return index < scan->metadata.param_count ? &scan->metadata.params[index] : NULL;
}

const char *coffer_mscan_param_name(const coffer_mscan *scan, uint16_t param_id)
{
    const coffer_mscan_param *param = coffer__mscan_find_param(&scan->metadata, param_id);
    return param ? param->name : NULL;
}

const char *coffer_mscan_metadata(const coffer_mscan *scan, size_t *len)
{
    if (len)
        *len = scan->metadata.text_len;
    return scan->metadata.text;
}

coffer_mscan_scale_scope coffer_mscan_quantization_scope(const coffer_mscan *scan, coffer_mscan_metric metric)
{
    return scan->metadata.scales[metric].scope;
}

const coffer_mscan_quantization *coffer_mscan_quantization_of(const coffer_mscan *scan,
                                                              coffer_mscan_metric metric, uint16_t param_id,
                                                              size_t sequence)
{
    const coffer__mscan_metadata *metadata = &scan->metadata;
    const coffer__mscan_scales *scales = &metadata->scales[metric];
    size_t index = COFFER_INDEX_NONE;
    if (scales->scope == COFFER_MSCAN_SCALE_PARAM && metadata->param_index[param_id])
        index = metadata->param_index[param_id] - 1;
    else if (scales->scope == COFFER_MSCAN_SCALE_SEQUENCE && sequence < metadata->sequence_count)
        index = sequence;
    if (index != COFFER_INDEX_NONE && !isnan(scales->values[index].scale))
        return &scales->values[index];
    return scales->scope != COFFER_MSCAN_SCALE_UNKNOWN && scales->has_common ? &scales->common : NULL;
}

/* ---- Records ---- */

coffer_status coffer__mscan_fetch(const uint8_t **out, coffer_source *src, uint64_t area, uint64_t first,
                                  size_t count, uint8_t *scratch, coffer_error *err)
{
    uint64_t offset = area + first * COFFER__MSCAN_RECORD_SIZE;
    size_t len = count * COFFER__MSCAN_RECORD_SIZE;
    return coffer__source_fetch(out, src, offset, len, scratch, err);
}

coffer_status coffer__mscan_records(const uint8_t **out, const coffer_mscan *scan, uint64_t first,
                                    size_t count, uint8_t *scratch, coffer_error *err)
{
    coffer_status status = coffer__mscan_verify(scan->verifier, first, count, err);
    return status ? status
                  : coffer__mscan_fetch(out, scan->source, scan->record_area, first, count, scratch, err);
}

static coffer_status check_range(const coffer_mscan *scan, uint64_t first, uint64_t count, coffer_error *err)
{
    if (coffer__range_fits(first, count, scan->record_count))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "%" PRIu64 " records from %" PRIu64 " requested, the scan has %" PRIu64, count, first,
                        scan->record_count);
}

coffer_status coffer_mscan_read(coffer_mscan_record *out, const coffer_mscan *scan, uint64_t first,
                                uint64_t count, coffer_error *err)
{
    uint8_t scratch[512 * COFFER__MSCAN_RECORD_SIZE];
    const size_t batch = sizeof scratch / COFFER__MSCAN_RECORD_SIZE;
    coffer_status status = check_range(scan, first, count, err);

    for (uint64_t done = 0; !status && done < count;) {
        size_t n = count - done < batch ? (size_t)(count - done) : batch;
        const uint8_t *packed = NULL;
        status = coffer__mscan_records(&packed, scan, first + done, n, scratch, err);
        for (size_t i = 0; !status && i < n; i++)
            out[done + i] = coffer__mscan_load(packed + i * COFFER__MSCAN_RECORD_SIZE);
        done += n;
    }
    return status ? status : coffer_source_intact(scan->source, err);
}

const uint8_t *coffer_mscan_view(const coffer_mscan *scan, uint64_t first, uint64_t count)
{
    size_t len;
    if (!coffer__range_fits(first, count, scan->record_count) ||
        !coffer__to_size(&len, count * COFFER__MSCAN_RECORD_SIZE) ||
        coffer__mscan_verify(scan->verifier, first, count, NULL))
        return NULL;
    return coffer_source_view(scan->source, scan->record_area + first * COFFER__MSCAN_RECORD_SIZE, len);
}
