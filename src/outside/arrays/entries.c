#include "outside/arrays/entries.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <string.h>

/* Entries of a run that are in memory while runs are merged. */
#define MERGE_WINDOW 1024
#define FEWEST_IN_MEMORY 4096
#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static const char spool_name[] = "temporary file";

/* A sorted piece of the temporary file. */
typedef struct run {
    uint64_t next, end; /* entries that are still there */
    coffer__entry *window;
    size_t window_at, window_len;
} run;

struct coffer__entries {
    coffer_dtype dtype;
    coffer__entry *items, *other; /* of the same capacity; the second one is for sorting */
    size_t count, capacity, max_capacity;
    bool sorted; /* as they came */
    bool finished;
    size_t at; /* next to be given, when all are in memory */
    int fd;
    uint64_t spooled;
    run *runs;
    size_t run_count, run_capacity;
    size_t *heap; /* runs by their first entry */
    size_t heap_len;
    coffer__entry pending;
    bool has_pending;
};

coffer_status coffer__entries_new(coffer__entries **out, coffer_dtype dtype, uint64_t expected,
                                  uint64_t memory_bytes, coffer_error *err)
{
    coffer__entries *entries = coffer__calloc(1, sizeof *entries);
    if (!entries)
        return coffer__fail_no_memory(err, sizeof *entries);
    uint64_t most = memory_bytes / (2 * sizeof(coffer__entry));
    if (most < FEWEST_IN_MEMORY)
        most = FEWEST_IN_MEMORY;
    entries->dtype = dtype;
    entries->max_capacity = (size_t)(expected < most ? expected : most);
    entries->sorted = true;
    entries->fd = -1;
    *out = entries;
    return COFFER_OK;
}

void coffer__entries_free(coffer__entries *entries)
{
    if (!entries)
        return;
    for (size_t i = 0; i < entries->run_count; i++)
        coffer__free(entries->runs[i].window);
    coffer__file_close(entries->fd);
    coffer__free(entries->runs);
    coffer__free(entries->heap);
    coffer__free(entries->items);
    coffer__free(entries->other);
    coffer__free(entries);
}

/* ---- Sorting in memory ---- */

/* By the bits of one digit of the place; entries of the same digit stay in their order. False when all have
 * the same digit and nothing was to do. */
static bool sort_by_digit(coffer__entry *to, const coffer__entry *from, size_t count, unsigned shift)
{
    size_t starts[DIGITS] = { 0 };
    for (size_t i = 0; i < count; i++)
        starts[from[i].place >> shift & (DIGITS - 1)]++;
    if (starts[from[0].place >> shift & (DIGITS - 1)] == count)
        return false;
    size_t sum = 0;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t here = starts[digit];
        starts[digit] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].place >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

static coffer_status sort_items(coffer__entries *entries, coffer_error *err)
{
    if (entries->sorted || entries->count == 0)
        return COFFER_OK;
    if (!entries->other) {
        entries->other = coffer__alloc_array(entries->capacity, sizeof *entries->other);
        if (!entries->other)
            return coffer__fail_no_memory(err, entries->capacity * sizeof *entries->other);
    }
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!sort_by_digit(entries->other, entries->items, entries->count, shift))
            continue;
        coffer__entry *sorted = entries->other;
        entries->other = entries->items;
        entries->items = sorted;
    }
    return COFFER_OK;
}

/* ---- Adding ---- */

static coffer_status spill(coffer__entries *entries, coffer_error *err)
{
    coffer_status status = sort_items(entries, err);
    if (!status && entries->fd < 0)
        status = coffer__temporary_unnamed(&entries->fd, err);
    if (!status)
        status = coffer__array_reserve_one(&entries->runs, &entries->run_capacity, entries->run_count,
                                           sizeof *entries->runs, err);
    if (!status)
        status = coffer__file_write(entries->fd, entries->items, entries->count * sizeof *entries->items,
                                    spool_name, err);
    if (status)
        return status;
    entries->runs[entries->run_count++] =
        (run){ .next = entries->spooled, .end = entries->spooled + entries->count };
    entries->spooled += entries->count;
    entries->count = 0;
    entries->sorted = true;
    return COFFER_OK;
}

static coffer_status grow(coffer__entries *entries, coffer_error *err)
{
    size_t capacity = entries->capacity ? entries->capacity * 2 : FEWEST_IN_MEMORY;
    if (capacity > entries->max_capacity)
        capacity = entries->max_capacity;
    coffer__entry *items = coffer__realloc(entries->items, capacity * sizeof *items);
    if (!items)
        return coffer__fail_no_memory(err, capacity * sizeof *items);
    entries->items = items;
    entries->capacity = capacity;
    return COFFER_OK;
}

coffer_status coffer__entries_add(coffer__entries *entries, const coffer__entry *entry, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (entries->count == entries->capacity)
        status = entries->capacity < entries->max_capacity ? grow(entries, err) : spill(entries, err);
    if (status)
        return status;
    if (entries->count > 0 && entry->place < entries->items[entries->count - 1].place)
        entries->sorted = false;
    entries->items[entries->count++] = *entry;
    return COFFER_OK;
}

