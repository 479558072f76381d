/* Reads compact tables. */
#include "formats/mlyze/read/mlyze_tables.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

typedef struct stream {
    const uint8_t *at, *end;
} stream;

static size_t left_of(const stream *from)
{
    return (size_t)(from->end - from->at);
}

typedef struct unpacking {
    uint8_t *memory; /* of all streams */
    stream streams[COFFER__MLYZE_TABLE_STREAMS];
    uint32_t calls, stacks;
    coffer_mlyze_frame *frames; /* of the calls, from 1 on */
    uint32_t *callers, *depths;
    const coffer_limits *limits;
} unpacking;

static coffer_status fail(coffer_error *err, const char *what)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__MLYZE_HEADER_SIZE,
                        "the compressed metadata is damaged: %s", what);
}

/* Decompresses all streams. */
static coffer_status decompress(unpacking *work, const uint8_t *stored, size_t len, coffer_error *err)
{
    const uint8_t *sizes = stored + COFFER__MLYZE_TABLES_SIZES_AT;
    uint64_t raw = 0, packed = COFFER__MLYZE_TABLES_DIRECTORY;
    for (int i = 0; i < COFFER__MLYZE_TABLE_STREAMS; i++) {
        raw += coffer__load_u32(sizes + 8 * i);
        packed += coffer__load_u32(sizes + 8 * i + 4);
    }
    if (packed != len)
        return fail(err, "its streams do not end where it ends");
    if (raw > work->limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                            "metadata of %" PRIu64 " bytes, the limit is %" PRIu64, raw,
                            work->limits->json_bytes);
    uint8_t *to = work->memory = coffer__malloc((size_t)raw + 1);
    const uint8_t *from = stored + COFFER__MLYZE_TABLES_DIRECTORY;
    if (!to)
        return coffer__fail_no_memory(err, raw);
    for (int i = 0; i < COFFER__MLYZE_TABLE_STREAMS; i++) {
        size_t wanted = coffer__load_u32(sizes + 8 * i), have = coffer__load_u32(sizes + 8 * i + 4);
        work->streams[i] = (stream){ to, to + wanted };
        if (wanted == have)
            memcpy(to, from, have);
        else if (ZSTD_decompress(to, wanted, from, have) != wanted)
            return fail(err, "a stream does not decompress to its size");
        to += wanted;
        from += have;
    }
    return COFFER_OK;
}

static bool take(uint64_t *out, stream *from)
{
    return coffer__varint_read(out, &from->at, from->end) <= COFFER__VARINT_OVERLONG;
}

static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

/* A caller precedes what it calls, so that paths end. */
static coffer_status read_calls(unpacking *work, coffer_error *err)
{
    stream *streams = work->streams;
    size_t count = (size_t)work->calls + 1;
    if (work->calls > left_of(&streams[COFFER__MLYZE_TABLE_CALLERS]))
        return fail(err, "it has fewer calls than it says");
    work->frames = coffer__alloc_array(count, sizeof *work->frames);
    work->callers = coffer__alloc_array(count, sizeof *work->callers);
    work->depths = coffer__alloc_array(count, sizeof *work->depths);
    if (!work->frames || !work->callers || !work->depths)
        return coffer__fail_no_memory(err, count * sizeof *work->frames);
    work->depths[0] = 0;
    for (uint32_t i = 1; i <= work->calls; i++) {
        coffer_mlyze_frame *frame = &work->frames[i];
        uint64_t back;
        if (!take(&back, &streams[COFFER__MLYZE_TABLE_CALLERS]) || back == 0 || back > i ||
            !take(&frame->file_id, &streams[COFFER__MLYZE_TABLE_FILES]) ||
            !take(&frame->line, &streams[COFFER__MLYZE_TABLE_LINES]) ||
            !take(&frame->func_id, &streams[COFFER__MLYZE_TABLE_FUNCTIONS]))
            return fail(err, "a call cannot be decoded");
        work->callers[i] = i - (uint32_t)back;
        work->depths[i] = work->depths[work->callers[i]] + 1;
    }
    return COFFER_OK;
}

