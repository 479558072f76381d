/* The guard: a copy of the header and checksums of the bytes that those of the header do not cover. It is
 * stored twice, before the data region and before the allocation table, so that no single pointer of the
 * header leads to both. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>

#define FRONT_MAX ((uint64_t)64 << 20) /* bytes before the data that are summed just to describe a file */

void coffer__mldf_compose_guard(uint8_t out[COFFER__MLDF_GUARD_SIZE], const coffer__mldf_guard *guard)
{
    memset(out, 0, COFFER__MLDF_GUARD_SIZE);
    memcpy(out, COFFER__MLDF_GUARD_MAGIC, 8);
    coffer__store_u32(out + COFFER__MLDF_GUARD_VERSION_AT, COFFER__MLDF_GUARD_VERSION);
    coffer__store_u64(out + COFFER__MLDF_GUARD_FILE_SIZE_AT, guard->file_size);
    coffer__store_u64(out + COFFER__MLDF_GUARD_DATA_END_AT, guard->data_end);
    coffer__store_u64(out + COFFER__MLDF_GUARD_RECOVERY_AT, guard->recovery_from);
    coffer__store_u64(out + COFFER__MLDF_GUARD_MARKS_AT, guard->marks);
    coffer__store_u64(out + COFFER__MLDF_GUARD_MARK_COUNT_AT, guard->mark_count);
    coffer__store_u32(out + COFFER__MLDF_GUARD_FRONT_CRC_AT, guard->front_crc);
    coffer__store_u32(out + COFFER__MLDF_GUARD_TAIL_CRC_AT, guard->tail_crc);
    memcpy(out + COFFER__MLDF_GUARD_ID_AT, guard->id, sizeof guard->id);
    memcpy(out + COFFER__MLDF_GUARD_HEAD_AT, guard->head, sizeof guard->head);
    coffer__store_u32(out + COFFER__MLDF_GUARD_CRC_AT, coffer__crc32(0, out, COFFER__MLDF_GUARD_CRC_AT));
}

bool coffer__mldf_has_id(const coffer__mldf_guard *guard)
{
    static const uint8_t none[COFFER__MLDF_ID_SIZE];
    return memcmp(guard->id, none, sizeof none) != 0;
}

coffer_status coffer__mldf_load_guard(coffer__mldf_guard *out, bool *found, coffer_source *src, uint64_t end,
                                      coffer_error *err)
{
    uint8_t at[COFFER__MLDF_GUARD_SIZE];
    *found = false;
    if (end < COFFER__MLDF_HEAD_SIZE + COFFER__MLDF_GUARD_SIZE || end > coffer_source_size(src))
        return COFFER_OK;
    coffer_status status = coffer_source_read_at(at, src, end - sizeof at, sizeof at, err);
    if (status)
        return status;
    if (memcmp(at, COFFER__MLDF_GUARD_MAGIC, 8) != 0 ||
        coffer__load_u32(at + COFFER__MLDF_GUARD_CRC_AT) != coffer__crc32(0, at, COFFER__MLDF_GUARD_CRC_AT) ||
        coffer__load_u32(at + COFFER__MLDF_GUARD_VERSION_AT) != COFFER__MLDF_GUARD_VERSION)
        return COFFER_OK;
    *out = (coffer__mldf_guard){
        .file_size = coffer__load_u64(at + COFFER__MLDF_GUARD_FILE_SIZE_AT),
        .data_end = coffer__load_u64(at + COFFER__MLDF_GUARD_DATA_END_AT),
        .recovery_from = coffer__load_u64(at + COFFER__MLDF_GUARD_RECOVERY_AT),
        .marks = coffer__load_u64(at + COFFER__MLDF_GUARD_MARKS_AT),
        .mark_count = coffer__load_u64(at + COFFER__MLDF_GUARD_MARK_COUNT_AT),
        .front_crc = coffer__load_u32(at + COFFER__MLDF_GUARD_FRONT_CRC_AT),
        .tail_crc = coffer__load_u32(at + COFFER__MLDF_GUARD_TAIL_CRC_AT),
    };
    memcpy(out->id, at + COFFER__MLDF_GUARD_ID_AT, sizeof out->id);
    memcpy(out->head, at + COFFER__MLDF_GUARD_HEAD_AT, sizeof out->head);
    *found = true;
    return COFFER_OK;
}

static bool same_guard(const coffer__mldf_guard *a, const coffer__mldf_guard *b)
{
    uint8_t x[COFFER__MLDF_GUARD_SIZE], y[COFFER__MLDF_GUARD_SIZE];
    coffer__mldf_compose_guard(x, a);
    coffer__mldf_compose_guard(y, b);
    return memcmp(x, y, sizeof x) == 0;
}

