#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

/* Writers put the small sections before or after the payloads. */
#define REACH ((uint64_t)256 << 20)
#define WINDOW ((size_t)1 << 20)
#define CANDIDATES_MAX 64 /* looked at closely: each costs as much as its tables are long */

/* Says whether a section of the kind may begin at these bytes, and how long it is. */
typedef bool (*looks_like)(uint64_t *size, const uint8_t *head, uint64_t left);
/* Makes sure. */
typedef bool (*is_one)(coffer_source *src, const coffer_mcf_section *section, const coffer_limits *limits);

typedef struct search {
    coffer_source *source;
    const coffer_limits *limits;
    size_t head; /* bytes that looks_like needs */
    uint32_t type;
    looks_like looks;
    is_one confirm;
    unsigned candidates;
    coffer_mcf_section *found;
} search;

static bool try_at(search *query, const uint8_t *head, uint64_t offset)
{
    coffer_mcf_section section = { query->type, COFFER__MCF_SECTION_VERSION, offset, 0 };
    uint64_t left = coffer_source_size(query->source) - offset;
    if (!query->looks(&section.size, head, left) || query->candidates >= CANDIDATES_MAX)
        return false;
    query->candidates++;
    if (!query->confirm(query->source, &section, query->limits))
        return false;
    *query->found = section;
    return true;
}

static coffer_status search_range(search *query, uint64_t from, uint64_t to, uint8_t *window,
                                  coffer_error *err)
{
    uint64_t size = coffer_source_size(query->source);
    for (uint64_t at = from; at < to; at += WINDOW) {
        size_t n = size - at < WINDOW + query->head ? (size_t)(size - at) : WINDOW + query->head;
        coffer_status status = coffer_source_read_at(window, query->source, at, n, err);
        if (status)
            return status;
        for (size_t i = 0; i < WINDOW && i + query->head <= n; i += COFFER__MCF_SECTION_ALIGNMENT) {
            if (try_at(query, window + i, at + i))
                return COFFER_OK;
        }
    }
    return COFFER_OK;
}

static coffer_status run(search *query, coffer_error *err)
{
    uint64_t size = coffer_source_size(query->source), start = COFFER__MCF_HEADER_SIZE;
    uint64_t front = size < REACH ? size : REACH, back = size < 2 * REACH ? front : size - REACH;
    uint8_t *window = coffer__malloc(WINDOW + query->head);
    coffer_status status;
    if (!window)
        return coffer__fail_no_memory(err, WINDOW);
    back -= back % COFFER__MCF_SECTION_ALIGNMENT;
    query->found->size = 0;
    status = search_range(query, start, front, window, err);
    if (!status && query->found->size == 0)
        status = search_range(query, back, size, window, err);
    coffer__free(window);
    return status;
}

/* ---- TensorIndex ---- */

static bool looks_like_index(uint64_t *size, const uint8_t *head, uint64_t left)
{
    uint64_t count = coffer__load_u32(head + COFFER__MCF_INDEX_COUNT_AT),
             dims = coffer__load_u32(head + COFFER__MCF_INDEX_DIM_COUNT_AT);
    uint64_t ends[3] = { coffer__load_u64(head + COFFER__MCF_INDEX_ENTRIES_AT),
                         coffer__load_u64(head + COFFER__MCF_INDEX_DIMS_AT),
                         coffer__load_u64(head + COFFER__MCF_INDEX_STRINGS_AT) };
    uint64_t lens[3] = { count * COFFER__MCF_ENTRY, dims * sizeof(uint64_t),
                         coffer__load_u64(head + COFFER__MCF_INDEX_STRINGS_SIZE_AT) };
    uint64_t end = COFFER__MCF_INDEX_HEADER;
    if (coffer__load_u32(head + COFFER__MCF_INDEX_VERSION_AT) != COFFER__MCF_INDEX_VERSION ||
        coffer__load_u32(head + COFFER__MCF_INDEX_FLAGS_AT) >
            (COFFER__MCF_INDEX_SORTED | COFFER__MCF_INDEX_UTF8) ||
        count == 0)
        return false;
    for (int i = 0; i < 3; i++) {
        if (ends[i] < COFFER__MCF_INDEX_HEADER || !coffer__range_fits(ends[i], lens[i], left))
            return false;
        end = ends[i] + lens[i] > end ? ends[i] + lens[i] : end;
    }
    *size = end;
    return true;
}

