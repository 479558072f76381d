/* Collapsed stacks: "main;work;grab 4096", outermost frame first, a stack a line. */
#include "convert/traces/mlyze_export.h"

#include <inttypes.h>

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
