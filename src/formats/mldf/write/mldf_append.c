/* Changing a set in place: new payloads after the old end, then all rows and the whole allocation table, and
 * the header last, under the rollback journal. The old tables remain as dead bytes. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"

#include <inttypes.h>
#include <sodium.h>

#define PIECE COFFER__MLDF_SUM_BLOCK     /* a multiple of a table entry */
#define READ_ANYWAY ((uint64_t)64 << 20) /* data that costs next to nothing to read */

/* ---- Opening ---- */

coffer_status coffer__mldf_base_open(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_mldf_open_opts options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__mldf_base *base = coffer__calloc(1, sizeof *base);
    coffer_status status;
    if (!base)
        return coffer__fail_no_memory(err, sizeof *base);
    writer->base = base;
    base->keeps_rows = base->same_fields = true;
    options.key = writer->has_key ? writer->key : NULL;
    options.limits = &writer->limits;
    options.verify = true;
    status = coffer__update_open(&base->update, writer->path, NULL, err);
    if (!status)
        status = coffer__mldf_open_strict(&base->set, coffer__update_source(base->update), &options, err);
    if (status)
        return status;
    writer->stride = base->set->schema.stride;
    writer->opts.page_size = base->set->header.page_size;
    writer->checksums = (base->set->header.flags & COFFER_MLDF_CHECKSUMMED) != 0;
    writer->data_at = base->set->header.data;
    writer->data_crc = base->set->header.data_crc;
    writer->sample = base->set->header.samples;
    writer->out.update = base->update;
    writer->out.position = base->set->file_size;
    memcpy(writer->id, base->set->guard.id, sizeof writer->id);
    writer->keeps_id = true;
    status = coffer__mldf_read_marks(&base->marks, &base->mark_count, base->set, err);
    if (!status)
        coffer__mldf_sort_marks(base->marks, &base->mark_count);
    return status;
}

/* Fields of the file stay where they are, and their dictionaries too. */
static void keep_dictionaries(coffer_mldf_writer *writer)
{
    const coffer__mldf_schema *schema = &writer->base->set->schema;
    for (size_t i = 0; i < schema->count; i++) {
        writer->columns[i].field.dictionary_offset = schema->fields[i].dictionary_offset;
        writer->columns[i].field.dictionary_size = schema->fields[i].dictionary_size;
    }
}

coffer_status coffer__mldf_base_fields(coffer_mldf_writer *writer, const coffer_mldf_field *added,
                                       coffer_error *err)
{
    const coffer_mldf *set = writer->base->set;
    coffer_status status = coffer__mldf_take_fields(writer, set, NULL, set->schema.count, added, err);
    if (status)
        return status;
    keep_dictionaries(writer);
    writer->base->same_fields = !added;
    /* The first encrypted field: there is a place for an identifier, and nothing is tied to another one. */
    if (added && added->flags & COFFER_MLDF_FIELD_ENCRYPTED && !set->any_encrypted &&
        coffer__mldf_guard_holds(set))
        randombytes_buf(writer->id, sizeof writer->id);
    return COFFER_OK;
}

void coffer__mldf_base_free(coffer__mldf_base *base)
{
    if (!base)
        return;
    coffer_mldf_close(base->set);
    coffer__update_close(base->update);
    coffer__free(base->payloads);
    coffer__free(base->marks);
    coffer__free(base);
}

