/* Writes the metadata from the tables piece by piece: stacks share frames in memory, but not in the JSON. */
#include "formats/mlyze/read/mlyze_metadata.h"
#include "formats/mlyze/write/mlyze_tables_pack.h"
#include "formats/mlyze/write/mlyze_write.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

#define PIECE ((size_t)1 << 18)
#define METADATA_MAX UINT32_MAX
#define NAME_LEAST 8 /* bytes of a name: "0":"a", */

typedef struct composing {
    coffer__buffer text;
    coffer__sink *sink;   /* NULL = measure only */
    coffer__buffer *into; /* collect the text there, without the stacks; NULL = do not */
    size_t hole;          /* where it has an empty object in their place */
    uint64_t at;          /* where the sink is patched; 0 = append */
    uint64_t len;
    uint32_t crc;
    uint32_t *path; /* the calls of a stack */
    size_t path_capacity;
} composing;

static const char *const own_keys[] = { "stack_traces",
                                        "files",
                                        "functions",
                                        "markers",
                                        "collections",
                                        COFFER__MLYZE_REPAIRED_KEY,
                                        COFFER__MLYZE_ORDER_KEY,
                                        COFFER__MLYZE_PLAIN_SUM_KIND_KEY,
                                        COFFER__MLYZE_PLAIN_SUM_KEY };

bool coffer__mlyze_is_own_key(const char *key, size_t len)
{
    for (size_t i = 0; i < sizeof own_keys / sizeof own_keys[0]; i++) {
        if (len == strlen(own_keys[i]) && memcmp(key, own_keys[i], len) == 0)
            return true;
    }
    return false;
}

static coffer_status fail_too_long(coffer_error *err)
{
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "the metadata of all stacks passes the 4 GiB that a header can say");
}

static coffer_status send(composing *work, coffer_error *err)
{
    if (work->text.failed)
        return coffer__fail_no_memory(err, work->text.len);
    if (work->len + work->text.len > METADATA_MAX)
        return fail_too_long(err);
    work->crc = coffer__crc32(work->crc, work->text.data, work->text.len);
    coffer_status status = COFFER_OK;
    if (work->into && !coffer__buffer_append(work->into, work->text.data, work->text.len))
        return coffer__fail_no_memory(err, work->text.len);
    if (work->sink && work->at)
        status = coffer__sink_patch(work->sink, work->at + work->len, work->text.data, work->text.len, err);
    else if (work->sink)
        status = coffer__sink_write(work->sink, work->text.data, work->text.len, err);
    work->len += work->text.len;
    work->text.len = 0;
    return status;
}

static coffer_status send_when_full(composing *work, coffer_error *err)
{
    return work->text.len < PIECE && !work->text.failed ? COFFER_OK : send(work, err);
}

static void put(coffer__buffer *out, const char *text)
{
    coffer__buffer_append(out, text, strlen(text));
}

/* ---- Stacks ---- */

/* Calls lead from the innermost frame outwards; the text begins with the outermost one. */
static coffer_status put_stack(composing *work, const coffer__mlyze_stack_pool *stacks,
                               const coffer__mlyze_pool_stack *stack, bool first, coffer_error *err)
{
    size_t depth = stack->call ? stacks->calls[stack->call - 1].depth : 0;
    coffer_status status = COFFER_OK;
    size_t at = depth;
    if (depth > work->path_capacity) {
        coffer__free(work->path);
        work->path = coffer__alloc_array(depth, sizeof *work->path);
        work->path_capacity = work->path ? depth : 0;
        if (!work->path)
            return coffer__fail_no_memory(err, depth * sizeof *work->path);
    }
    for (uint32_t call = stack->call; call; call = stacks->calls[call - 1].caller)
        work->path[--at] = call;
    coffer__buffer_printf(&work->text, "%s\"%" PRIu64 "\":[", first ? "" : ",", stack->id);
    for (size_t i = 0; !status && i < depth; i++) {
        coffer__mlyze_text_frame(&work->text, &stacks->calls[work->path[i] - 1].frame, i + 1 == depth);
        status = send_when_full(work, err);
    }
    put(&work->text, "]");
    return status;
}

