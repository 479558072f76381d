#include "formats/mlyze/mlyze_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/mlyze/read/mlyze_tables.h"

#include <inttypes.h>

static bool is_zero(const uint8_t *bytes, size_t len)
{
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++)
        any |= bytes[i];
    return any == 0;
}

/* Later versions may use what version 1 leaves zero, and other programs may keep something there. */
static void check_reserved(coffer_report *report, const coffer__mlyze_header *header)
{
    coffer_severity severity = header->version == COFFER__MLYZE_VERSION ? COFFER_WARNING : COFFER_NOTE;
    if (header->flags & ~(uint32_t)COFFER__MLYZE_FLAGS_KNOWN)
        coffer__report_add(report, COFFER_E_RESERVED_NOT_ZERO, severity, COFFER__MLYZE_FLAGS_AT,
                           "flags %" PRIx32 ": %" PRIx32 " is unknown", header->flags,
                           (header->flags & ~(uint32_t)COFFER__MLYZE_FLAGS_KNOWN));
    if (header->flags & COFFER__MLYZE_FLAG_ARCHIVE && !coffer__mlyze_has_blocks(header))
        coffer__report_add(report, COFFER_E_BAD_VALUE, COFFER_ERROR, COFFER__MLYZE_FLAGS_AT,
                           "flags %" PRIx32 ": %x without %x is damage", header->flags,
                           COFFER__MLYZE_FLAG_ARCHIVE, COFFER__MLYZE_FLAG_BLOCKS);
    if (!is_zero(header->bytes + COFFER__MLYZE_RESERVED_AT,
                 COFFER__MLYZE_HEADER_SIZE - COFFER__MLYZE_RESERVED_AT))
        coffer__report_add(report, COFFER_E_RESERVED_NOT_ZERO, severity, COFFER__MLYZE_RESERVED_AT,
                           "bytes %d to %d of the header are not all zero", COFFER__MLYZE_RESERVED_AT,
                           COFFER__MLYZE_HEADER_SIZE - 1);
    if (!coffer__mlyze_has_sums(header) && !is_zero(header->bytes + COFFER__MLYZE_METADATA_CRC_AT, 8))
        coffer__report_add(report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, COFFER__MLYZE_METADATA_CRC_AT,
                           "the header has checksums, but its flags say that it has none");
}

static void check_keys(const coffer__mlyze_checker *check)
{
    static const char *const wanted[] = { "stack_traces", "files", "functions" };
    const coffer__json_value *root = coffer__json_root(check->trace->metadata.json);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!coffer__json_find(root, wanted[i]))
            coffer__report_add(check->report, COFFER_E_MISSING, COFFER_WARNING, COFFER__MLYZE_HEADER_SIZE,
                               "the metadata has no \"%s\"", wanted[i]);
    }
}

/* The tables are damaged, the events are another matter. */
static coffer_status note_lost_names(const coffer__mlyze_checker *check, coffer_error *err)
{
    uint64_t events = 0;
    coffer_status status = coffer_mlyze_event_count(&events, check->trace, err);
    if (!status)
        coffer__report_add(
            check->report, COFFER_E_MISSING, COFFER_NOTE, COFFER__MLYZE_HEADER_SIZE,
            "the tables of stacks, files and functions cannot be read; 'coffer repair' keeps the "
            "events without them: %" PRIu64,
            events);
    return status;
}