coffer_status coffer_mldf_writer_append_to(coffer_mldf_writer **out, const char *path,
                                           const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status = coffer__mldf_writer_new(&writer, path, opts, err);
    if (!status)
        status = coffer__mldf_base_open(writer, err);
    if (!status)
        status = coffer__mldf_base_fields(writer, NULL, err);
    for (size_t i = 0; !status && i < writer->base->mark_count; i++)
        status = coffer__mldf_add_mark(writer, &writer->base->marks[i], err);
    if (status) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

/* ---- The first byte ---- */

static size_t descriptors_size(const coffer_mldf_writer *writer)
{
    return (size_t)writer->stride * writer->column_count;
}

/* Descriptors before the data stay where they are. Others would end up among the payloads, where only data is
 * allowed. */
static bool descriptors_stay(const coffer_mldf_writer *writer)
{
    const coffer__mldf_header *old = &writer->base->set->header;
    return writer->base->same_fields && old->descriptors < old->data &&
           descriptors_size(writer) <= old->data - old->descriptors;
}

/* A set without a guard gets one where the bytes before the data are free. */
static coffer_status find_guard_room(coffer_mldf_writer *writer, coffer_error *err)
{
    const coffer_mldf *set = writer->base->set;
    const coffer__mldf_header *old = &set->header;
    uint8_t bytes[COFFER__MLDF_GUARD_SIZE];
    uint64_t at = old->data - sizeof bytes;
    coffer_status status;
    bool has_guard = set->guard_state != COFFER__MLDF_GUARD_NONE;
    writer->guarded = false;
    if (!writer->checksums && !has_guard)
        return COFFER_OK;
    if (old->data < COFFER__MLDF_HEAD_SIZE + sizeof bytes || old->data > set->file_size ||
        (old->descriptors < old->data &&
         old->descriptors + (uint64_t)set->schema.stride * set->schema.count > at))
        return COFFER_OK;
    status = coffer_source_read_at(bytes, set->source, at, sizeof bytes, err);
    if (status)
        return status;
    bool is_free = true;
    for (size_t i = 0; i < sizeof bytes; i++)
        is_free = is_free && bytes[i] == 0;
    writer->guarded = has_guard || is_free;
    return COFFER_OK;
}

/* New blocks of rows follow the old ones where those are complete and stay valid. */
static void resume_recovery(coffer_mldf_writer *writer)
{
    const coffer_mldf *set = writer->base->set;
    bool current = coffer__mldf_guard_holds(set);
    if (!writer->guarded || !writer->checksums || !writer->base->keeps_rows || !writer->base->same_fields ||
        writer->row_size == 0)
        return;
    if (!(current && set->guard.recovery_from) && set->header.samples > 0)
        return;
    writer->recovery = (coffer__mldf_recovery){ .on = true,
                                                .from = current ? set->guard.recovery_from : 0,
                                                .last_end = writer->out.position,
                                                .first_sample = set->header.samples };
}

static coffer_status expect_sum(const coffer_mldf *set, uint64_t from, uint64_t to, uint32_t expected,
                                uint8_t *piece, coffer_error *err)
{
    uint32_t crc = 0;
    coffer_status status = coffer__mldf_sum_range(&crc, set, from, to - from, piece, err);
    if (status || crc == expected)
        return status;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, from,
                        "the CRC-32 of %" PRIu64 " to %" PRIu64 " is %08lx, the file says %08lx; repair the "
                        "file first",
                        from, to, (unsigned long)crc, (unsigned long)expected);
}

/* The bytes that are summed again must be those that were. */
static coffer_status verify_guarded(coffer_mldf *set, coffer_error *err)
{
    uint64_t front = set->header.data - COFFER__MLDF_GUARD_SIZE;
    uint64_t tail = set->header.table - COFFER__MLDF_GUARD_SIZE;
    coffer_status status =
        coffer__mldf_read_guard(&set->guard, &set->guard_state, set->source, &set->header, true, err);
    if (status || !coffer__mldf_guard_holds(set) || set->guard.data_end > tail)
        return status;
    if (set->guard_state == COFFER__MLDF_GUARD_ONE_COPY)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, set->header.data,
                            "one of the two copies of the header is damaged; repair the file first");
    uint8_t *piece = coffer__malloc(PIECE);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    status = expect_sum(set, 0, front, set->guard.front_crc, piece, err);
    if (!status)
        status = expect_sum(set, set->guard.data_end, tail, set->guard.tail_crc, piece, err);
    coffer__free(piece);
    return status;
}

