/* Imports of scans: the rows they read, and the two passes over them. */
#ifndef COFFER_CONVERT_MSCAN_IMPORT_H
#define COFFER_CONVERT_MSCAN_IMPORT_H

#include "base/buffer.h"
#include "base/table.h"
#include "coffer/limits.h"
#include "coffer/source.h"
#include "convert/convert.h"
#include "convert/scans/mscan_export.h"
#include "outside/text/number.h"

/* Rows that become records of a scan, from wherever they come: what the conversions to mscan share. */
typedef struct coffer__mscan_input_row {
    coffer__number value[COFFER__MSCAN_FIELDS]; /* of the fields that there are, the name excepted */
    const char *param_name;                     /* borrowed until the next row, not NUL-terminated */
    size_t param_name_len;
    uint64_t place;  /* number of the line or row, from 1, for messages */
    uint64_t offset; /* in the file */
} coffer__mscan_input_row;

typedef struct coffer__mscan_input {
    const char *place_name;         /* what `place` counts: "line" or "row" */
    bool has[COFFER__MSCAN_FIELDS]; /* which fields every row has */
    void *state;
    coffer_status (*next)(bool *more, coffer__mscan_input_row *row, struct coffer__mscan_input *rows,
                          coffer_error *err);
    void (*close)(void *state);
} coffer__mscan_input;

/* Opens a file of rows; closed by out->close(out->state). */
typedef coffer_status (*coffer__mscan_input_opener)(coffer__mscan_input *out, coffer_source *src,
                                                    const coffer_limits *limits, coffer_error *err);
coffer_status coffer__mscan_input_from_npy(coffer__mscan_input *out, coffer_source *src,
                                           const coffer_limits *limits, coffer_error *err);
coffer_status coffer__mscan_input_from_csv(coffer__mscan_input *out, coffer_source *src,
                                           const coffer_limits *limits, coffer_error *err);
coffer_status coffer__mscan_input_from_jsonl(coffer__mscan_input *out, coffer_source *src,
                                             const coffer_limits *limits, coffer_error *err);

/* Notes a column by its name; fails for one that is not known or stands twice. */
coffer_status coffer__mscan_input_add(coffer__mscan_field *field, coffer__mscan_input *rows, const char *name,
                                      size_t len, coffer_error *err);
/* Fails when a column that a record needs was not added. */
coffer_status coffer__mscan_input_complete(const coffer__mscan_input *rows, coffer_error *err);

/* Imports rows as a scan in two passes: the first collects what the metadata needs (names, tokens, scales),
 * the second writes the records. Memory does not depend on the number of rows. */

/* The tokens that rows of one sequence have. */
typedef struct coffer__mscan_span {
    uint64_t first, last;
    bool seen;
} coffer__mscan_span;

typedef struct coffer__mscan_import {
    const coffer__convert_job *job;
    coffer__mscan_input_opener open;
    char *metadata;   /* from a file; NULL = composed from the rows */
    bool quantize[2]; /* by metric: the values are in real units */
    /* The metadata alone: names, sequences and scales. From the file, or made after the first pass. */
    coffer_mscan *scan;
    coffer__id_names names;

    /* Collected by the first pass. */
    uint64_t rows;
    uint64_t tokens;        /* one more than the largest token_idx */
    double low[2], high[2]; /* by metric, when quantizing */
    uint64_t used[COFFER__MSCAN_IDS / 64];
    coffer__mscan_span *spans; /* by sequence, when the rows say it */
    size_t span_count, span_capacity;
} coffer__mscan_import;

/* The first pass. */
coffer_status coffer__mscan_import_survey(coffer__mscan_import *import, coffer_error *err);
/* Names the parameters that the rows use, and composes the metadata unless it came from a file. */
coffer_status coffer__mscan_import_compose(coffer__mscan_import *import, coffer_error *err);

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
/* Reports progress. */
coffer_status coffer__mscan_import_progress(const coffer__mscan_import *import, unsigned pass,
                                            const coffer__mscan_input_row *row, coffer_error *err);

#endif