/* Deep stacks that share most frames can be too large to write out even once. */
static coffer_status expect_room(const coffer__mlyze_stack_pool *stacks, coffer_error *err)
{
    uint64_t frames = 0;
    for (size_t i = 0; i < stacks->count && frames <= METADATA_MAX / COFFER__MLYZE_FRAME_TEXT_MIN; i++) {
        if (stacks->items[i].listed && stacks->items[i].call)
            frames += stacks->calls[stacks->items[i].call - 1].depth;
    }
    return frames <= METADATA_MAX / COFFER__MLYZE_FRAME_TEXT_MIN ? COFFER_OK : fail_too_long(err);
}

static coffer_status put_stacks(composing *work, const coffer__mlyze_stack_pool *stacks, const char *repaired,
                                coffer_error *err)
{
    coffer_status status = expect_room(stacks, err);
    bool first = true;
    put(&work->text, "{");
    put(&work->text, repaired ? repaired : "");
    put(&work->text,
        "\"" COFFER__MLYZE_ORDER_KEY "\":\"" COFFER__MLYZE_OUTERMOST_FIRST "\",\"stack_traces\":{");
    work->hole = (size_t)work->len + work->text.len - 1;
    for (size_t i = 0; !status && !work->into && i < stacks->count; i++) {
        if (!stacks->items[i].listed)
            continue;
        status = put_stack(work, stacks, &stacks->items[i], first, err);
        first = false;
    }
    put(&work->text, "}");
    return status;
}

/* ---- Other metadata ---- */

static coffer_status put_names(composing *work, const char *key, const coffer__mlyze_name_pool *names,
                               coffer_error *err)
{
    coffer_status status = COFFER_OK;
    coffer__json_writer json;
    coffer__buffer_printf(&work->text, ",\"%s\":{", key);
    for (size_t i = 0; !status && i < names->count; i++) {
        const coffer__mlyze_pool_name *name = &names->items[i];
        coffer__buffer_printf(&work->text, "%s\"%" PRIu64 "\":", i ? "," : "", name->id);
        coffer__json_writer_init(&json, &work->text, 0);
        coffer__json_string_len(&json, name->text, name->len);
        status = send_when_full(work, err);
    }
    put(&work->text, "}");
    return status;
}

static void put_extra(composing *work, const coffer__json_value *extra)
{
    for (const coffer__json_value *v = coffer__json_first(extra); v; v = coffer__json_next(extra, v)) {
        coffer__json_writer json;
        if (coffer__mlyze_is_own_key(v->key, v->key_len))
            continue;
        put(&work->text, ",");
        coffer__json_writer_init(&json, &work->text, 0);
        coffer__json_string_len(&json, v->key, v->key_len);
        put(&work->text, ":");
        coffer__json_writer_init(&json, &work->text, 0);
        coffer__json_write_value(&json, v);
    }
}

static void put_moments(composing *work, const char *key, const coffer__mlyze_moments *moments, bool names)
{
    if (moments->count == 0)
        return;
    coffer__buffer_printf(&work->text, ",\"%s\":[", key);
    for (size_t i = 0; i < moments->count; i++) {
        const coffer__mlyze_moment *m = &moments->items[i];
        coffer__buffer_printf(&work->text, "%s[%" PRIu64 ",%" PRIu64, i ? "," : "", m->event, m->time);
        if (names)
            coffer__buffer_printf(&work->text, ",%" PRIu64, m->id);
        put(&work->text, "]");
    }
    put(&work->text, "]");
}