/* The sum of what follows the last payload begins with the old rows and the old table. */
static coffer_status sum_tail(coffer_mldf_writer *writer, coffer_error *err)
{
    const coffer_mldf *set = writer->base->set;
    coffer_status status = coffer__mldf_data_end(&writer->data_end, set, err);
    if (status || !writer->guarded)
        return status;
    if (writer->data_end > set->file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, set->header.table,
                            "the last payload ends at %" PRIu64 ", file has %" PRIu64
                            "; repair the file first",
                            writer->data_end, set->file_size);
    uint8_t *piece = coffer__malloc(PIECE);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    writer->out.tail_crc = 0;
    writer->out.guarded = true;
    status = coffer__mldf_sum_range(&writer->out.tail_crc, set, writer->data_end,
                                    set->file_size - writer->data_end, piece, err);
    coffer__free(piece);
    return status;
}

/* Other writers may have counted the padding after the last payload in. In a small set that is found out,
 * and data_crc is then the sum without it; a large one is taken for ours. */
static coffer_status find_summed_end(uint64_t *end, uint32_t *data_crc, const coffer_mldf *set,
                                     uint8_t *piece, coffer_error *err)
{
    uint64_t next = coffer__mldf_next_part(&set->header, *end, set->file_size);
    uint32_t crc = 0, padded;
    coffer_status status;
    if (next - set->header.data > READ_ANYWAY)
        return COFFER_OK;
    status = coffer__mldf_sum_range(&crc, set, set->header.data, *end - set->header.data, piece, err);
    if (status)
        return status;
    padded = crc;
    status = coffer__mldf_sum_range(&padded, set, *end, next - *end, piece, err);
    if (status)
        return status;
    if (crc != set->header.data_crc && padded == set->header.data_crc) {
        *end = next;
        *data_crc = crc;
    }
    return COFFER_OK;
}

/* The sum of the data continues after the last payload: the old tables are inside from now on. */
static coffer_status sum_dead_bytes(coffer_mldf_writer *writer, coffer_error *err)
{
    const coffer_mldf *set = writer->base->set;
    uint64_t end = 0;
    coffer_status status = coffer__mldf_data_end(&end, set, err);
    uint8_t *piece;
    if (status)
        return status;
    if (end < set->header.data || end > set->file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, set->header.table,
                            "the last payload ends at %" PRIu64 ", file has %" PRIu64
                            "; repair the file first",
                            end, set->file_size);
    piece = coffer__malloc(PIECE);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    writer->out.crc = set->header.data_crc;
    status = find_summed_end(&end, &writer->data_crc, set, piece, err);
    if (!status)
        status = coffer__mldf_sum_range(&writer->out.crc, set, end, set->file_size - end, piece, err);
    if (!status)
        status = coffer_source_intact(set->source, err);
    coffer__free(piece);
    return status;
}

coffer_status coffer__mldf_base_begin(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_base *base = writer->base;
    coffer__range ranges[3] = { { 0, COFFER__MLDF_HEAD_SIZE } };
    size_t count = 1;
    coffer_status status = COFFER_OK;
    if (base->begun)
        return COFFER_OK;
    status = verify_guarded(base->set, err);
    if (!status)
        status = find_guard_room(writer, err);
    if (!status)
        status = sum_tail(writer, err);
    if (!status)
        resume_recovery(writer);
    if (!status && writer->checksums)
        status = sum_dead_bytes(writer, err);
    if (!status)
        status = coffer__mldf_base_learn(writer, err);
    if (status)
        return status;
    writer->out.summed = writer->checksums;
    if (descriptors_stay(writer))
        ranges[count++] = (coffer__range){ base->set->header.descriptors, descriptors_size(writer) };
    if (writer->guarded)
        ranges[count++] =
            (coffer__range){ writer->data_at - COFFER__MLDF_GUARD_SIZE, COFFER__MLDF_GUARD_SIZE };
    status = coffer__update_begin(base->update, ranges, count, err);
    if (status)
        return status;
    base->begun = true;
    return COFFER_OK;
}

/* ---- Committing ---- */

typedef struct copying {
    coffer_mldf_writer *writer;
    uint8_t *piece;
    uint32_t old_crc; /* of descriptors, rows and table as they were */
    uint64_t end;     /* of the payload before */
} copying;

