/* Collapsed stacks: "main;work;grab 4096", outermost frame first, a stack a line. */
#include "convert/mlyze_export.h"

#include <inttypes.h>

/* A semicolon would end the frame: it becomes a space. */
static void put_frame(coffer__mlyze_export *export, const coffer_mlyze_frame *frame, bool lines)
{
    const char *file = coffer__mlyze_export_file(export, frame);
    coffer__mlyze_put_line_text(&export->out, coffer__mlyze_export_function(export, frame), ';');
    if (!lines || !*file)
        return;
    coffer__buffer_printf(&export->out, frame->line ? " (" : " (in ");
    coffer__mlyze_put_line_text(&export->out, file, ';');
    if (frame->line)
        coffer__buffer_printf(&export->out, ":%" PRIu64, frame->line);
    coffer__buffer_printf(&export->out, ")");
}

static void put_row(coffer__mlyze_export *export, const coffer_mlyze_stack_row *row, bool lines)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, export, row->stack);
    for (size_t i = depth; i-- > 0;) {
        put_frame(export, &frames[i], lines);
        coffer__buffer_append(&export->out, i ? ";" : " ", 1);
    }
    coffer__buffer_printf(&export->out, "%" PRIu64 "\n", coffer__mlyze_row_bytes(row, export->what));
}

coffer_status coffer__mlyze_to_collapsed(const coffer__convert_job *job, coffer_error *err)
{
    coffer__mlyze_export export;
    bool lines = coffer__job_has(job, "lines");
    coffer_status status =
        coffer__mlyze_export_open(&export, job, COFFER__MLYZE_EXPORT_PROFILE, COFFER__PACKING_NONE, err);
    size_t count = status ? 0 : coffer_mlyze_analysis_stack_count(export.analysis);
    for (size_t i = 0; !status && i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_analysis_stack_at(export.analysis, i);
        if (coffer__mlyze_row_bytes(row, export.what) > 0)
            put_row(&export, row, lines);
        status = coffer__mlyze_export_drain(&export, err);
    }
    if (!status)
        status = coffer__mlyze_export_commit(&export, err);
    coffer__mlyze_export_close(&export);
    return status;
}
