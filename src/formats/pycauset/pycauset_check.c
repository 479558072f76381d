#include "formats/pycauset/pycauset_scan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "io/source_private.h"

#include <inttypes.h>

typedef struct checker {
    coffer_report *report;
    coffer_source *source;
    const coffer_check_opts *opts;
    coffer_limits limits;
    coffer__pycauset_header header;
    coffer_pycauset *opened;       /* by the check itself */
    const coffer_pycauset *matrix; /* NULL when it cannot be opened */
    coffer_error unopened;         /* then: why */
    /* A full check of a file with checksums: every byte of it is covered, and one that does not match is an
     * error. In other files, damage outside the active state is a warning. */
    bool covered;
} checker;

/* Adds what was wrong with the file; gives back what was wrong around it. */
static coffer_status take_finding(const checker *check, coffer_severity severity, const coffer_error *found,
                                  coffer_error *err)
{
    if (!found->status)
        return COFFER_OK;
    if (!coffer__is_about_file(found->status))
        return coffer__fail_copy(err, found);
    coffer__report_add_error(check->report, severity, found);
    return COFFER_OK;
}

/* ---- The header ---- */

static coffer_status check_rest_of_header(const checker *check, coffer_error *err)
{
    uint8_t bytes[COFFER__PYCAUSET_HEADER_SIZE - COFFER__PYCAUSET_SLOTS_END];
    coffer_status status =
        coffer_source_read_at(bytes, check->source, COFFER__PYCAUSET_SLOTS_END, sizeof bytes, err);
    for (size_t i = 0; i < sizeof bytes && !status; i++) {
        if (bytes[i] != 0) {
            coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                               COFFER__PYCAUSET_SLOTS_END + i,
                               "the header is not zero after its slots: byte %zu is %u",
                               COFFER__PYCAUSET_SLOTS_END + i, bytes[i]);
            break;
        }
    }
    return status;
}

/* Whether a slot that was written whole names bytes that the file had once. */
static bool names_lost_bytes(const coffer__pycauset_slot *slot, uint64_t size, uint64_t *end)
{
    uint64_t payload, metadata;
    if (!slot->crc_matches || !coffer__add_u64(&payload, slot->payload_offset, slot->payload_length) ||
        !coffer__add_u64(&metadata, slot->metadata_offset, slot->metadata_length))
        return false;
    *end = payload > metadata ? payload : metadata;
    return *end > size;
}

static coffer_severity other_severity(const checker *check)
{
    return check->covered ? COFFER_ERROR : COFFER_WARNING;
}

static void check_slot(const checker *check, int which)
{
    const coffer__pycauset_slot *slot = &check->header.slots[which];
    uint64_t size = coffer_source_size(check->source), end;
    coffer_error why = COFFER_ERROR_INIT;
    if (coffer__pycauset_explain_slot(&check->header, which, size, &why))
        coffer__report_add_error(check->report,
                                 check->header.active < 0 ? COFFER_ERROR : other_severity(check), &why);
    if (check->header.active < 0 && names_lost_bytes(slot, size, &end))
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, size,
                           "the file ends at %" PRIu64 ", slot %c names bytes up to %" PRIu64, size,
                           "AB"[which], end);
    if (slot->crc_matches && (slot->hot_offset != 0 || slot->hot_length != 0))
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                           coffer__pycauset_slot_place(which) + 40,
                           "slot %c: hot_offset and hot_length are %" PRIu64 " and %" PRIu64 ", not 0",
                           "AB"[which], slot -> hot_offset, slot -> hot_length);
    if (slot->crc_matches && !slot->reserved_zero)
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                           coffer__pycauset_slot_place(which) + COFFER__PYCAUSET_SLOT_RESERVED_AT,
                           "slot %c: its reserved bytes are not zero", "AB"[which]);
}