static coffer_status check_entries(copying *work, size_t len, uint64_t place, coffer_error *err)
{
    const coffer_mldf *set = work->writer->base->set;
    for (size_t at = 0; at < len; at += COFFER__MLDF_TABLE_ENTRY) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(work->piece + at);
        if (entry.offset < work->end)
            return coffer__fail(err, COFFER_E_NOT_SORTED, place + at,
                                "the payload at %" PRIu64
                                " begins before the one in front of it ends, at %" PRIu64 "; "
                                "repair the file first",
                                entry.offset, work->end);
        if (!coffer__range_fits(entry.offset, entry.size, set->file_size))
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place + at,
                                "a payload of %lu bytes at %" PRIu64 ", file has %" PRIu64
                                "; repair the file first",
                                (unsigned long)entry.size, entry.offset, set->file_size);
        work->end = entry.offset + entry.size;
    }
    return COFFER_OK;
}

/* A set with a checksum of the data region alone, which has been verified, gets those of its payloads. */
static coffer_status sum_payloads(copying *work, size_t len, coffer_error *err)
{
    const coffer_mldf *set = work->writer->base->set;
    uint8_t *scratch = coffer__malloc(COFFER__MLDF_SUM_BLOCK);
    coffer_status status = COFFER_OK;
    if (!scratch)
        return coffer__fail_no_memory(err, COFFER__MLDF_SUM_BLOCK);
    for (size_t at = 0; at < len && !status; at += COFFER__MLDF_TABLE_ENTRY) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(work->piece + at);
        uint32_t crc = 0;
        status = coffer__mldf_sum_range(&crc, set, entry.offset, entry.size, scratch, err);
        coffer__store_u32(work->piece + at + COFFER__MLDF_TABLE_ENTRY_CRC_AT, crc);
    }
    coffer__free(scratch);
    return status;
}

/* Passes over a part of the old file: sums it, checks it when it is the table, copies it when asked to. */
static coffer_status pass(copying *work, uint64_t at, uint64_t len, bool table, bool copy, coffer_error *err)
{
    coffer_source *source = work->writer->base->set->source;
    coffer_status status = COFFER_OK;
    while (!status && len > 0) {
        size_t part = len < PIECE ? (size_t)len : PIECE;
        status = coffer_source_read_at(work->piece, source, at, part, err);
        if (status)
            return status;
        if (work->writer->checksums)
            work->old_crc = coffer__crc32(work->old_crc, work->piece, part);
        if (table)
            status = check_entries(work, part, at, err);
        if (!status && table && work->writer->base->set->region_only)
            status = sum_payloads(work, part, err);
        if (!status && copy)
            status = coffer__mldf_out_write(&work->writer->out, work->piece, part, err);
        at += part;
        len -= part;
    }
    return status;
}

static coffer_status write_tables(copying *work, coffer__mldf_header *head, coffer__mldf_guard *guard,
                                  coffer_error *err)
{
    coffer_mldf_writer *writer = work->writer;
    const coffer_mldf *set = writer->base->set;
    const coffer__mldf_header *old = &set->header;
    bool agrees = true;
    coffer_status status =
        pass(work, old->descriptors, (uint64_t)set->schema.stride * old->fields, false, false, err);
    if (status)
        return status;
    head->metadata = writer->out.position;
    status =
        pass(work, old->metadata, old->samples * set->schema.row_size, false, writer->base->keeps_rows, err);
    if (!status)
        status = coffer__mldf_spill_each(&writer->rows, coffer__mldf_out_take, &writer->out, err);
    if (!status)
        status = coffer__mldf_guard_place(writer, guard, err);
    if (status)
        return status;
    head->table = writer->out.position;
    status = pass(work, old->table, set->file_size - old->table, true, true, err);
    if (status)
        return status;
    if (writer->checksums && !set->region_only)
        status = coffer__mldf_table_sum_agrees(&agrees, set, work->old_crc, err);
    if (status)
        return status;
    if (!agrees)
        return coffer__fail(
            err, COFFER_E_BAD_CHECKSUM, COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_CRC_AT,
            "the sum of rows and tables is %08lx, the header says %08lx; repair the file first",
            (unsigned long)work->old_crc, (unsigned long)old->table_crc);
    status = coffer__mldf_spill_each(&writer->table, coffer__mldf_out_take, &writer->out, err);
    head->table_crc = writer->checksums ? writer->out.crc : 0;
    return status;
}

