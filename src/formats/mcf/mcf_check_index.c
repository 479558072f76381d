/* The TensorIndex entry by entry, and which bytes of the file belong to what. */
#include "formats/mcf/mcf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Entries ---- */

static void check_name(const coffer__mcf_checker *check, size_t i, const coffer__mcf_entry *entry)
{
    const coffer__mcf_index *index = &check->index;
    if (!entry->name)
        coffer__report_add(check->report, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR,
                           coffer__mcf_entry_at(index, i),
                           "tensor #%zu: its name takes %lu bytes at %lu of %llu", i,
                           (unsigned long)entry->name_len, (unsigned long)entry->name_off,
                           (unsigned long long)index->strings_size);
    else if (!coffer__utf8_valid(entry->name, entry->name_len))
        coffer__report_add(check->report, COFFER_E_BAD_TEXT,
                           index->flags & COFFER__MCF_INDEX_UTF8 ? COFFER_ERROR : COFFER_NOTE,
                           coffer__mcf_entry_at(index, i), "the name of tensor #%zu is not UTF-8", i);
}

static void check_alignment(const coffer__mcf_checker *check, size_t i, const coffer__mcf_entry *entry)
{
    bool quantized = coffer_dtype_is_quantized(coffer_mcf_dtype_from_code(entry->dtype));
    bool claimed = (check->header.flags & COFFER__MCF_FLAG_ALIGNED64) != 0;
    if (entry->size == 0 || entry->offset % COFFER__MCF_PAYLOAD_ALIGNMENT == 0 || !(quantized || claimed))
        return;
    coffer__report_add(check->report, COFFER_E_MISALIGNED, COFFER_ERROR,
                       coffer__mcf_entry_at(&check->index, i) + COFFER__MCF_ENTRY_OFFSET_AT,
                       "tensor %s begins at %llu, which is not a multiple of %d%s",
                       coffer__mcf_entry_name(&check->index, i).text, (unsigned long long)entry->offset,
                       COFFER__MCF_PAYLOAD_ALIGNMENT, quantized ? "" : ", as the flags require");
}

static void check_entry(const coffer__mcf_checker *check, size_t i)
{
    const coffer__mcf_index *index = &check->index;
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, i);
    coffer_error found = COFFER_ERROR_INIT;
    check_name(check, i, &entry);
    if (entry.reserved != 0)
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                           coffer__mcf_entry_at(index, i) + COFFER__MCF_ENTRY_RESERVED_AT,
                           "tensor %s: the reserved field is %lu, not 0",
                           coffer__mcf_entry_name(index, i).text, (unsigned long)entry.reserved);
    if (coffer__mcf_check_payload_range(index, i, coffer_source_size(check->source),
                                        check->has_data ? &check->data : NULL, &found) != COFFER_OK)
        coffer__report_add_error(check->report, COFFER_ERROR, &found);
    if (coffer__mcf_check_payload_size(index, i, coffer__mcf_checker_activations(check, i), &found) !=
        COFFER_OK)
        coffer__report_add_error(check->report, COFFER_ERROR, &found);
    check_alignment(check, i, &entry);
}

/* A q* or k* tensor needs the flag; said once. */
static void check_flag(const coffer__mcf_checker *check)
{
    for (size_t i = 0; i < check->index.count; i++) {
        coffer_dtype dtype = coffer_mcf_dtype_from_code(coffer__mcf_index_entry(&check->index, i).dtype);
        if (!coffer__mcf_is_blocked(dtype))
            continue;
        if (!(check->header.flags & COFFER__MCF_FLAG_ALIGNED64))
            coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_ERROR, COFFER__MCF_FLAGS_AT,
                               "tensor %s is %s, but the flag for 64-aligned payloads is not set",
                               coffer__mcf_entry_name(&check->index, i).text, coffer_dtype_name(dtype));
        return;
    }
}

/* ---- Order and names ---- */