/* Reads ids and calls of the stacks; calls[i] is that of stack i. */
static coffer_status read_stacks(uint32_t *calls, coffer__mlyze_stack_table *out, unpacking *work,
                                 coffer_error *err)
{
    stream *from = &work->streams[COFFER__MLYZE_TABLE_STACKS];
    uint64_t id = UINT64_MAX, call = 0, step, frames = 0;
    for (uint32_t i = 0; i < work->stacks; i++) {
        if (!take(&step, from))
            return fail(err, "a stack cannot be decoded");
        id += 1 + unzigzag(step);
        if (!take(&step, from) || (call += unzigzag(step)) > work->calls)
            return fail(err, "a stack ends with a call that does not exist");
        calls[i] = (uint32_t)call;
        frames += work->depths[call];
        if (frames > work->limits->json_bytes / COFFER__MLYZE_FRAME_TEXT_MIN)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                                "stacks of more than %" PRIu64 " frames, the limit of metadata is %" PRIu64
                                " bytes",
                                frames - work->depths[call], work->limits->json_bytes);
        out->ends[i] = (size_t)frames;
        coffer_status status = coffer__mlyze_ids_add(&out->ids, id, err);
        if (status)
            return status;
    }
    out->frame_count = out->frames_capacity = (size_t)frames;
    return COFFER_OK;
}

static coffer_status fill_stacks(coffer__mlyze_stack_table *out, unpacking *work, coffer_error *err)
{
    uint32_t *calls = coffer__alloc_array((size_t)work->stacks + 1, sizeof *calls);
    coffer_status status = COFFER_OK;
    out->ends_capacity = (size_t)work->stacks + 1;
    out->ends = coffer__alloc_array(out->ends_capacity, sizeof *out->ends);
    if (!calls || !out->ends)
        status = coffer__fail_no_memory(err, work->stacks * sizeof *out->ends);
    if (!status)
        status = read_stacks(calls, out, work, err);
    if (!status) {
        out->frames = coffer__alloc_array(out->frame_count + 1, sizeof *out->frames);
        status =
            out->frames ? COFFER_OK : coffer__fail_no_memory(err, out->frame_count * sizeof *out->frames);
    }
    for (uint32_t i = 0; !status && i < work->stacks; i++) {
        size_t at = out->ends[i];
        for (uint32_t call = calls[i]; call; call = work->callers[call])
            out->frames[--at] = work->frames[call];
    }
    coffer__free(calls);
    return status;
}

static coffer_status check_ends(const unpacking *work, coffer_error *err)
{
    for (int i = COFFER__MLYZE_TABLE_CALLERS; i < COFFER__MLYZE_TABLE_STREAMS; i++) {
        if (work->streams[i].at != work->streams[i].end)
            return fail(err, "a stream has more than the tables take");
    }
    return COFFER_OK;
}

static coffer_status take_json(coffer__mlyze_unpacked_tables *out, const unpacking *work,
                               const uint8_t *stored, coffer_error *err)
{
    const stream *json = &work->streams[COFFER__MLYZE_TABLE_JSON];
    uint32_t hole = coffer__load_u32(stored + COFFER__MLYZE_TABLES_HOLE_AT);
    out->len = coffer__load_u32(stored + COFFER__MLYZE_TABLES_JSON_AT);
    out->spaces = coffer__load_u32(stored + COFFER__MLYZE_TABLES_SPACES_AT);
    out->has_tree = hole != COFFER__MLYZE_NO_HOLE;
    out->hole = out->has_tree ? hole : 0;
    if (out->len != (size_t)(json->end - json->at))
        return fail(err, "its JSON has another length");
    if (out->spaces > work->limits->json_bytes)
        return fail(err, "it has too many spaces");
    if (out->has_tree && (out->len < 2 || hole > out->len - 2 || memcmp(json->at + hole, "{}", 2) != 0))
        return fail(err, "its JSON has no place for the stacks");
    if (!out->has_tree && (work->calls > 0 || work->stacks > 0))
        return fail(err, "it has stacks twice");
    out->json = coffer__malloc(out->len + 1);
    if (!out->json)
        return coffer__fail_no_memory(err, out->len);
    memcpy(out->json, json->at, out->len);
    return COFFER_OK;
}

coffer_status coffer__mlyze_tables_unpack(coffer__mlyze_unpacked_tables *out, const uint8_t *stored,
                                          size_t len, const coffer_limits *limits, coffer_error *err)
{
    coffer__mlyze_unpacked_tables tables = { .json = NULL };
    unpacking work = { .limits = limits };
    if (len < COFFER__MLYZE_TABLES_DIRECTORY || memcmp(stored, COFFER__MLYZE_TABLES_MAGIC, 4) != 0)
        return fail(err, "it does not begin with " COFFER__MLYZE_TABLES_MAGIC);
    work.calls = coffer__load_u32(stored + COFFER__MLYZE_TABLES_CALLS_AT);
    work.stacks = coffer__load_u32(stored + COFFER__MLYZE_TABLES_STACKS_AT);
    coffer_status status = decompress(&work, stored, len, err);
    if (!status &&
        (work.stacks > limits->entries || work.stacks > left_of(&work.streams[COFFER__MLYZE_TABLE_STACKS])))
        status = fail(err, "it has fewer stacks than it says");
    if (!status)
        status = read_calls(&work, err);
    if (!status)
        status = fill_stacks(&tables.stacks, &work, err);
    if (!status)
        status = check_ends(&work, err);
    if (!status)
        status = take_json(&tables, &work, stored, err);
    coffer__free(work.memory);
    coffer__free(work.frames);
    coffer__free(work.callers);
    coffer__free(work.depths);
    if (status)
        coffer__mlyze_stack_table_free(&tables.stacks);
    else
        *out = tables;
    return status;
}