/* Descriptors either keep their place or go after the data, with the rest. */
static coffer_status place_descriptors(coffer_mldf_writer *writer, coffer__mldf_header *head,
                                       const uint8_t *fields, size_t len, coffer_error *err)
{
    coffer__mldf_output *out = &writer->out;
    out->summed = false;
    coffer_status status = coffer__mldf_recovery_write(writer, 0, err);
    if (status)
        return status;
    if (!descriptors_stay(writer)) {
        status = coffer__mldf_out_align(out, COFFER__MLDF_METADATA_ALIGNMENT, err);
        if (status)
            return status;
        head->descriptors = out->position;
        status = coffer__mldf_out_write(out, fields, len, err);
    }
    if (!status)
        status = coffer__mldf_out_align(out, COFFER__MLDF_METADATA_ALIGNMENT, err);
    out->summed = writer->checksums;
    out->crc = writer->checksums ? coffer__crc32(0, fields, len) : 0;
    return status;
}

/* Everything before the first guard, with the new header and descriptors. */
static coffer_status sum_front(uint32_t *out, copying *work, const uint8_t head[COFFER__MLDF_HEAD_SIZE],
                               const uint8_t *fields, size_t len, coffer_error *err)
{
    const coffer_mldf_writer *writer = work->writer;
    const coffer_mldf *set = writer->base->set;
    uint64_t from = COFFER__MLDF_HEAD_SIZE, to = writer->data_at - COFFER__MLDF_GUARD_SIZE;
    uint32_t crc = coffer__crc32(0, head, COFFER__MLDF_HEAD_SIZE);
    coffer_status status = COFFER_OK;
    if (descriptors_stay(writer)) {
        uint64_t place = set->header.descriptors;
        status = coffer__mldf_sum_range(&crc, set, from, place - from, work->piece, err);
        crc = coffer__crc32(crc, fields, len);
        from = place + len;
    }
    if (!status)
        status = coffer__mldf_sum_range(&crc, set, from, to - from, work->piece, err);
    *out = crc;
    return status;
}

static coffer_status write_all(copying *work, coffer__mldf_header *head, const uint8_t *fields, size_t len,
                               coffer_error *err)
{
    coffer_mldf_writer *writer = work->writer;
    uint8_t bytes[COFFER__MLDF_HEAD_SIZE];
    coffer__mldf_guard guard = { 0 };
    coffer_status status = place_descriptors(writer, head, fields, len, err);
    if (!status)
        status = write_tables(work, head, &guard, err);
    if (status)
        return status;
    if (descriptors_stay(writer))
        status = coffer__mldf_out_patch(&writer->out, head->descriptors, fields, len, err);
    if (status)
        return status;
    coffer__mldf_compose_head(bytes, head);
    status = coffer__mldf_out_patch(&writer->out, 0, bytes, sizeof bytes, err);
    if (!status && writer->guarded)
        status = sum_front(&guard.front_crc, work, bytes, fields, len, err);
    if (!status)
        status = coffer__mldf_guard_finish(writer, &guard, head, err);
    if (status)
        return status;
    return coffer__update_commit(writer->base->update, err);
}

coffer_status coffer__mldf_base_commit(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_header head = writer->base->set->header;
    copying work = { .writer = writer };
    uint8_t *fields = NULL;
    size_t len = 0;
    coffer_status status;
    if (writer->base->keeps_rows && writer->base->same_fields && !writer->base->begun)
        return COFFER_OK;
    head.flags |= coffer__mldf_file_flags(writer);
    head.samples = writer->sample;
    head.fields = (uint16_t)writer->column_count;
    head.data_crc = writer->data_crc;
    work.piece = coffer__malloc(PIECE);
    if (!work.piece)
        return coffer__fail_no_memory(err, PIECE);
    status = coffer__mldf_base_begin(writer, err);
    if (!status)
        status = coffer__mldf_compose_fields(&fields, &len, writer, err);
    if (!status)
        status = write_all(&work, &head, fields, len, err);
    coffer__free(fields);
    coffer__free(work.piece);
    return status;
}