static int compare(const coffer__mcf_index *index, size_t a, size_t b)
{
    coffer__mcf_entry x = coffer__mcf_index_entry(index, a), y = coffer__mcf_index_entry(index, b);
    return coffer__mcf_compare_names(x.name, x.name ? x.name_len : 0, y.name, y.name ? y.name_len : 0);
}

static void check_sorted(const coffer__mcf_checker *check)
{
    const coffer__mcf_index *index = &check->index;
    if (!(index->flags & COFFER__MCF_INDEX_SORTED))
        return;
    for (size_t i = 1; i < index->count; i++) {
        if (compare(index, i - 1, i) > 0) {
            coffer__report_add(check->report, COFFER_E_NOT_SORTED, COFFER_ERROR,
                               coffer__mcf_entry_at(index, i),
                               "the index is marked as sorted, but tensor %s is before %s",
                               coffer__mcf_entry_name(index, i - 1).text,
                               coffer__mcf_entry_name(index, i).text);
            return;
        }
    }
}

static coffer_status check_duplicates(const coffer__mcf_checker *check, coffer_error *err)
{
    const coffer__mcf_index *index = &check->index;
    uint32_t *order = NULL;
    coffer_status status = coffer__mcf_index_order(&order, index, err);
    if (status)
        return status;
    for (size_t i = 1; i < index->count && !coffer__report_full(check->report); i++) {
        if (coffer__mcf_index_entry(index, order[i]).name && compare(index, order[i - 1], order[i]) == 0)
            coffer__report_add(check->report, COFFER_E_DUPLICATE, COFFER_ERROR,
                               coffer__mcf_entry_at(index, order[i]), "the name %s is in the index twice",
                               coffer__mcf_entry_name(index, order[i]).text);
    }
    coffer__free(order);
    return COFFER_OK;
}

/* ---- The tables inside the section ---- */

typedef struct span {
    uint64_t start, end;
    size_t tensor;    /* SIZE_MAX: no payload */
    const char *what; /* of what is no payload; NULL: a section */
    uint32_t type;
} span;

static int by_place(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static void check_tables(const coffer__mcf_checker *check)
{
    const coffer__mcf_index *index = &check->index;
    span tables[4] = {
        { 0, COFFER__MCF_INDEX_HEADER, SIZE_MAX, "header", 0 },
        { index->entries_off, index->entries_off + index->count * COFFER__MCF_ENTRY, SIZE_MAX, "entries", 0 },
        { index->dims_off, index->dims_off + index->dim_count * sizeof(uint64_t), SIZE_MAX, "dims", 0 },
        { index->strings_off, index->strings_off + index->strings_size, SIZE_MAX, "names", 0 },
    };
    const span *before = NULL;
    qsort(tables, 4, sizeof tables[0], by_place);
    for (size_t i = 0; i < 4; i++) {
        if (tables[i].start == tables[i].end)
            continue;
        if (before && tables[i].start < before->end)
            coffer__report_add(check->report, COFFER_E_OVERLAP, COFFER_WARNING, index->base + tables[i].start,
                               "TensorIndex: the %s begin before the end of the %s", tables[i].what,
                               before->what);
        before = &tables[i];
    }
    if (index->flags & ~(COFFER__MCF_INDEX_SORTED | COFFER__MCF_INDEX_UTF8))
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE,
                           index->base + COFFER__MCF_INDEX_FLAGS_AT, "TensorIndex has unknown flags: 0x%lx",
                           (unsigned long)index->flags);
}

coffer_status coffer__mcf_check_index(coffer__mcf_checker *check, coffer_error *err)
{
    if (!check->has_index)
        return COFFER_OK;
    check_tables(check);
    for (size_t i = 0; i < check->index.count && !coffer__report_full(check->report); i++)
        check_entry(check, i);
    check_flag(check);
    check_sorted(check);
    return check_duplicates(check, err);
}

/* ---- Which bytes belong to what ---- */

static size_t add_span(span *spans, size_t count, span added)
{
    if (added.end > added.start)
        spans[count++] = added;
    return count;
}