static void check_slots_together(const checker *check)
{
    const coffer__pycauset_slot *a = &check->header.slots[0], *b = &check->header.slots[1];
    uint64_t high = a->generation > b->generation ? a->generation : b->generation;
    uint64_t low = a->generation > b->generation ? b->generation : a->generation;
    if (a->fault || b->fault)
        return;
    if (a->payload_offset != b->payload_offset || a->payload_length != b->payload_length)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING,
                           coffer__pycauset_slot_place(0),
                           "slot A has the payload at %" PRIu64 " (%" PRIu64 " bytes), slot B at %" PRIu64
                           " (%" PRIu64 " bytes): it never "
                           "moves",
                           a->payload_offset, a->payload_length, b->payload_offset, b->payload_length);
    if (high - low != 1)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, coffer__pycauset_slot_place(0),
                           "slot A is generation %" PRIu64 ", slot B %" PRIu64
                           ": they should follow each other",
                           a->generation, b->generation);
}

/* ---- Metadata ---- */

static void use_matrix(checker *check, const coffer_pycauset *matrix)
{
    check->matrix = matrix;
    check->covered = check->opts->full &&
                     coffer__pycauset_get_key(matrix->metadata.root, COFFER__PYCAUSET_CHECKSUMS_KEY) != NULL;
}

static void open_matrix(checker *check)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    opts.limits = &check->limits;
    if (coffer_pycauset_open(&check->opened, check->source, &opts, &check->unopened) == COFFER_OK)
        use_matrix(check, check->opened);
}

static void check_overlap(const checker *check, int which, coffer_severity severity)
{
    const coffer__pycauset_slot *slot = &check->header.slots[which];
    uint64_t payload_end = slot->payload_offset + check->matrix->info.payload_needed;
    uint64_t metadata_end = slot->metadata_offset + slot->metadata_length;
    if (slot->metadata_offset < payload_end && slot->payload_offset < metadata_end)
        coffer__report_add(check->report, COFFER_E_OVERLAP, severity, slot->metadata_offset,
                           "slot %c: the metadata at %" PRIu64
                           " overlaps the payload, which ends at %" PRIu64,
                           "AB"[which], slot -> metadata_offset, payload_end);
}

/* The state before: nobody reads it, but it is what one can go back to. */
static coffer_status check_other_state(const checker *check, coffer_error *err)
{
    const coffer__pycauset_slot *active = &check->header.slots[check->header.active];
    const coffer__pycauset_slot *other = &check->header.slots[1 - check->header.active];
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_error found = COFFER_ERROR_INIT;
    if (other->fault || other->metadata_offset == active->metadata_offset)
        return COFFER_OK;
    coffer__pycauset_read_block(&tree, check->source, other->metadata_offset, other->metadata_length,
                                &check->limits, &found);
    coffer__pycauset_tree_free(&tree);
    if (check->matrix)
        check_overlap(check, 1 - check->header.active, COFFER_WARNING);
    return take_finding(check, other_severity(check), &found, err);
}

/* Bytes that belong to nothing must be zeros, and no more than the next block's alignment needs. */
static coffer_status check_gap(const checker *check, uint64_t from, uint64_t to, coffer_error *err)
{
    enum { PIECE = 4096 };
    uint8_t bytes[PIECE];
    bool zeros = true;
    for (uint64_t at = from; zeros && at < to; at += PIECE) {
        size_t len = to - at < PIECE ? (size_t)(to - at) : PIECE;
        coffer_status status = coffer_source_read_at(bytes, check->source, at, len, err);
        if (status)
            return status;
        for (size_t i = 0; i < len; i++)
            zeros = zeros && bytes[i] == 0;
    }
    if (to - from >= COFFER__PYCAUSET_BLOCK_ALIGNMENT)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, from,
                           "%" PRIu64 " bytes at %" PRIu64
                           " are not an intact metadata block: an older state is damaged",
                           to - from, from);
    else if (!zeros)
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, from,
                           "the %" PRIu64 " bytes of padding at %" PRIu64 " are not zero", to - from, from);
    return COFFER_OK;
}

