/* Matches the stacks of two traces. */
#include "formats/mlyze/analyze/mlyze_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_live.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

typedef struct name {
    const char *text;
    size_t len;
    uint32_t *number; /* where its number goes */
    bool is_address;
} name;

#define PAGE_DIGITS 3

/* "0x7f21a44de190 in libx.so" is the address of a frame without symbols. Address-space randomization moves
 * modules by whole pages, so only the last three digits are compared. */
static name name_of(const char *text, size_t len, uint32_t *number)
{
    size_t digits = 2;
    if (len < 2 || memcmp(text, "0x", 2) != 0)
        return (name){ text, len, number, false };
    while (digits < len && strchr("0123456789abcdefABCDEF", text[digits]) && text[digits])
        digits++;
    if (digits < 2 + PAGE_DIGITS)
        return (name){ text, len, number, false };
    return (name){ text + digits - PAGE_DIGITS, len - digits + PAGE_DIGITS, number, true };
}

static int by_text(const void *a, const void *b)
{
    const name *x = a, *y = b;
    if (x->is_address != y->is_address)
        return x->is_address ? 1 : -1;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static coffer_status number_table(coffer__mlyze_name_numbers *out, const coffer__mlyze_names *a,
                                  const coffer__mlyze_names *b, coffer_error *err)
{
    const coffer__mlyze_names *tables[2] = { a, b };
    size_t total = a->ids.count + b->ids.count, count = 0;
    uint32_t number = 0;
    name *names = coffer__alloc_array(total, sizeof *names);
    for (unsigned side = 0; side < 2; side++)
        out->by_side[side] = coffer__alloc_array(tables[side]->ids.count, sizeof *out->by_side[side]);
    if (!names || !out->by_side[0] || !out->by_side[1] || total >= UINT32_MAX) {
        coffer__free(names);
        return coffer__fail_no_memory(err, total * sizeof *names);
    }
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < tables[side]->ids.count; i++) {
            const coffer__json_value *value = tables[side]->values[i];
            names[count++] = name_of(value->as.string, value->string_len, &out->by_side[side][i]);
        }
    }
    if (count > 1)
        qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < count; i++) {
        number += i > 0 && by_text(&names[i - 1], &names[i]) != 0;
        *names[i].number = number;
    }
    out->unknown = UINT32_MAX;
    coffer__free(names);
    return COFFER_OK;
}

coffer_status coffer__mlyze_number_names(coffer__mlyze_comparison *cmp, coffer_error *err)
{
    const coffer__mlyze_metadata *a = &cmp->side[0].trace->metadata, *b = &cmp->side[1].trace->metadata;
    coffer_status status = number_table(&cmp->functions, &a->functions, &b->functions, err);
    return status ? status : number_table(&cmp->files, &a->files, &b->files, err);
}

void coffer__mlyze_free_names(coffer__mlyze_comparison *cmp)
{
    for (unsigned side = 0; side < 2; side++) {
        coffer__free(cmp->functions.by_side[side]);
        coffer__free(cmp->files.by_side[side]);
    }
}

static uint32_t number_of(const coffer__mlyze_name_numbers *numbers, unsigned side,
                          const coffer__mlyze_names *table, uint64_t id)
{
    size_t place = coffer__mlyze_ids_find(&table->ids, id);
    return place != SIZE_MAX ? numbers->by_side[side][place] : numbers->unknown;
}

uint32_t coffer__mlyze_function_number(const coffer__mlyze_comparison *cmp, unsigned side, uint64_t id)
{
    return number_of(&cmp->functions, side, &cmp->side[side].trace->metadata.functions, id);
}

uint32_t coffer__mlyze_file_number(const coffer__mlyze_comparison *cmp, unsigned side, uint64_t id)
{
    return number_of(&cmp->files, side, &cmp->side[side].trace->metadata.files, id);
}

/* ---- Stacks ---- */

typedef struct entry {
    uint64_t hash; /* of its frames */
    unsigned side;
    size_t stack; /* SIZE_MAX : not listed */
    uint64_t bytes, allocs;
} entry;

/* The key of a frame. */
typedef struct place {
    uint64_t names, line;
} place;

static place place_of(const coffer__mlyze_comparison *cmp, unsigned side, const coffer_mlyze_frame *frame)
{
    return (place){ (uint64_t)coffer__mlyze_function_number(cmp, side, frame->func_id) << 32 |
                        coffer__mlyze_file_number(cmp, side, frame->file_id),
                    cmp->opts.lines ? frame->line : 0 };
}