static coffer_status check_metadata(coffer__mlyze_checker *check, coffer_error *err)
{
    coffer_mlyze *trace = check->trace;
    coffer_error found = COFFER_ERROR_INIT;
    char *text = NULL;
    coffer_status status =
        coffer__mlyze_read_metadata(&text, trace->source, &trace->header, &trace->limits, &found);
    if (status)
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    if (coffer__mlyze_check_metadata_sum(&trace->header, text, &found))
        coffer__report_add_error(check->report, COFFER_ERROR, &found);
    status = coffer__mlyze_metadata_load_any(&trace->metadata, text, trace->header.metadata_len,
                                             trace->header.flags, &trace->limits, check->report, &found);
    if (status) {
        status = coffer__report_take(check->report, COFFER_ERROR, &found, err);
        return status ? status : note_lost_names(check, err);
    }
    check->understood = true;
    coffer__mlyze_settle_order(&trace->metadata, trace->header.flags, COFFER_MLYZE_ORDER_AUTO, check->report);
    if (!trace->metadata.order_is_known)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, COFFER__MLYZE_HEADER_SIZE,
                           "the order of frames is not known: outermost first, unless Coffer 0.1 wrote this "
                           "plain trace (then use --stack-order innermost-first)");
    coffer__mlyze_losses losses = { 0 };
    coffer__mlyze_losses_read(&losses, coffer__json_root(trace->metadata.json));
    coffer__mlyze_losses_report(check->report, &losses, trace);
    check->lost_names = losses.lost_metadata;
    check_keys(check);
    coffer__mlyze_check_stacks(check);
    return COFFER_OK;
}

static coffer_status check_area(const coffer__mlyze_checker *check, coffer_error *err)
{
    const coffer_mlyze *trace = check->trace;
    uint64_t size = coffer_source_size(trace->source);
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer_mlyze_damage(trace, &found);
    if (status)
        status = coffer__report_take(check->report, COFFER_ERROR, &found, err);
    if (status)
        return status;
    if (trace->area_end < size)
        coffer__report_add(check->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, trace->area_end,
                           "the events end at %" PRIu64 ", %" PRIu64 " bytes follow", trace->area_end,
                           (size - trace->area_end));
    return COFFER_OK;
}

coffer_status coffer__mlyze_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err)
{
    coffer__mlyze_checker check = { .report = out, .progress = opts->progress };
    coffer_limits limits = coffer__limits(opts->limits);
    coffer_error found = COFFER_ERROR_INIT;
    coffer__mlyze_header header;
    coffer_status status = coffer__mlyze_read_header(&header, src, &found);
    if (status) {
        status = coffer__report_take(out, COFFER_ERROR, &found, err);
        return status ? status : coffer__report_status(out, err);
    }
    if (coffer__mlyze_check_header_sum(&header, &found))
        coffer__report_add_error(out, COFFER_ERROR, &found);
    check_reserved(out, &header);
    status = coffer__mlyze_open_events(&check.trace, src, &header, &limits, NULL, err);
    if (status)
        return status;
    status = check_metadata(&check, err);
    if (!status)
        status = check_area(&check, err);
    if (!status)
        status = coffer__mlyze_check_events(&check, err);
    coffer_mlyze_close(check.trace);
    return status ? status : coffer__report_status(out, err);
}

/* ---- Stacks ---- */

/* Ids of frames that no table lists: the first one, and their number. */
typedef struct dangling {
    const char *member, *table;
    uint64_t count, id, stack;
} dangling;

static void look_up(dangling *found, const coffer__mlyze_names *names, uint64_t id, uint64_t stack)
{
    if (id == COFFER__MLYZE_NO_ID || coffer__mlyze_ids_find(&names->ids, id) != SIZE_MAX)
        return;
    if (found->count++ == 0) {
        found->id = id;
        found->stack = stack;
    }
}

static void report(const coffer__mlyze_checker *check, const dangling *found)
{
    if (found->count > 0)
        coffer__report_add(check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR,
                           COFFER__MLYZE_HEADER_SIZE,
                           "stack %" PRIu64 ": %s %" PRIu64 " is not in %s (frames like it: %" PRIu64 ")",
                           found->stack, found->member, found->id, found->table, found->count);
}

void coffer__mlyze_check_stacks(const coffer__mlyze_checker *check)
{
    const coffer__mlyze_metadata *metadata = &check->trace->metadata;
    dangling files = { .member = "file_id", .table = "files" };
    dangling functions = { .member = "func_id", .table = "functions" };
    for (size_t i = 0; i < metadata->stacks.ids.count; i++) {
        size_t depth;
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, check->trace, i);
        for (size_t j = 0; j < depth; j++) {
            look_up(&files, &metadata->files, frames[j].file_id, metadata->stacks.ids.items[i]);
            look_up(&functions, &metadata->functions, frames[j].func_id, metadata->stacks.ids.items[i]);
        }
    }
    report(check, &files);
    report(check, &functions);
}