/* Between the payload and the last block that a slot names, every byte is in a block or is padding. */
static coffer_status check_gaps(const checker *check, coffer_error *err)
{
    const coffer_pycauset_info *info = &check->matrix->info;
    coffer__pycauset_scan scan = { .items = NULL };
    uint64_t at = info->payload_offset + info->payload_needed, end = at;
    coffer_status status =
        coffer__pycauset_scan_blocks(&scan, check->source, &check->header, &check->limits, err);
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &check->header.slots[i];
        if (slot->fault == COFFER_OK && slot->metadata_offset + slot->metadata_length > end)
            end = slot->metadata_offset + slot->metadata_length;
    }
    for (size_t i = 0; !status && i < scan.count && at < end; i++) {
        if (scan.items[i].offset < at)
            continue;
        if (scan.items[i].offset > at)
            status = check_gap(check, at, scan.items[i].offset, err);
        at = scan.items[i].offset + scan.items[i].length;
    }
    coffer__pycauset_scan_free(&scan);
    return status;
}

static void check_keys(const checker *check)
{
    static const char *const maps[] = { "properties", "cached", "provenance" };
    const coffer_pycauset_value *root = check->matrix->metadata.root, *value;
    uint64_t place = check->matrix->metadata_offset, n;
    if (check->matrix->metadata.unsorted)
        coffer__report_add(check->report, COFFER_E_NOT_SORTED, COFFER_NOTE, place,
                           "the keys of the metadata are not in order");
    value = coffer__pycauset_get_key(root, "payload_uuid");
    if (!value)
        coffer__report_add(check->report, COFFER_E_MISSING, COFFER_ERROR, place,
                           "the metadata has no \"payload_uuid\"");
    else if (value->kind != COFFER_PYCAUSET_STRING || value->count != COFFER__PYCAUSET_UUID_SIZE ||
             !coffer__pycauset_is_uuid(value->as.text))
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, place,
                           "\"payload_uuid\" is not %d hexadecimal digits", COFFER__PYCAUSET_UUID_SIZE);
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        value = coffer__pycauset_get_key(root, maps[i]);
        if (value && value->kind != COFFER_PYCAUSET_MAP)
            coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, place, "\"%s\" is not a map",
                               maps[i]);
    }
    value = coffer__pycauset_get_key(root, "seed");
    if (value && value->kind != COFFER_PYCAUSET_U64 && value->kind != COFFER_PYCAUSET_I64)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, place,
                           "\"seed\" is not an integer");
    value = coffer__pycauset_get_key(root, "n");
    if (coffer__pycauset_get_key(root, "object_type") && value &&
        (!coffer__pycauset_is_u64(&n, value) || n != check->matrix->info.rows))
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, place,
                           "\"n\" is not the number of rows, %" PRIu64, check->matrix->info.rows);
}

static void check_cached(const checker *check)
{
    const coffer_pycauset_value *root = check->matrix->metadata.root;
    const coffer_pycauset_value *cached = coffer__pycauset_get_key(root, "cached");
    uint64_t place = check->matrix->metadata_offset;
    for (size_t i = 0; i < coffer_pycauset_value_count(cached); i++) {
        const coffer_pycauset_value *entry = &cached->as.children[i];
        const coffer_pycauset_value *signature = coffer__pycauset_get_key(entry, "signature");
        const char *lacks = !coffer__pycauset_get_key(entry, "value")                ? "value"
                            : !signature                                             ? "signature"
                            : !coffer__pycauset_get_key(signature, "payload_uuid")   ? "payload_uuid"
                            : !coffer__pycauset_get_key(signature, "view_signature") ? "view_signature"
                                                                                     : NULL;
        bool go_on = true;
        if (cached->kind != COFFER_PYCAUSET_MAP)
            return;
        if (lacks)
            go_on = coffer__report_add(check->report, COFFER_E_MISSING, COFFER_WARNING, place,
                                       "the cached value \"%s\" has no %s: it is ignored", entry->key, lacks);
        else if (!coffer__pycauset_is_fresh(entry, root, check->matrix->view_signature))
            go_on = coffer__report_add(
                check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, place,
                "the cached value \"%s\" is stale: it was computed for another payload or view", entry->key);
        if (!go_on)
            return;
    }
}

