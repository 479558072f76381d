/* Making a scan out of rows, in two passes: the first learns what the metadata has to say before a record can
 * be written (names, tokens, scales), the second writes. Memory does not depend on the number of rows. */
#ifndef COFFER_CONVERT_MSCAN_IMPORT_H
#define COFFER_CONVERT_MSCAN_IMPORT_H

#include "convert/convert.h"
#include "convert/scans/mscan_input.h"
#include "formats/mscan/mscan_compose.h"
#include "formats/mscan/mscan_private.h"

/* The tokens that rows of one sequence have. */
typedef struct coffer__mscan_span {
    uint64_t first, last;
    bool seen;
} coffer__mscan_span;

typedef struct coffer__mscan_import {
    const coffer__convert_job *job;
    coffer__mscan_input_opener open;
    bool has_metadata;           /* from a file; else it is made */
    bool quantize;               /* activation and grad_norm come in real units */
    coffer__mscan_metadata base; /* from the file, or of an empty scan */
    coffer__mscan_names names;

    /* Learned in the first pass. */
    uint64_t rows;
    uint64_t tokens;        /* one more than the largest token_idx */
    double low[2], high[2]; /* by metric, when quantizing */
    uint64_t used[COFFER__MSCAN_PARAM_IDS / 64];
    coffer__mscan_span *spans; /* by sequence, when the rows say it */
    size_t span_count, span_capacity;

    coffer_mscan target; /* the scan to be: its metadata alone */
} coffer__mscan_import;

/* The first pass. */
coffer_status coffer__mscan_import_survey(coffer__mscan_import *import, coffer_error *err);
/* From base and what was learned to the metadata of the new scan. */
coffer_status coffer__mscan_import_compose(coffer__buffer *json, coffer__mscan_import *import,
                                           coffer_error *err);

/* ---- One row ---- */

/* Fails with the place of the row in front: "line 7, column activation: …". */
coffer_status coffer__mscan_import_fail(coffer_error *err, coffer_status status,
                                        const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                        coffer__mscan_field field, const char *format, ...)
    COFFER_PRINTF(6, 7);
/* The value as a whole number up to max. */
coffer_status coffer__mscan_import_whole(uint64_t *out, const coffer__mscan_input *input,
                                         const coffer__mscan_input_row *row, coffer__mscan_field field,
                                         uint64_t max, coffer_error *err);
/* The parameter, by id or by name; a name that is new gets an id. */
coffer_status coffer__mscan_import_param(uint16_t *out, coffer__mscan_import *import,
                                         const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                         coffer_error *err);
/* Says how far a pass is. */
coffer_status coffer__mscan_import_progress(const coffer__mscan_import *import, unsigned pass,
                                            const coffer__mscan_input_row *row, coffer_error *err);

#endif
