/* Losses of repairs. The repaired file records them, so that check keeps reporting them. */
#include "base/fail.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_private.h"

#include <inttypes.h>
#include <stdio.h>

/* The members of "repaired": numbers, then true or absent. */
typedef struct loss_name {
    const char *name;
    size_t offset;
    bool is_number;
} loss_name;

#define NUMBER(name, member)                               \
    {                                                      \
        name, offsetof(coffer__mlyze_losses, member), true \
    }
#define MARK(name, member)                                  \
    {                                                       \
        name, offsetof(coffer__mlyze_losses, member), false \
    }

static const loss_name names[] = {
    NUMBER("lost_blocks", blocks),     NUMBER("lost_events", events),
    NUMBER("lost_bytes", bytes),       NUMBER("unverified_events", unverified_events),
    MARK("unverified_header", header), MARK("unverified_metadata", metadata),
    MARK("unverified_file", file),     MARK("lost_metadata", lost_metadata),
    MARK("interrupted", interrupted),
};
enum { NAMES = sizeof names / sizeof names[0] };

static uint64_t *number_of(coffer__mlyze_losses *losses, const loss_name *name)
{
    return (uint64_t *)(void *)((char *)losses + name->offset);
}

static bool *mark_of(coffer__mlyze_losses *losses, const loss_name *name)
{
    return (bool *)(void *)((char *)losses + name->offset);
}

const char *coffer__mlyze_losses_member(char out[COFFER__MLYZE_LOSSES_TEXT],
                                        const coffer__mlyze_losses *losses)
{
    coffer__mlyze_losses copy = *losses;
    size_t len = (size_t)snprintf(out, COFFER__MLYZE_LOSSES_TEXT, "\"" COFFER__MLYZE_REPAIRED_KEY "\":{");
    size_t begin = len;
    for (size_t i = 0; i < NAMES; i++) {
        const char *comma = len > begin ? "," : "";
        if (names[i].is_number && *number_of(&copy, &names[i]) > 0)
            len += (size_t)snprintf(out + len, COFFER__MLYZE_LOSSES_TEXT - len, "%s\"%s\":%" PRIu64, comma,
                                    names[i].name, *number_of(&copy, &names[i]));
        else if (!names[i].is_number && *mark_of(&copy, &names[i]))
            len += (size_t)snprintf(out + len, COFFER__MLYZE_LOSSES_TEXT - len, "%s\"%s\":true", comma,
                                    names[i].name);
    }
    if (len == begin)
        return "";
    snprintf(out + len, COFFER__MLYZE_LOSSES_TEXT - len, "},");
    return out;
}

void coffer__mlyze_losses_read(coffer__mlyze_losses *out, const coffer__json_value *root)
{
    const coffer__json_value *said = root ? coffer__json_find(root, COFFER__MLYZE_REPAIRED_KEY) : NULL;
    if (!said || said->kind != COFFER__JSON_OBJECT)
        return;
    for (size_t i = 0; i < NAMES; i++) {
        const coffer__json_value *value = coffer__json_find(said, names[i].name);
        if (value && names[i].is_number && value->kind == COFFER__JSON_U64) {
            uint64_t *number = number_of(out, &names[i]);
            if (__builtin_add_overflow(*number, value->as.u64, number))
                *number = UINT64_MAX;
        } else if (value && !names[i].is_number && value->kind == COFFER__JSON_BOOL)
            *mark_of(out, &names[i]) |= value->as.boolean;
    }
}

void coffer__mlyze_losses_cut(char *text, size_t *len)
{
    static const char begin[] = "{\"" COFFER__MLYZE_REPAIRED_KEY "\":";
    const size_t key_end = sizeof begin - 1;
    if (*len <= key_end || memcmp(text, begin, key_end) != 0)
        return;
    size_t end = key_end + coffer__json_object_length(text + key_end, *len - key_end);
    if (end == key_end || end >= *len)
        return;
    end += text[end] == ',';
    memmove(text + 1, text + end, *len - end);
    *len -= end - 1;
}

void coffer__mlyze_losses_report(coffer_report *report, const coffer__mlyze_losses *losses,
                                 const coffer_mlyze *trace)
{
    uint64_t kept = 0;
    coffer_error ignored = COFFER_ERROR_INIT;
    (void)!coffer_mlyze_event_count(&kept, trace, &ignored);
    if (losses->blocks || losses->events || losses->bytes)
        coffer__report_add(report, COFFER_E_MISSING, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE,
                           "an earlier repair lost events: %" PRIu64 ", damaged blocks: %" PRIu64
                           ", bytes: %" PRIu64,
                           losses->events, losses->blocks, losses->bytes);
    if (losses->unverified_events)
        coffer__report_add(report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "an earlier repair kept the first %" PRIu64
                           " events of a truncated block, which no checksum covered",
                           losses->unverified_events);
    if (losses->lost_metadata)
        coffer__report_add(
            report, COFFER_E_MISSING, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE,
            "an earlier repair lost the tables of stacks, files and functions; events kept: %" PRIu64, kept);
    if (losses->header || losses->metadata || losses->file)
        coffer__report_add(report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, COFFER__MLYZE_HEADER_SIZE,
                           "an earlier repair kept the %s, whose checksum did not match",
                           losses->file     ? "file"
                           : losses->header ? (losses->metadata ? "header and the metadata" : "header")
                                            : "metadata");
    if (losses->interrupted)
        coffer__report_add(report, COFFER_E_TRUNCATED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "the recording was interrupted: its last events are missing");
}

coffer_status coffer_mlyze_repaired(const coffer_mlyze *trace, coffer_error *err)
{
    coffer__mlyze_losses losses = { 0 };
    coffer_report *report = NULL;
    coffer__mlyze_losses_read(&losses, coffer__json_root(trace->metadata.json));
    coffer_status status = coffer_report_new(&report, 1, err);
    if (status)
        return status;
    coffer__mlyze_losses_report(report, &losses, trace);
    const coffer_finding *first = coffer_report_at(report, 0);
    if (first && first->severity == COFFER_ERROR)
        status = coffer__fail(err, first->code, first->offset, "%s", first->text);
    coffer_report_free(report);
    return status;
}