static const coffer_mlyze_frame *frames_of(size_t *depth, const coffer__mlyze_comparison *cmp,
                                           const entry *which)
{
    *depth = 0;
    if (which->stack == SIZE_MAX)
        return NULL;
    return coffer_mlyze_frames(depth, cmp->side[which->side].trace, which->stack);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By hash, then by the frames themselves. */
static int by_frames(const void *a, const void *b, void *context)
{
    const entry *x = a, *y = b;
    const coffer__mlyze_comparison *cmp = context;
    size_t x_depth, y_depth;
    const coffer_mlyze_frame *x_frames = frames_of(&x_depth, cmp, x), *y_frames = frames_of(&y_depth, cmp, y);
    int order = compare_numbers(x->hash, y->hash);
    if (order == 0)
        order = compare_numbers(x_depth, y_depth);
    for (size_t i = 0; i < x_depth && order == 0; i++) {
        place p = place_of(cmp, x->side, &x_frames[i]), q = place_of(cmp, y->side, &y_frames[i]);
        order = compare_numbers(p.names, q.names);
        if (order == 0)
            order = compare_numbers(p.line, q.line);
    }
    return order;
}

static uint64_t hash_frames(const coffer__mlyze_comparison *cmp, const coffer__mlyze_key *key,
                            const entry *which)
{
    size_t depth;
    const coffer_mlyze_frame *frames = frames_of(&depth, cmp, which);
    uint64_t hash = depth;
    for (size_t i = 0; i < depth; i++) {
        place where = place_of(cmp, which->side, &frames[i]);
        hash = coffer__mlyze_hash(key, hash ^ where.names);
        hash = coffer__mlyze_hash(key, hash + where.line);
    }
    return hash;
}

static void measure(entry *out, const coffer_mlyze_stack_row *row, coffer_mlyze_measure what)
{
    switch (what) {
    case COFFER_MLYZE_MEASURE_LIVE:
        out->bytes = row->live_bytes;
        out->allocs = row->live_allocs;
        break;
    case COFFER_MLYZE_MEASURE_TOTAL:
        out->bytes = row->allocated_bytes;
        out->allocs = row->allocs;
        break;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        out->bytes = row->temporary_bytes;
        out->allocs = row->temporary_allocs;
        break;
    case COFFER_MLYZE_MEASURE_PEAK:
        out->bytes = row->peak_bytes;
        out->allocs = row->peak_allocs;
        break;
    }
}

static size_t list_entries(entry *out, const coffer__mlyze_comparison *cmp)
{
    coffer__mlyze_key key = coffer__mlyze_new_key();
    size_t count = 0;
    for (unsigned side = 0; side < 2; side++) {
        const coffer_mlyze_stats *stats = cmp->side[side].stats;
        for (size_t i = 0; i < coffer_mlyze_stats_stack_count(stats); i++) {
            const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
            entry made = { .side = side, .stack = row->stack };
            measure(&made, row, cmp->opts.measure);
            if (made.bytes == 0 && made.allocs == 0)
                continue;
            made.hash = hash_frames(cmp, &key, &made);
            out[count++] = made;
        }
    }
    return count;
}

coffer_status coffer__mlyze_match_stacks(coffer__mlyze_match **out, size_t *count,
                                         const coffer__mlyze_comparison *cmp, coffer_error *err)
{
    size_t total = coffer_mlyze_stats_stack_count(cmp->side[0].stats) +
                   coffer_mlyze_stats_stack_count(cmp->side[1].stats);
    entry *entries = coffer__alloc_array(total, sizeof *entries);
    coffer__mlyze_match *matches = coffer__alloc_array(total, sizeof *matches);
    if (!entries || !matches) {
        coffer__free(entries);
        coffer__free(matches);
        return coffer__fail_no_memory(err, total * (sizeof *entries + sizeof *matches));
    }
    size_t listed = list_entries(entries, cmp), found = 0;
    coffer__mlyze_comparison context = *cmp;
    if (listed > 1)
        qsort_r(entries, listed, sizeof *entries, by_frames, &context);
    for (size_t i = 0; i < listed; i++) {
        const entry *from = &entries[i];
        if (i == 0 || by_frames(from - 1, from, &context) != 0)
            matches[found++] = (coffer__mlyze_match){ .named_by = from->side, .stack = from->stack };
        matches[found - 1].bytes[from->side] += from->bytes;
        matches[found - 1].allocs[from->side] += from->allocs;
    }
    coffer__free(entries);
    *out = matches;
    *count = found;
    return COFFER_OK;
}