coffer_status coffer__mldf_read_guard(coffer__mldf_guard *out, coffer__mldf_guard_state *state,
                                      coffer_source *src, const coffer__mldf_header *header, bool both,
                                      coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    coffer__mldf_guard first, second;
    bool has_first = false, has_second = false;
    coffer_status status = coffer__mldf_load_guard(&first, &has_first, src, header->data, err);
    bool same_head = has_first && memcmp(first.head, header->bytes, sizeof first.head) == 0;
    if (!status && (both || !same_head))
        status = coffer__mldf_load_guard(&second, &has_second, src, header->table, err);
    if (status)
        return status;
    *state = COFFER__MLDF_GUARD_NONE;
    if (!has_first && !has_second)
        return COFFER_OK;
    const coffer__mldf_guard *guard = has_first ? &first : &second;
    same_head = memcmp(guard->head, header->bytes, sizeof guard->head) == 0;
    if (same_head && guard->file_size == size)
        *state = has_first && (!both || (has_second && same_guard(&first, &second)))
                     ? COFFER__MLDF_GUARD_FINE
                     : COFFER__MLDF_GUARD_ONE_COPY;
    else if (same_head && guard->file_size > size)
        *state = COFFER__MLDF_GUARD_TRUNCATED;
    else if (guard->file_size < size && header->table >= guard->file_size && !has_second)
        *state = COFFER__MLDF_GUARD_STALE;
    else
        *state = COFFER__MLDF_GUARD_DIFFERS;
    *out = *guard;
    return COFFER_OK;
}

/* ---- Marks ---- */

void coffer__mldf_compose_mark(uint8_t out[COFFER__MLDF_MARK_SIZE], const coffer__mldf_mark *mark)
{
    memset(out, 0, COFFER__MLDF_MARK_SIZE);
    coffer__store_u64(out, mark->first);
    coffer__store_u64(out + COFFER__MLDF_MARK_COUNT_AT, mark->count);
    coffer__store_u16(out + COFFER__MLDF_MARK_FIELD_AT, mark->field);
    coffer__store_u16(out + COFFER__MLDF_MARK_KIND_AT, mark->kind);
}

static coffer_status check_marks(const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_guard *guard = &set->guard;
    if (guard->mark_count == 0 ||
        (guard->marks <= set->file_size &&
         guard->mark_count <= (set->file_size - guard->marks) / COFFER__MLDF_MARK_SIZE &&
         guard->mark_count <= COFFER__MLDF_MARK_MAX))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, guard->marks,
                        "%" PRIu64 " marks of a repair at %" PRIu64 ", file has %" PRIu64, guard->mark_count,
                        guard->marks, set->file_size);
}

static coffer_status load_mark(coffer__mldf_mark *out, const coffer_mldf *set, uint64_t index,
                               coffer_error *err)
{
    uint8_t at[COFFER__MLDF_MARK_SIZE];
    coffer_status status =
        coffer_source_read_at(at, set->source, set->guard.marks + index * sizeof at, sizeof at, err);
    if (!status)
        *out = (coffer__mldf_mark){ coffer__load_u64(at), coffer__load_u64(at + COFFER__MLDF_MARK_COUNT_AT),
                                    coffer__load_u16(at + COFFER__MLDF_MARK_FIELD_AT),
                                    coffer__load_u16(at + COFFER__MLDF_MARK_KIND_AT) };
    return status;
}

coffer_status coffer__mldf_read_marks(coffer__mldf_mark **out, size_t *count, const coffer_mldf *set,
                                      coffer_error *err)
{
    size_t wanted = (size_t)set->guard.mark_count;
    coffer_status status = check_marks(set, err);
    *out = NULL;
    *count = 0;
    if (status || set->guard.mark_count == 0)
        return status;
    coffer__mldf_mark *marks = coffer__alloc_array(wanted, sizeof *marks);
    if (!marks)
        return coffer__fail_no_memory(err, wanted * sizeof *marks);
    for (size_t i = 0; i < wanted && !status; i++)
        status = load_mark(&marks[i], set, i, err);
    if (status) {
        coffer__free(marks);
        return status;
    }
    *out = marks;
    *count = wanted;
    return COFFER_OK;
}

int coffer__mldf_compare_marks(const coffer__mldf_mark *a, const coffer__mldf_mark *b)
{
    return a->field != b->field ? (a->field < b->field ? -1 : 1)
           : a->kind != b->kind ? (a->kind < b->kind ? -1 : 1)
                                : 0;
}

