/* Collapsed stacks: "main;work;grab 4096", outermost frame first, one stack per line. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/outside_files.h"
#include "convert/traces/mlyze_export.h"
#include "convert/traces/mlyze_import.h"
#include "outside/profiles/profile_text.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

/* ---- Reading ---- */

typedef struct collapsed {
    coffer__packed_lines lines;
    coffer__mlyze_import import;
    coffer_mlyze_frame *frames;
    size_t frame_capacity;
    coffer__mlyze_sample *samples;
    size_t sample_count, sample_capacity;
} collapsed;

/* The number after the last space; *len becomes the length of the stack. */
static coffer_status split_value(uint64_t *value, size_t *len, const coffer__packed_lines *lines,
                                 coffer_error *err)
{
    coffer__number number;
    size_t space = lines->len;
    while (space > 0 && lines->text[space - 1] != ' ' && lines->text[space - 1] != '\t')
        space--;
    if (space < 2 || !coffer__number_parse(&number, lines->text + space, lines->len - space) ||
        !coffer__number_as_u64(value, &number, INT64_MAX))
        return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_VALUE,
                                         "expected frames with ; between them, a space and a number");
    *len = space - 1;
    return COFFER_OK;
}

/* Splits into frames, innermost first, from the end of the line. */
static coffer_status take_stack(uint64_t *stack, collapsed *from, const char *text, size_t len,
                                coffer_error *err)
{
    size_t depth = 0;
    if (len > 1 && text[len - 1] == ';') /* some writers end every frame with it */
        len--;
    for (bool more = true; more;) {
        size_t start = len;
        while (start > 0 && text[start - 1] != ';')
            start--;
        coffer_status status =
            coffer__array_reserve_one(&from->frames, &from->frame_capacity, depth, sizeof *from->frames, err);
        if (!status)
            status = coffer__mlyze_import_place(&from->frames[depth++], &from->import, text + start,
                                                len - start, err);
        if (status)
            return status;
        more = start > 0;
        len = more ? start - 1 : 0;
    }
    return coffer__mlyze_import_stack(stack, &from->import, from->frames, depth, err);
}

static coffer_status take_line(collapsed *from, coffer_error *err)
{
    coffer__mlyze_sample sample = { .stack = 0 };
    uint64_t bytes = 0;
    size_t len = 0;
    coffer_status status = split_value(&bytes, &len, &from->lines, err);
    if (!status)
        status = take_stack(&sample.stack, from, from->lines.text, len, err);
    if (!status)
        status = coffer__array_reserve_one(&from->samples, &from->sample_capacity, from->sample_count,
                                           sizeof *from->samples, err);
    if (status)
        return status;
    sample.total = sample.peak = sample.end = (coffer__mlyze_blocks){ 1, bytes };
    from->samples[from->sample_count++] = sample;
    return COFFER_OK;
}

static coffer_status take_all(collapsed *from, coffer_error *err)
{
    coffer_status status = coffer__mlyze_import_create(&from->import, NULL, 0, 0, err);
    while (!status) {
        status = coffer__packed_lines_next(&from->lines, err);
        if (status || !from->lines.text)
            break;
        bool is_comment = from->lines.len == 0 || from->lines.text[0] == '#';
        if (!is_comment)
            status = take_line(from, err);
    }
    if (!status)
        status = coffer__mlyze_import_samples(&from->import, from->samples, from->sample_count, 0, 0, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_collapsed(const coffer__convert_job *job, coffer_error *err)
{
    collapsed from = { .frames = NULL };
    coffer__mlyze_import_open(&from.import, job, true);
    coffer_status status = coffer__mlyze_import_lines(&from.lines, job, err);
    if (!status) {
        status = take_all(&from, err);
        coffer__packed_lines_close(&from.lines);
    }
    coffer__mlyze_import_close(&from.import);
    coffer__free(from.frames);
    coffer__free(from.samples);
    return status;
}

/* ---- Describing ---- */

typedef struct collapsed_counts {
    uint64_t stacks, bytes;
} collapsed_counts;

static coffer_status count_lines(collapsed_counts *out, coffer_source *src, const coffer_limits *given,
                                 const coffer_progress *progress, coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    const coffer__packed_lines_opts opts = { .limits = &limits, .progress = progress };
    coffer__packed_lines lines;
    coffer_status status = coffer__packed_lines_open(&lines, src, &opts, err);
    if (status)
        return status;
    while (!(status = coffer__packed_lines_next(&lines, err)) && lines.text) {
        uint64_t value = 0;
        size_t len = 0;
        if (lines.len == 0 || lines.text[0] == '#')
            continue;
        status = split_value(&value, &len, &lines, err);
        if (status)
            break;
        out->stacks++;
        if (__builtin_add_overflow(out->bytes, value, &out->bytes))
            out->bytes = UINT64_MAX;
    }
    coffer__packed_lines_close(&lines);
    return status;
}

coffer_status coffer__collapsed_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                         coffer_error *err)
{
    collapsed_counts counts = { 0 };
    coffer_status status = count_lines(&counts, src, limits, NULL, err);
    coffer_node_add_u64(out, "stacks", counts.stacks, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "sum", counts.bytes, COFFER_UNIT_BYTES);
    return status ? status : coffer_node_status(out, err);
}

coffer_status coffer__collapsed_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err)
{
    collapsed_counts counts = { 0 };
    (void)out;
    return count_lines(&counts, src, opts->limits, opts->progress, err);
}

/* ---- Writing ---- */

static void put_row(coffer__mlyze_export *export, const coffer_mlyze_stack_row *row, bool lines)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, export, row->stack);
    for (size_t i = depth; i-- > 0;) {
        /* A semicolon would end the frame: it becomes a space. */
        coffer__mlyze_put_frame(&export->out, export->trace, &frames[i], lines, ';');
        coffer__buffer_append(&export->out, i ? ";" : " ", 1);
    }
    coffer__buffer_printf(&export->out, "%" PRIu64 "\n", coffer_mlyze_stack_row_bytes(row, export->what));
}

coffer_status coffer__mlyze_to_collapsed(const coffer__convert_job *job, coffer_error *err)
{
    coffer__mlyze_export export;
    bool lines = coffer__job_has(job, "lines");
    coffer_status status =
        coffer__mlyze_export_open(&export, job, COFFER__MLYZE_EXPORT_PROFILE, COFFER__PACKING_NONE, err);
    size_t count = status ? 0 : coffer_mlyze_stats_stack_count(export.stats);
    for (size_t i = 0; !status && i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(export.stats, i);
        if (coffer_mlyze_stack_row_bytes(row, export.what) > 0)
            put_row(&export, row, lines);
        status = coffer__mlyze_export_drain(&export, err);
    }
    if (!status)
        status = coffer__mlyze_export_commit(&export, err);
    coffer__mlyze_export_close(&export);
    return status;
}