static size_t collect(span *spans, const coffer__mcf_checker *check)
{
    uint64_t size = coffer_source_size(check->source);
    size_t count = add_span(spans, 0, (span){ 0, check->header.header_size, SIZE_MAX, "the header", 0 });
    count = add_span(spans, count,
                     (span){ check->header.directory,
                             check->header.directory +
                                 (uint64_t)check->header.section_count * COFFER__MCF_DIRECTORY_ENTRY,
                             SIZE_MAX, "the directory", 0 });
    for (size_t i = 0; i < check->section_count; i++) {
        const coffer_mcf_section *section = &check->sections[i];
        /* Of TensorData the payloads stand for themselves, where an index tells them. */
        if (!check->has_index || section->type != COFFER_MCF_TENSOR_DATA)
            count = add_span(spans, count,
                             (span){ section->offset, section->offset + section->size, SIZE_MAX, NULL,
                                     section->type });
    }
    for (size_t i = 0; i < check->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, i);
        if (coffer__range_fits(entry.offset, entry.size, size))
            count = add_span(spans, count, (span){ entry.offset, entry.offset + entry.size, i, NULL, 0 });
    }
    return count;
}

typedef struct span_name {
    char text[96];
} span_name;

static span_name name_of(const coffer__mcf_checker *check, const span *of)
{
    span_name name;
    if (of->tensor != SIZE_MAX)
        snprintf(name.text, sizeof name.text, "tensor %s",
                 coffer__mcf_entry_name(&check->index, of->tensor).text);
    else
        snprintf(name.text, sizeof name.text, "%s",
                 of->what ? of->what : coffer__mcf_section_label(of->type).text);
    return name;
}

/* Two payloads are the same bytes or share none. Sections among themselves have been looked at. */
static void report_overlap(const coffer__mcf_checker *check, const span *a, const span *b)
{
    bool alias = a->start == b->start && a->end == b->end;
    bool payloads = a->tensor != SIZE_MAX && b->tensor != SIZE_MAX;
    if ((alias && payloads) || (a->tensor == SIZE_MAX && b->tensor == SIZE_MAX))
        return;
    coffer__report_add(check->report, COFFER_E_OVERLAP, COFFER_ERROR, b->start,
                       "%s begins at %llu, before the end of %s at %llu", name_of(check, b).text,
                       (unsigned long long)b->start, name_of(check, a).text, (unsigned long long)a->end);
}

/* Whether so many bytes in front of an offset are there to align it. */
static bool is_alignment(uint64_t gap, uint64_t offset)
{
    uint64_t alignment = offset & (0 - offset);
    if (alignment > COFFER__MCF_MAX_ALIGNMENT)
        alignment = COFFER__MCF_MAX_ALIGNMENT;
    return gap < alignment;
}

coffer_status coffer__mcf_check_places(coffer__mcf_checker *check, coffer_error *err)
{
    size_t count = 2 + check->section_count + check->index.count;
    span *spans = coffer__alloc_array(count, sizeof *spans), reached = { 0 };
    uint64_t size = coffer_source_size(check->source), dead = 0, first_dead = 0, places = 0;
    if (!spans)
        return coffer__fail_no_memory(err, count * sizeof *spans);
    count = collect(spans, check);
    qsort(spans, count, sizeof *spans, by_place);
    for (size_t i = 0; i <= count; i++) {
        uint64_t start = i < count ? spans[i].start : size;
        uint64_t gap = start > reached.end ? start - reached.end : 0;
        if (gap > 0 && (i == count || !is_alignment(gap, start))) {
            first_dead = places++ == 0 ? reached.end : first_dead;
            dead += gap;
        }
        if (i < count && start < reached.end)
            report_overlap(check, &reached, &spans[i]);
        if (i < count && spans[i].end >= reached.end)
            reached = spans[i];
    }
    if (dead > 0)
        coffer__report_add(check->report, COFFER_E_TRAILING_BYTES, COFFER_NOTE, first_dead,
                           "unreferenced bytes: %llu in %llu places (compact drops them)",
                           (unsigned long long)dead, (unsigned long long)places);
    coffer__free(spans);
    return COFFER_OK;
}
