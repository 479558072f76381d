/* The values of a matrix as lines of numbers. */
#include "convert/matrices/pycauset_export.h"
#include "convert/matrices/pycauset_values.h"
#include "convert/text_out.h"
#include "outside/text/number.h"

static coffer_status write_names(coffer__sink *sink, const coffer__pycauset_export *export, char delimiter,
                                 coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const coffer_pycauset_tile *tile = &export->selection;
    for (uint64_t i = 0; !status && i < tile->cols; i++) {
        char name[COFFER__DECIMAL_U64 + 2] = "c";
        char *end = coffer__put_u64(name + 1, tile->col + i);
        *end++ = i + 1 < tile->cols ? delimiter : '\n';
        status = coffer__sink_write(sink, name, (size_t)(end - name), err);
    }
    return status;
}

typedef struct line_export {
    coffer__pycauset_export *common;
    char delimiter;
    const uint8_t *values;
    coffer_pycauset_tile tile;
} line_export;

static coffer_status next_tile(void *context, uint64_t *items, coffer_error *err)
{
    line_export *export = context;
    coffer_status status = coffer__pycauset_export_next(&export->values, &export->tile, export->common, err);
    *items = !status && export->values ? export->tile.rows * export->tile.cols : 0;
    return status;
}

static coffer_status put_lines(void *context, coffer__buffer *text, uint64_t first, uint64_t count,
                               uint32_t worker, coffer_error *err)
{
    const line_export *export = context;
    const coffer_pycauset_tile *tile = &export->tile, *all = &export->common->selection;
    bool ends_line = tile->col + tile->cols == all->col + all->cols;
    (void)worker, (void)err;
    for (uint64_t end = first + count; first < end;) {
        uint64_t left = tile->cols - first % tile->cols, some = end - first < left ? end - first : left;
        coffer__pycauset_put_values(text, export->values, first, (size_t)some, export->common->dtype,
                                    export->delimiter);
        if (some == left && ends_line && !text->failed)
            text->data[text->len - 1] = '\n';
        first += some;
    }
    return COFFER_OK;
}

static coffer_status write_lines(coffer__sink *sink, coffer__pycauset_export *common, coffer_error *err)
{
    line_export export = { .common = common };
    const coffer__text_out out = { common->selection.rows * common->selection.cols,
                                   COFFER__PYCAUSET_TEXT_PIECE, next_tile, put_lines };
    coffer_status status = coffer__pycauset_delimiter(&export.delimiter, common->job, err);
    if (!status && coffer__job_has(common->job, "header"))
        status = write_names(sink, common, export.delimiter, err);
    return status ? status : coffer__text_out_run(sink, &out, &export, err);
}

coffer_status coffer__pycauset_to_csv(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "CSV", false, false };
    coffer__pycauset_export export;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__pycauset_export_open(&export, job, &target, err);
    if (status)
        return status;
    status = coffer__pycauset_export_create(&sink, &export, err);
    if (!status)
        status = write_lines(sink, &export, err);
    if (status)
        coffer__sink_discard(sink);
    else
        status = coffer__pycauset_export_commit(sink, &export, err);
    coffer__pycauset_export_close(&export);
    return status;
}
