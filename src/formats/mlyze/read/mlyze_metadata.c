#include "formats/mlyze/read/mlyze_metadata.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_layout.h"

#include <inttypes.h>
#include <string.h>

#define STACKS_KEY "stack_traces"

typedef struct loader {
    coffer__mlyze_metadata *metadata;
    const coffer_limits *limits;
    coffer_report *report; /* or NULL */
    coffer_error *err;
} loader;

bool coffer__mlyze_parse_id(uint64_t *out, const char *text, size_t len)
{
    uint64_t value = 0;
    if (len == 0 || len > 20 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(uint8_t)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *out = value;
    return true;
}

/* ---- The text ---- */

static bool is_stacks_key(const char *key, size_t len)
{
    return len == strlen(STACKS_KEY) && memcmp(key, STACKS_KEY, len) == 0;
}

/* Reads the stacks in place; [*begin, *end) of the text is their object, or empty. Errors elsewhere are left
 * to the parser. */
static coffer_status read_stacks(size_t *begin, size_t *end, const loader *load)
{
    coffer__mlyze_metadata *metadata = load->metadata;
    coffer__mlyze_text in = { metadata->text, metadata->text, metadata->text + metadata->text_len,
                              load->limits, load->report };
    char room[COFFER__MLYZE_KEY_ROOM];
    const char *key = NULL;
    size_t len = 0;
    coffer_status status;
    *begin = *end = 0;
    if (!coffer__mlyze_text_take(&in, '{'))
        return COFFER_OK;
    while (coffer__mlyze_text_key(&key, &len, &in, room)) {
        coffer__mlyze_text_space(&in);
        if (is_stacks_key(key, len) && in.at < in.end && *in.at == '{') {
            *begin = (size_t)(in.at - in.start);
            status = coffer__mlyze_stack_table_read(&metadata->stacks, &in, load->err);
            *end = (size_t)(in.at - in.start);
            return status;
        }
        if (!coffer__mlyze_text_skip(&in) || !coffer__mlyze_text_take(&in, ','))
            break;
    }
    return COFFER_OK;
}

/* Parses all but the stacks. */
static coffer_status parse_rest(const loader *load, size_t begin, size_t end)
{
    coffer__mlyze_metadata *metadata = load->metadata;
    size_t tail = metadata->text_len - end;
    coffer_status status;
    char *rest;
    if (begin == end)
        return coffer__json_parse(&metadata->json, metadata->text, metadata->text_len,
                                  COFFER__MLYZE_HEADER_SIZE, load->limits, load->err);
    rest = coffer__malloc(begin + 2 + tail);
    if (!rest)
        return coffer__fail_no_memory(load->err, begin + 2 + tail);
    memcpy(rest, metadata->text, begin);
    memcpy(rest + begin, "{}", 2);
    memcpy(rest + begin + 2, metadata->text + end, tail);
    status = coffer__json_parse(&metadata->json, rest, begin + 2 + tail, COFFER__MLYZE_HEADER_SIZE,
                                load->limits, load->err);
    coffer__free(rest);
    /* Its offsets are not those of the whole text. */
    if (status && coffer__is_about_file(status) && load->err)
        load->err->offset = COFFER__MLYZE_HEADER_SIZE;
    return status;
}

static coffer_status parse_text(const loader *load)
{
    coffer__mlyze_metadata *metadata = load->metadata;
    size_t begin, end;
    coffer_status status = read_stacks(&begin, &end, load), explained;
    if (!status)
        status = parse_rest(load, begin, end);
    if (status != COFFER_E_BAD_JSON && status != COFFER_E_BAD_TEXT)
        return status;
    explained =
        coffer__json_explain(metadata->text, metadata->text_len, COFFER__MLYZE_HEADER_SIZE,
                             load->limits->json_depth < COFFER__JSON_MAX_DEPTH ? load->limits->json_depth
                                                                               : COFFER__JSON_MAX_DEPTH,
                             false, load->err);
    if (explained)
        return explained;
    return coffer__fail(load->err, status, COFFER__MLYZE_HEADER_SIZE, "the metadata cannot be read as JSON");
}

/* ---- Tables ---- */

static void report_entry(const loader *load, coffer_status code, const char *table,
                         const coffer__json_value *entry, const char *what)
{
    if (load->report)
        coffer__report_add(load->report, code, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE, "%s: \"%.*s\" %s",
                           table, entry->key_len < 40 ? (int)entry->key_len : 40, entry->key, what);
}

static coffer_status add_name(coffer__mlyze_names *names, uint64_t id, const coffer__json_value *value,
                              coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&names->values, &names->capacity, names->ids.count,
                                                     sizeof(const coffer__json_value *), err);
    if (status)
        return status;
    names->values[names->ids.count] = value;
    return coffer__mlyze_ids_add(&names->ids, id, err);
}