static int by_place(const void *a, const void *b)
{
    const coffer__mldf_mark *x = a, *y = b;
    int order = coffer__mldf_compare_marks(x, y);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

void coffer__mldf_sort_marks(coffer__mldf_mark *marks, size_t *count)
{
    size_t kept = 0;
    if (*count > 0)
        qsort(marks, *count, sizeof *marks, by_place);
    for (size_t i = 0; i < *count; i++) {
        coffer__mldf_mark *last = kept ? &marks[kept - 1] : NULL;
        uint64_t most = UINT64_MAX - marks[i].first;
        marks[i].count = marks[i].count < most ? marks[i].count : most;
        if (!last || coffer__mldf_compare_marks(last, &marks[i]) != 0 ||
            marks[i].first > last->first + last->count) {
            marks[kept++] = marks[i];
            continue;
        }
        uint64_t end = marks[i].first + marks[i].count;
        if (end > last->first + last->count)
            last->count = end - last->first;
    }
    *count = kept;
}

/* ---- Verifying before anything is used ---- */

static coffer_status verify_region(const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    uint64_t end = 0;
    uint32_t crc = 0;
    uint8_t *scratch = coffer__malloc(COFFER__MLDF_SUM_BLOCK);
    if (!scratch)
        return coffer__fail_no_memory(err, COFFER__MLDF_SUM_BLOCK);
    coffer_status status = coffer__mldf_data_end(&end, set, err);
    if (!status && (end < header->data || end > set->file_size))
        status = coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, header->table,
                              "the last payload ends at %" PRIu64 ", file has %" PRIu64, end, set->file_size);
    if (!status)
        status = coffer__mldf_sum_range(&crc, set, header->data, end - header->data, scratch, err);
    if (!status && crc != header->data_crc) {
        uint64_t next = coffer__mldf_next_part(header, end, set->file_size);
        status = coffer__mldf_sum_range(&crc, set, end, next - end, scratch, err);
        if (!status && crc != header->data_crc)
            status =
                coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DATA_CRC_AT,
                             "the CRC-32 of the data region is not that of the header");
    }
    if (!status)
        status = coffer_source_intact(set->source, err);
    coffer__free(scratch);
    return status;
}

static coffer_status verify_header(const coffer_mldf *set, coffer_error *err)
{
    if (set->guard_state == COFFER__MLDF_GUARD_DIFFERS)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLDF_HEADER_AT,
                            "the header is damaged: it differs from its copy in the file; repair the file "
                            "first");
    if (set->guard_state == COFFER__MLDF_GUARD_TRUNCATED)
        return coffer__fail(err, COFFER_E_TRUNCATED, set->file_size,
                            "the file has %" PRIu64 " bytes of %" PRIu64, set->file_size,
                            set->guard.file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_verify_front(const coffer_mldf *set, coffer_error *err)
{
    uint64_t front = set->header.data - COFFER__MLDF_GUARD_SIZE;
    uint32_t crc = 0;
    coffer_status status = verify_header(set, err);
    if (status || !coffer__mldf_guard_holds(set) || front > FRONT_MAX)
        return status;
    uint8_t *scratch = coffer__malloc(COFFER__MLDF_SUM_BLOCK);
    if (!scratch)
        return coffer__fail_no_memory(err, COFFER__MLDF_SUM_BLOCK);
    status = coffer__mldf_sum_range(&crc, set, 0, front, scratch, err);
    coffer__free(scratch);
    if (!status && crc != set->guard.front_crc)
        status = coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLDF_HEAD_SIZE,
                              "the CRC-32 of header, descriptors and padding is %08lx, the file says %08lx; "
                              "repair the file first",
                              (unsigned long)crc, (unsigned long)set->guard.front_crc);
    return status;
}

coffer_status coffer__mldf_verify_tables(coffer_mldf *set, coffer_error *err)
{
    uint32_t crc = 0;
    bool agrees = true;
    coffer_status status = verify_header(set, err);
    if (status || !(set->header.flags & COFFER_MLDF_CHECKSUMMED))
        return status;
    if (set->region_only)
        return verify_region(set, err);
    status = coffer__mldf_sum_tables(&crc, set, err);
    if (!status)
        status = coffer__mldf_table_sum_agrees(&agrees, set, crc, err);
    if (status)
        return status;
    if (!agrees)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_CRC_AT,
                            "the CRC-32 of descriptors, rows and allocation table is %08lx, the header says "
                            "%08lx; repair the file first",
                            (unsigned long)crc, (unsigned long)set->header.table_crc);
    set->verified = true;
    return COFFER_OK;
}

/* ---- For callers ---- */

COFFER__INIT_FUNCTION(coffer_mldf_mark, COFFER_MLDF_MARK_INIT)

uint64_t coffer_mldf_mark_count(const coffer_mldf *set)
{
    return set->guard.mark_count;
}

coffer_status coffer_mldf_mark_at(coffer_mldf_mark *out, const coffer_mldf *set, uint64_t index,
                                  coffer_error *err)
{
    coffer_mldf_mark found = COFFER_MLDF_MARK_INIT;
    coffer__mldf_mark mark = { 0 };
    coffer_status status = check_marks(set, err);
    if (!status && index >= set->guard.mark_count)
        status =
            coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                         "mark %" PRIu64 " requested, the set has %" PRIu64, index, set->guard.mark_count);
    if (!status)
        status = load_mark(&mark, set, index, err);
    if (status)
        return status;
    found.first = mark.first;
    found.count = mark.count;
    found.field = mark.field == COFFER__MLDF_MARK_ROW ? COFFER_INDEX_NONE : (size_t)mark.field;
    found.kind = (coffer_mldf_mark_kind)mark.kind;
    return coffer__give_struct(out, &found, sizeof found, err);
}