/* ---- Merging ---- */

static coffer_status fill_window(run *piece, coffer__entries *entries, coffer_error *err)
{
    uint64_t left = piece->end - piece->next;
    size_t some = left < MERGE_WINDOW ? (size_t)left : MERGE_WINDOW;
    coffer_status status = coffer__file_read_at(entries->fd, piece->window, some * sizeof *piece->window,
                                                piece->next * sizeof *piece->window, spool_name, err);
    piece->next += some;
    piece->window_at = 0;
    piece->window_len = some;
    return status;
}

/* Of two runs that are at the same place the earlier one comes first: sums keep the order of the file. */
static bool comes_before(const coffer__entries *entries, size_t a, size_t b)
{
    uint64_t x = entries->runs[a].window[entries->runs[a].window_at].place;
    uint64_t y = entries->runs[b].window[entries->runs[b].window_at].place;
    return x != y ? x < y : a < b;
}

static void sift_down(coffer__entries *entries, size_t at)
{
    size_t *heap = entries->heap, moved = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= entries->heap_len)
            break;
        if (child + 1 < entries->heap_len && comes_before(entries, heap[child + 1], heap[child]))
            child++;
        if (!comes_before(entries, heap[child], moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static coffer_status begin_merge(coffer__entries *entries, coffer_error *err)
{
    coffer_status status = entries->count > 0 ? spill(entries, err) : COFFER_OK;
    if (status)
        return status;
    coffer__free(entries->items);
    coffer__free(entries->other);
    entries->items = entries->other = NULL;
    entries->heap = coffer__alloc_array(entries->run_count, sizeof *entries->heap);
    if (!entries->heap)
        return coffer__fail_no_memory(err, entries->run_count * sizeof *entries->heap);
    for (size_t i = 0; !status && i < entries->run_count; i++) {
        run *piece = &entries->runs[i];
        piece->window = coffer__alloc_array(MERGE_WINDOW, sizeof *piece->window);
        status = piece->window ? fill_window(piece, entries, err)
                               : coffer__fail_no_memory(err, MERGE_WINDOW * sizeof *piece->window);
        entries->heap[i] = i;
    }
    if (status)
        return status;
    entries->heap_len = entries->run_count;
    for (size_t i = entries->heap_len / 2; i-- > 0;)
        sift_down(entries, i);
    return COFFER_OK;
}

static coffer_status next_merged(bool *more, coffer__entry *out, coffer__entries *entries, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *more = entries->heap_len > 0;
    if (!*more)
        return COFFER_OK;
    run *piece = &entries->runs[entries->heap[0]];
    *out = piece->window[piece->window_at++];
    if (piece->window_at == piece->window_len && piece->next < piece->end)
        status = fill_window(piece, entries, err);
    else if (piece->window_at == piece->window_len)
        entries->heap[0] = entries->heap[--entries->heap_len];
    if (!status && entries->heap_len > 0)
        sift_down(entries, 0);
    return status;
}

/* ---- Giving ---- */

static coffer_status next_single(bool *more, coffer__entry *out, coffer__entries *entries, coffer_error *err)
{
    if (entries->run_count > 0)
        return next_merged(more, out, entries, err);
    *more = entries->at < entries->count;
    if (*more)
        *out = entries->items[entries->at++];
    return COFFER_OK;
}

static coffer_status finish_adding(coffer__entries *entries, coffer_error *err)
{
    coffer_status status = entries->run_count > 0 ? begin_merge(entries, err) : sort_items(entries, err);
    entries->finished = true;
    return status ? status : next_single(&entries->has_pending, &entries->pending, entries, err);
}

static bool add_up(coffer__entry *sum, const coffer__entry *other, coffer_dtype dtype)
{
    switch (dtype) {
    case COFFER_DTYPE_I64:
        return !__builtin_add_overflow(sum->value.i64, other->value.i64, &sum->value.i64);
    case COFFER_DTYPE_U64:
        return !__builtin_add_overflow(sum->value.u64, other->value.u64, &sum->value.u64);
    case COFFER_DTYPE_BOOL:
        sum->value.u64 |= other->value.u64;
        return true;
    default:
        sum->value.real[0] += other->value.real[0];
        sum->value.real[1] += other->value.real[1];
        return true;
    }
}

coffer_status coffer__entries_next(bool *more, coffer__entry *out, coffer__entries *entries,
                                   coffer_error *err)
{
    coffer_status status = entries->finished ? COFFER_OK : finish_adding(entries, err);
    if (status)
        return status;
    *more = entries->has_pending;
    if (!*more)
        return COFFER_OK;
    *out = entries->pending;
    for (;;) {
        status = next_single(&entries->has_pending, &entries->pending, entries, err);
        if (status || !entries->has_pending || entries->pending.place != out->place)
            return status;
        if (!add_up(out, &entries->pending, entries->dtype))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "entries of the same place add up to more than 64 bits");
    }
}