static bool makes_sense(const coffer__mcf_index *index, size_t i)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, i);
    return entry.name && entry.dims && entry.reserved == 0 && entry.dtype <= UINT16_MAX &&
           entry.offset >= COFFER__MCF_HEADER_SIZE &&
           (!(index->flags & COFFER__MCF_INDEX_UTF8) || coffer__utf8_valid(entry.name, entry.name_len));
}

static bool is_index(coffer_source *src, const coffer_mcf_section *section, const coffer_limits *limits)
{
    coffer__mcf_index index = { 0 };
    bool good;
    if (coffer__mcf_index_load(&index, src, section, limits, NULL))
        return false;
    good = true;
    for (size_t i = 0; good && i < index.count; i++)
        good = makes_sense(&index, i);
    coffer__mcf_index_free(&index);
    return good;
}

coffer_status coffer__mcf_search_index(coffer_mcf_section *found, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err)
{
    search query = { .source = src,
                     .limits = limits,
                     .head = COFFER__MCF_INDEX_HEADER,
                     .type = COFFER_MCF_TENSOR_INDEX,
                     .looks = looks_like_index,
                     .confirm = is_index,
                     .found = found };
    return run(&query, err);
}

/* ---- ModelInfo ---- */

/* The table is after the strings, and ends the section. */
static bool looks_like_model_info(uint64_t *size, const uint8_t *head, uint64_t left)
{
    uint64_t count = coffer__load_u32(head + COFFER__MCF_MODEL_KV_COUNT_AT),
             table = coffer__load_u64(head + COFFER__MCF_MODEL_KVS_AT);
    uint64_t name = coffer__load_u64(head + COFFER__MCF_MODEL_NAME_AT);
    if (coffer__load_u32(head + COFFER__MCF_MODEL_VERSION_AT) != COFFER__MCF_SECTION_VERSION ||
        coffer__load_u32(head + COFFER__MCF_MODEL_FLAGS_AT) != 0 ||
        coffer__load_u32(head + COFFER__MCF_MODEL_ARCH_AT) > COFFER_MCF_ARCH_SMOLLM3 ||
        coffer__load_u32(head + COFFER__MCF_MODEL_PAD_AT) != 0 ||
        coffer__load_u32(head + COFFER__MCF_MODEL_ROPE_AT) > COFFER_MCF_ROPE_YARN ||
        coffer__load_u32(head + COFFER__MCF_MODEL_KV_PAD_AT) != 0 || count == 0)
        return false;
    if (name != COFFER__MCF_MODEL_INFO_SIZE || table < COFFER__MCF_MODEL_INFO_SIZE ||
        !coffer__range_fits(table, count * COFFER__MCF_KV_ENTRY, left))
        return false;
    *size = table + count * COFFER__MCF_KV_ENTRY;
    return true;
}

static bool is_model_info(coffer_source *src, const coffer_mcf_section *section, const coffer_limits *limits)
{
    coffer_mcf_model_info *info = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0;
    bool good = !coffer__mcf_load_section(&bytes, &len, src, section, limits->json_bytes, NULL) &&
                !coffer__mcf_decode_model_info(&info, bytes, len, section->offset, NULL, NULL);
    coffer__mcf_model_info_free(info);
    coffer__free(bytes);
    return good;
}

coffer_status coffer__mcf_search_model_info(coffer_mcf_section *found, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err)
{
    search query = { .source = src,
                     .limits = limits,
                     .head = COFFER__MCF_MODEL_INFO_SIZE,
                     .type = COFFER_MCF_MODEL_INFO,
                     .looks = looks_like_model_info,
                     .confirm = is_model_info,
                     .found = found };
    return run(&query, err);
}

/* ---- Checksums ---- */