/* Reports kinds that other programs, or this one, cannot read. */
static void check_type(const checker *check)
{
    const coffer_pycauset_info *info = &check->matrix->info;
    uint64_t place = check->matrix->metadata_offset;
    coffer_error unknown = COFFER_ERROR_INIT;
    /* A view can be changed at any time, and the program writes such views itself. */
    coffer_pycauset_info plain = *info;
    plain.transposed = false;
    plain.scalar_real = 1.0;
    plain.scalar_imag = 0.0;
    const char *misread = coffer_pycauset_misread(&plain);
    if (info->type == COFFER_PYCAUSET_UNKNOWN &&
        coffer__pycauset_fail_unknown(check->matrix, &unknown) != COFFER_OK)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, place, "%s", unknown.text);
    else if (misread)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, place, "%s", misread);
}

/* Bytes after everything that a slot names: an interrupted update, or appended bytes. */
static void check_tail(const checker *check)
{
    const coffer_pycauset_info *info = &check->matrix->info;
    uint64_t end = info->payload_offset + info->payload_needed, size = coffer_source_size(check->source);
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &check->header.slots[i];
        uint64_t block_end = slot->metadata_offset + slot->metadata_length;
        if (!slot->fault && block_end > end)
            end = block_end;
    }
    if (end < size)
        coffer__report_add(check->report, COFFER_E_TRAILING_BYTES, COFFER_NOTE, end,
                           "no slot names the last %" PRIu64
                           " bytes: an interrupted update or appended bytes "
                           "(compact removes them)",
                           size - end);
}

/* ---- All of it ---- */

static coffer_status check_matrix(const checker *check, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    check_overlap(check, check->header.active, COFFER_ERROR);
    check_type(check);
    check_keys(check);
    check_cached(check);
    check_tail(check);
    if (check->covered)
        status = check_gaps(check, err);
    if (status)
        return status;
    if (check->matrix->info.type == COFFER_PYCAUSET_BLOCK)
        status = coffer__pycauset_check_blocks(check->report, check->matrix, check->opts, err);
    if (!status && check->opts->full)
        status = coffer__pycauset_verify_checksums(check->report, check->matrix, check->opts, err);
    return status;
}

/* Findings about header and slots that do not prevent opening the file. */
static coffer_status check_header(const checker *check, coffer_error *err)
{
    coffer_status status = check_rest_of_header(check, err);
    if (status)
        return status;
    for (int i = 0; i < 2; i++)
        check_slot(check, i);
    check_slots_together(check);
    return COFFER_OK;
}

static coffer_status check_file(checker *check, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    if (coffer__pycauset_read_header(&check->header, check->source, &found))
        return take_finding(check, COFFER_ERROR, &found, err);
    /* A slot that a commit is just writing is not a damaged one. */
    if ((check->header.slots[0].fault || check->header.slots[1].fault) &&
        !coffer__source_settled(check->source))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "changed during the check: check it again");
    if (check->header.active >= 0)
        open_matrix(check);
    status = check_header(check, err);
    if (status || check->header.active < 0)
        return status;
    status = take_finding(check, COFFER_ERROR, &check->unopened, err);
    if (!status)
        status = check_other_state(check, err);
    if (status || !check->matrix)
        return status;
    return check_matrix(check, err);
}

coffer_status coffer__pycauset_check_open(coffer_report *out, const coffer_pycauset *matrix,
                                          const coffer_check_opts *opts, coffer_error *err)
{
    checker check = { .report = out,
                      .source = matrix->source,
                      .opts = opts,
                      .limits = matrix->limits,
                      .header = matrix->header };
    use_matrix(&check, matrix);
    coffer_status status = check_header(&check, err);
    if (!status)
        status = check_other_state(&check, err);
    if (!status)
        status = check_matrix(&check, err);
    if (status)
        return status;
    return coffer__report_status(out, err);
}

coffer_status coffer__pycauset_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                     coffer_error *err)
{
    checker check = { .report = out,
                      .source = src,
                      .opts = opts,
                      .limits = coffer__limits(opts->limits),
                      .unopened = COFFER_ERROR_INIT };
    coffer_status status = check_file(&check, err);
    coffer_pycauset_close(check.opened);
    return status ? status : coffer__report_status(out, err);
}
