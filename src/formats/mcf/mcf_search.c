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

static bool try_at(search *of, const uint8_t *head, uint64_t offset)
{
    coffer_mcf_section section = { of->type, COFFER__MCF_SECTION_VERSION, offset, 0 };
    uint64_t left = coffer_source_size(of->source) - offset;
    if (!of->looks(&section.size, head, left) || of->candidates >= CANDIDATES_MAX)
        return false;
    of->candidates++;
    if (!of->confirm(of->source, &section, of->limits))
        return false;
    *of->found = section;
    return true;
}

static coffer_status search_range(search *of, uint64_t from, uint64_t to, uint8_t *window, coffer_error *err)
{
    uint64_t size = coffer_source_size(of->source);
    for (uint64_t at = from; at < to; at += WINDOW) {
        size_t n = size - at < WINDOW + of->head ? (size_t)(size - at) : WINDOW + of->head;
        coffer_status status = coffer_source_read_at(window, of->source, at, n, err);
        if (status)
            return status;
        for (size_t i = 0; i < WINDOW && i + of->head <= n; i += COFFER__MCF_SECTION_ALIGNMENT) {
            if (try_at(of, window + i, at + i))
                return COFFER_OK;
        }
    }
    return COFFER_OK;
}

static coffer_status run(search *of, coffer_error *err)
{
    uint64_t size = coffer_source_size(of->source), start = COFFER__MCF_HEADER_SIZE;
    uint64_t front = size < REACH ? size : REACH, back = size < 2 * REACH ? front : size - REACH;
    uint8_t *window = coffer__malloc(WINDOW + of->head);
    coffer_status status;
    if (!window)
        return coffer__fail_no_memory(err, WINDOW);
    back -= back % COFFER__MCF_SECTION_ALIGNMENT;
    of->found->size = 0;
    status = search_range(of, start, front, window, err);
    if (status == COFFER_OK && of->found->size == 0)
        status = search_range(of, back, size, window, err);
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
    if (coffer__mcf_index_load(&index, src, section, limits, NULL) != COFFER_OK)
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
    search of = { .source = src,
                  .limits = limits,
                  .head = COFFER__MCF_INDEX_HEADER,
                  .type = COFFER_MCF_TENSOR_INDEX,
                  .looks = looks_like_index,
                  .confirm = is_index,
                  .found = found };
    return run(&of, err);
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
    bool good = coffer__mcf_load_section(&bytes, &len, src, section, limits->json_bytes, NULL) == COFFER_OK &&
                coffer__mcf_decode_model_info(&info, bytes, len, section->offset, NULL, NULL) == COFFER_OK;
    coffer__mcf_model_info_free(info);
    coffer__free(bytes);
    return good;
}

coffer_status coffer__mcf_search_model_info(coffer_mcf_section *found, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err)
{
    search of = { .source = src,
                  .limits = limits,
                  .head = COFFER__MCF_MODEL_INFO_SIZE,
                  .type = COFFER_MCF_MODEL_INFO,
                  .looks = looks_like_model_info,
                  .confirm = is_model_info,
                  .found = found };
    return run(&of, err);
}