/* Its size follows from its ranges; 0 when these are not plausible. */
static uint64_t size_of_sums(const uint8_t *head, coffer_source *src, uint64_t offset)
{
    uint64_t left = coffer_source_size(src) - offset, sums = 0;
    uint32_t version = coffer__load_u32(head + COFFER__MCF_SUMS_VERSION_AT);
    uint64_t ranges = coffer__load_u32(head + COFFER__MCF_SUMS_RANGES_AT);
    if (coffer__load_u32(head + COFFER__MCF_SUMS_ALGORITHM_AT) != COFFER__MCF_SUMS_CRC32 ||
        coffer__load_u32(head + COFFER__MCF_SUMS_CHUNK_AT) != COFFER__MCF_CHUNK)
        return 0;
    if (version == 1) {
        ranges = 0;
        sums = coffer__chunk_count(coffer__load_u64(head + COFFER__MCF_SUMS_SIZE_AT));
    }
    if (version > COFFER__MCF_SUMS_VERSION ||
        COFFER__MCF_SUMS_HEADER + ranges * COFFER__MCF_SUMS_RANGE > left)
        return 0;
    for (uint64_t i = 0; i < ranges; i++) {
        uint8_t size[sizeof(uint64_t)];
        if (coffer_source_read_at(
                size, src, offset + COFFER__MCF_SUMS_HEADER + i * COFFER__MCF_SUMS_RANGE + sizeof(uint64_t),
                sizeof size, NULL))
            return 0;
        sums += coffer__chunk_count(coffer__load_u64(size));
        if (sums > left)
            return 0;
    }
    uint64_t total = COFFER__MCF_SUMS_HEADER + ranges * COFFER__MCF_SUMS_RANGE + sums * sizeof(uint32_t);
    return total <= left ? total : 0;
}

/* The last one in the window whose SHA-256 is right: edits append newer tables. */
static void search_window(coffer_mcf_section *found, unsigned *candidates, coffer_source *src,
                          const uint8_t *window, size_t len, uint64_t at, const coffer_limits *limits)
{
    for (size_t i = len; i-- > 0;) {
        const uint8_t *head = window + i;
        if (len - i < COFFER__MCF_SUMS_HEADER || head[1] || head[2] || head[3] || head[4] != 1 ||
            head[0] < 1 || head[0] > COFFER__MCF_SUMS_VERSION)
            continue;
        if (coffer__load_u32(head + COFFER__MCF_SUMS_CHUNK_AT) != COFFER__MCF_CHUNK ||
            ++*candidates > CANDIDATES_MAX)
            continue;
        coffer__mcf_sums sums = { 0 };
        coffer_mcf_section section = { COFFER_MCF_CHECKSUMS, head[0], at + i,
                                       size_of_sums(head, src, at + i) };
        if (section.size == 0 || coffer__mcf_sums_load(&sums, src, &section, limits, NULL))
            continue;
        coffer__mcf_sums_free(&sums);
        *found = section;
        return;
    }
}

/* From the end backwards, at every offset: bytes that were removed shift it. */
coffer_status coffer__mcf_search_sums(coffer_mcf_section *found, coffer_source *src,
                                      const coffer_limits *limits, coffer_error *err)
{
    uint64_t size = coffer_source_size(src), end = size, first = size < REACH ? 0 : size - REACH;
    uint8_t *window = coffer__malloc(WINDOW + COFFER__MCF_SUMS_HEADER);
    coffer_status status = window ? COFFER_OK : coffer__fail_no_memory(err, WINDOW);
    unsigned candidates = 0;
    found->size = 0;
    while (!status && found->size == 0 && end > first) {
        uint64_t at = end - first < WINDOW ? first : end - WINDOW;
        size_t len = size - at < WINDOW + COFFER__MCF_SUMS_HEADER ? (size_t)(size - at)
                                                                  : WINDOW + COFFER__MCF_SUMS_HEADER;
        status = coffer_source_read_at(window, src, at, len, err);
        if (!status)
            search_window(found, &candidates, src, window, len, at, limits);
        end = at;
    }
    coffer__free(window);
    return status;
}