/* A table that is missing or not an object is empty. */
static const coffer__json_value *find_table(const loader *load, const char *table)
{
    const coffer__json_value *value = coffer__json_find(coffer__json_root(load->metadata->json), table);
    if (value && value->kind != COFFER__JSON_OBJECT) {
        report_entry(load, COFFER_E_BAD_VALUE, "metadata", value, "is not an object");
        value = NULL;
    }
    return value;
}

static coffer_status load_names(coffer__mlyze_names *out, const loader *load, const char *table,
                                uint64_t highest)
{
    const coffer__json_value *object = find_table(load, table);
    size_t second;
    coffer_status status = COFFER_OK;
    if (object && object->as.count > load->limits->entries)
        return coffer__fail(load->err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                            "%" PRIu64 " %s, the limit is %" PRIu64, (uint64_t)object->as.count, table,
                            load->limits->entries);
    for (const coffer__json_value *entry = coffer__json_first(object); !status && entry;
         entry = coffer__json_next(object, entry)) {
        uint64_t id;
        if (!coffer__mlyze_parse_id(&id, entry->key, entry->key_len) || id > highest)
            report_entry(load, COFFER_E_BAD_VALUE, table, entry, "is not an id");
        else if (entry->kind != COFFER__JSON_STRING)
            report_entry(load, COFFER_E_BAD_VALUE, table, entry, "is not a string");
        else
            status = add_name(out, id, entry, load->err);
    }
    /* Every id has one spelling, so different keys are different ids. */
    return status ? status : coffer__mlyze_ids_index(&out->ids, &second, load->err);
}

static coffer_status index_stacks(const loader *load)
{
    coffer__mlyze_stack_table *stacks = &load->metadata->stacks;
    size_t second;
    coffer_status status = coffer__mlyze_ids_index(&stacks->ids, &second, load->err);
    if (status || second == SIZE_MAX)
        return status;
    if (!load->report)
        return coffer__fail(load->err, COFFER_E_DUPLICATE, COFFER__MLYZE_HEADER_SIZE,
                            "stack %" PRIu64 " occurs twice", stacks->ids.items[second]);
    coffer__report_add(load->report, COFFER_E_DUPLICATE, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE,
                       "stack %" PRIu64 " occurs twice", stacks->ids.items[second]);
    return COFFER_OK;
}

static coffer_status load_tables(const loader *load)
{
    coffer__mlyze_metadata *metadata = load->metadata;
    const coffer__json_value *root = coffer__json_root(metadata->json);
    if (root->kind != COFFER__JSON_OBJECT)
        return coffer__fail(load->err, COFFER_E_BAD_JSON, COFFER__MLYZE_HEADER_SIZE,
                            "the metadata is not a JSON object");
    find_table(load, STACKS_KEY);
    coffer_status status = load_names(&metadata->files, load, "files", UINT64_MAX);
    if (!status)
        status = load_names(&metadata->functions, load, "functions", UINT64_MAX);
    if (!status)
        status = load_names(&metadata->threads, load, "threads", UINT16_MAX);
    if (status)
        return status;
    return index_stacks(load);
}

static size_t without_spaces(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) && text[len - 1])
        len--;
    return len;
}

coffer_status coffer__mlyze_metadata_load(coffer__mlyze_metadata *out, char *text, size_t len,
                                          const coffer_limits *limits, coffer_report *report,
                                          coffer_error *err)
{
    coffer__mlyze_metadata metadata = { .text = text, .text_len = without_spaces(text, len) };
    loader load = { .metadata = &metadata, .limits = limits, .report = report, .err = err };
    text[metadata.text_len] = '\0';
    coffer_status status = parse_text(&load);
    if (!status)
        status = load_tables(&load);
    if (status) {
        coffer__mlyze_metadata_free(&metadata);
        return status;
    }
    *out = metadata;
    return COFFER_OK;
}