static coffer_status compose(composing *work, const coffer__mlyze_draft *draft, coffer_error *err)
{
    coffer_status status = put_stacks(work, &draft->pools->stacks, draft->repaired, err);
    if (!status)
        status = put_names(work, "files", &draft->pools->files, err);
    if (!status)
        status = put_names(work, "functions", &draft->pools->functions, err);
    if (status)
        goto out;
    put_extra(work, draft->extra);
    put_moments(work, "markers", &draft->marks->markers, true);
    put_moments(work, "collections", &draft->marks->collections, false);
    put(&work->text, draft->summed ? "," COFFER__MLYZE_PLAIN_SUM : "}");
    if (draft->summed && work->sink && !work->text.failed)
        coffer__mlyze_put_digits((char *)work->text.data + work->text.len - COFFER__MLYZE_PLAIN_SUM_FROM_END,
                                 draft->sum);
    status = send(work, err);
out:
    coffer__buffer_free(&work->text);
    coffer__free(work->path);
    work->path = NULL;
    return status;
}

coffer_status coffer__mlyze_measure(uint32_t *len, uint32_t *crc, const coffer__mlyze_draft *draft,
                                    coffer_error *err)
{
    composing work = { .text = COFFER__BUFFER_INIT };
    coffer_status status = compose(&work, draft, err);
    if (!status) {
        *len = (uint32_t)work.len;
        *crc = work.crc;
    }
    return status;
}

coffer_status coffer__mlyze_send_metadata(uint32_t *len, uint32_t *crc, coffer__sink *sink, uint64_t at,
                                          const coffer__mlyze_draft *draft, coffer_error *err)
{
    composing work = { .text = COFFER__BUFFER_INIT, .sink = sink, .at = at };
    coffer_status status = compose(&work, draft, err);
    if (!status) {
        *len = (uint32_t)work.len;
        *crc = work.crc;
    }
    return status;
}

coffer_status coffer__mlyze_draft_tables(coffer__buffer *out, const coffer__mlyze_draft *draft,
                                         coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    composing work = { .text = COFFER__BUFFER_INIT, .into = &json };
    coffer_status status = compose(&work, draft, err);
    coffer__mlyze_tables_source from = { (const char *)json.data, json.len,    work.hole, 0,
                                         &draft->pools->stacks,   draft->quick };
    if (!status)
        status = coffer__mlyze_tables_pack(out, &from, err);
    coffer__buffer_free(&json);
    return status;
}

bool coffer__mlyze_wants_tables(const coffer__mlyze_draft *draft, uint32_t flags)
{
    const coffer__mlyze_stack_pool *stacks = &draft->pools->stacks;
    size_t names = draft->pools->files.count + draft->pools->functions.count;
    uint64_t least = names * NAME_LEAST;
    if (!(flags & COFFER__MLYZE_FLAG_BLOCKS))
        return false;
    for (size_t i = 0; i < stacks->count && least < COFFER__MLYZE_TABLES_LEAST; i++) {
        if (stacks->items[i].listed && stacks->items[i].call)
            least += stacks->calls[stacks->items[i].call - 1].depth * COFFER__MLYZE_FRAME_TEXT_MIN;
    }
    return flags & COFFER__MLYZE_FLAG_ARCHIVE || least >= COFFER__MLYZE_TABLES_LEAST;
}

/* ---- Marks ---- */

static coffer_status add(coffer__mlyze_moments *moments, uint64_t event, uint64_t time, uint64_t id,
                         coffer_error *err)
{
    if (moments->count >= COFFER__MLYZE_MARKS_MAX)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&moments->items, &moments->capacity, moments->count,
                                                     sizeof *moments->items, err);
    if (!status)
        moments->items[moments->count++] = (coffer__mlyze_moment){ event, time, id };
    return status;
}

coffer_status coffer__mlyze_marks_add(coffer__mlyze_marks *marks, const coffer_mlyze_events *events,
                                      uint64_t first, uint64_t time, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < events->count; i++) {
        if (events->time[i] > time)
            time = events->time[i];
        if (events->type[i] == COFFER_MLYZE_MARKER)
            status = add(&marks->markers, first + i, time, events->id[i], err);
        else if (events->type[i] == COFFER_MLYZE_GC)
            status = add(&marks->collections, first + i, time, 0, err);
    }
    return status;
}

void coffer__mlyze_marks_free(coffer__mlyze_marks *marks)
{
    coffer__free(marks->markers.items);
    coffer__free(marks->collections.items);
    *marks = (coffer__mlyze_marks){ 0 };
}
