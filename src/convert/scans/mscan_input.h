/* Rows that become records of a scan, from wherever they come: what the conversions to mscan share. */
#ifndef COFFER_CONVERT_MSCAN_INPUT_H
#define COFFER_CONVERT_MSCAN_INPUT_H

#include "coffer/limits.h"
#include "coffer/source.h"
#include "convert/scans/mscan_fields.h"
#include "outside/text/number.h"

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

#endif