/* ---- Order of frames ---- */

static coffer_mlyze_order marked_order(const coffer__mlyze_metadata *metadata, coffer_report *report)
{
    const coffer__json_value *value =
        coffer__json_find(coffer__json_root(metadata->json), COFFER__MLYZE_ORDER_KEY);
    const char *text = value && value->kind == COFFER__JSON_STRING ? value->as.string : "";
    if (!value)
        return COFFER_MLYZE_ORDER_AUTO;
    if (strcmp(text, COFFER__MLYZE_INNERMOST_FIRST) == 0)
        return COFFER_MLYZE_ORDER_INNERMOST_FIRST;
    if (strcmp(text, COFFER__MLYZE_OUTERMOST_FIRST) != 0 && report)
        coffer__report_add(report, COFFER_E_BAD_VALUE, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE,
                           "\"%s\" must be \"%s\" or \"%s\"", COFFER__MLYZE_ORDER_KEY,
                           COFFER__MLYZE_OUTERMOST_FIRST, COFFER__MLYZE_INNERMOST_FIRST);
    return COFFER_MLYZE_ORDER_OUTERMOST_FIRST;
}

/* Coffer 0.1 wrote the JSON without spaces and the stacks first; other known writers put a space after a
 * colon. A trace that it compressed for another writer kept the text of that writer. */
static bool looks_like_0_1(const coffer__mlyze_metadata *metadata)
{
    static const char begin[] = "{\"stack_traces\":{";
    return metadata->text_len >= sizeof begin && memcmp(metadata->text, begin, sizeof begin - 1) == 0;
}

static bool has_calls(const coffer__mlyze_stack_table *stacks)
{
    size_t begin = 0;
    for (size_t i = 0; i < stacks->ids.count; i++) {
        if (stacks->ends[i] - begin > 1)
            return true;
        begin = stacks->ends[i];
    }
    return false;
}

static void turn_over(coffer__mlyze_stack_table *stacks)
{
    size_t begin = 0;
    for (size_t i = 0; i < stacks->ids.count; i++) {
        for (size_t a = begin, b = stacks->ends[i]; a + 1 < b; a++) {
            coffer_mlyze_frame frame = stacks->frames[a];
            stacks->frames[a] = stacks->frames[--b];
            stacks->frames[b] = frame;
        }
        begin = stacks->ends[i];
    }
}

void coffer__mlyze_settle_order(coffer__mlyze_metadata *metadata, uint32_t flags, coffer_mlyze_order wanted,
                                coffer_report *report)
{
    const uint32_t old_flags = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_COMPLETE;
    coffer_mlyze_order order = marked_order(metadata, report);
    metadata->order_is_known = true;
    if (order == COFFER_MLYZE_ORDER_AUTO)
        order = wanted;
    if (order == COFFER_MLYZE_ORDER_AUTO) {
        bool old = (flags & old_flags) == old_flags && !(flags & COFFER__MLYZE_FLAG_FULL_SUMS);
        order = old && looks_like_0_1(metadata) ? COFFER_MLYZE_ORDER_INNERMOST_FIRST
                                                : COFFER_MLYZE_ORDER_OUTERMOST_FIRST;
        metadata->order_is_known = flags != 0 || !looks_like_0_1(metadata) || !has_calls(&metadata->stacks);
    }
    metadata->order = order;
    if (order == COFFER_MLYZE_ORDER_OUTERMOST_FIRST)
        turn_over(&metadata->stacks);
}

static void free_names(coffer__mlyze_names *names)
{
    coffer__mlyze_ids_free(&names->ids);
    coffer__free(names->values);
}

void coffer__mlyze_metadata_free(coffer__mlyze_metadata *metadata)
{
    free_names(&metadata->files);
    free_names(&metadata->functions);
    free_names(&metadata->threads);
    coffer__mlyze_stack_table_free(&metadata->stacks);
    coffer__json_free(metadata->json);
    coffer__free(metadata->text);
    *metadata = (coffer__mlyze_metadata){ .text = NULL };
}

const char *coffer__mlyze_name(const coffer__mlyze_names *names, uint64_t id, size_t *len)
{
    size_t number = coffer__mlyze_ids_find(&names->ids, id);
    if (number == SIZE_MAX)
        return NULL;
    if (len)
        *len = names->values[number]->string_len;
    return names->values[number]->as.string;
}
