/* The values of a matrix as lines of numbers. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_export.h"
#include "convert/matrices/pycauset_values.h"
#include "outside/text/number.h"

#include <string.h>

/* Values that are written out together. */
#define PIECE 4096

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

static coffer_status write_tile(coffer__sink *sink, const coffer__pycauset_export *export,
                                const uint8_t *values, const coffer_pycauset_tile *tile, char delimiter,
                                char *text, coffer_error *err)
{
    size_t size = coffer_dtype_size(export->dtype);
    uint64_t end_col = export->selection.col + export->selection.cols, col = tile->col;
    uint64_t count = tile->rows * tile->cols;
    char *to = text;
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && i < count; i++) {
        to = coffer__pycauset_put_value(to, values + i * size, export->dtype);
        *to++ = ++col == end_col ? '\n' : delimiter;
        if (col == tile->col + tile->cols)
            col = tile->col;
        if ((i + 1) % PIECE == 0 || i + 1 == count) {
            status = coffer__sink_write(sink, text, (size_t)(to - text), err);
            to = text;
        }
    }
    return status;
}

static coffer_status write_lines(coffer__sink *sink, coffer__pycauset_export *export, coffer_error *err)
{
    const size_t text_size = (size_t)PIECE * (COFFER__PYCAUSET_VALUE_TEXT + 1);
    char delimiter;
    coffer_status status = coffer__pycauset_delimiter(&delimiter, export->job, err);
    if (!status && coffer__job_has(export->job, "header"))
        status = write_names(sink, export, delimiter, err);
    if (status)
        return status;
    char *text = coffer__malloc(text_size);
    if (!text)
        return coffer__fail_no_memory(err, text_size);
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        status = coffer__pycauset_export_next(&values, &tile, export, err);
        if (!status && values)
            status = write_tile(sink, export, values, &tile, delimiter, text, err);
        if (status || !values)
            break;
    }
    coffer__free(text);
    return status;
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