coffer_status coffer__mlyze_metadata_load_any(coffer__mlyze_metadata *out, char *stored, size_t len,
                                              uint32_t flags, const coffer_limits *limits,
                                              coffer_report *report, coffer_error *err)
{
    coffer__mlyze_unpacked_tables tables;
    size_t second;
    if (!(flags & COFFER__MLYZE_FLAG_TABLES))
        return coffer__mlyze_metadata_load(out, stored, len, limits, report, err);
    coffer_status status = coffer__mlyze_tables_unpack(&tables, (const uint8_t *)stored, len, limits, err);
    coffer__free(stored);
    if (status)
        return status;
    coffer__mlyze_metadata metadata = { 0 };
    status = coffer__mlyze_metadata_load(&metadata, tables.json, tables.len, limits, report, err);
    if (!status && tables.has_tree) {
        coffer__mlyze_stack_table_free(&metadata.stacks);
        metadata.stacks = tables.stacks;
        tables.stacks = (coffer__mlyze_stack_table){ .ends = NULL };
        status = coffer__mlyze_ids_index(&metadata.stacks.ids, &second, err);
        if (!status && second != SIZE_MAX)
            status = coffer__fail(err, COFFER_E_DUPLICATE, COFFER__MLYZE_HEADER_SIZE,
                                  "stack %" PRIu64 " occurs twice", metadata.stacks.ids.items[second]);
    }
    coffer__mlyze_stack_table_free(&tables.stacks);
    if (status) {
        coffer__mlyze_metadata_free(&metadata);
        return status;
    }
    metadata.hole = tables.hole;
    metadata.spaces = tables.spaces + (tables.len - metadata.text_len);
    metadata.is_compact = tables.has_tree;
    *out = metadata;
    return COFFER_OK;
}

/* ---- Back to text ---- */

coffer_status coffer__mlyze_render_stacks(coffer__buffer *out, const coffer__mlyze_stack_table *stacks,
                                          bool reversed, coffer_error *err)
{
    size_t begin = 0;
    coffer__buffer_append(out, "{", 1);
    for (size_t i = 0; i < stacks->ids.count && !out->failed; i++) {
        size_t end = stacks->ends[i], depth = end - begin;
        coffer__buffer_printf(out, "%s\"%" PRIu64 "\":[", i ? "," : "", stacks->ids.items[i]);
        for (size_t k = 0; k < depth; k++) {
            const coffer_mlyze_frame *frame = &stacks->frames[reversed ? end - 1 - k : begin + k];
            coffer__mlyze_text_frame(out, frame, k + 1 == depth);
        }
        coffer__buffer_append(out, "]", 1);
        begin = end;
    }
    coffer__buffer_append(out, "}", 1);
    return out->failed ? coffer__fail_no_memory(err, out->len) : COFFER_OK;
}

coffer_status coffer__mlyze_tables_text(char **out, size_t *len, const coffer__mlyze_metadata *metadata,
                                        coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    size_t rest = metadata->hole + 2;
    coffer_status status = COFFER_OK;
    if (metadata->is_compact) {
        coffer__buffer_append(&text, metadata->text, metadata->hole);
        status = coffer__mlyze_render_stacks(&text, &metadata->stacks,
                                             metadata->order == COFFER_MLYZE_ORDER_OUTERMOST_FIRST, err);
        coffer__buffer_append(&text, metadata->text + rest, metadata->text_len - rest);
    } else {
        coffer__buffer_append(&text, metadata->text, metadata->text_len);
    }
    coffer__buffer_fill(&text, ' ', metadata->spaces);
    size_t whole = text.len;
    coffer__buffer_append(&text, "", 1);
    if (!status && text.failed)
        status = coffer__fail_no_memory(err, text.len);
    if (status) {
        coffer__buffer_free(&text);
        return status;
    }
    *out = (char *)coffer__buffer_release(&text, NULL);
    *len = whole;
    return COFFER_OK;
}
