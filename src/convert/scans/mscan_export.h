/* Shared by the conversions from mscan: settings, selected records, outputs. */
#ifndef COFFER_CONVERT_MSCAN_EXPORT_H
#define COFFER_CONVERT_MSCAN_EXPORT_H

#include "coffer/mscan.h"
#include "convert/convert.h"
#include "io/sink.h"

/* The columns of a scan as other formats see them. */
#define COFFER__MSCAN_IDS 65536 /* values of param_id */

typedef enum coffer__mscan_field {
    COFFER__MSCAN_TOKEN_IDX = 0,
    COFFER__MSCAN_PARAM_ID,
    COFFER__MSCAN_BLOCK_IDX,
    COFFER__MSCAN_ACTIVATION,
    COFFER__MSCAN_GRAD_NORM,
    COFFER__MSCAN_STORED_FIELDS, /* a record has the fields above; those below are derived */
    COFFER__MSCAN_PARAM_NAME = COFFER__MSCAN_STORED_FIELDS,
    COFFER__MSCAN_SEQUENCE,
    COFFER__MSCAN_FIELDS
} coffer__mscan_field;

/* "token_idx" … "sequence" */
extern const char *const coffer__mscan_field_names[COFFER__MSCAN_FIELDS];
/* COFFER__MSCAN_FIELDS when the name is unknown. */
coffer__mscan_field coffer__mscan_field_find(const char *name, size_t len);
static inline uint32_t coffer__mscan_field_value(const coffer_mscan_record *record, coffer__mscan_field field)
{
    switch (field) {
    case COFFER__MSCAN_TOKEN_IDX:
        return record->token_idx;
    case COFFER__MSCAN_PARAM_ID:
        return record->param_id;
    case COFFER__MSCAN_BLOCK_IDX:
        return record->block_idx;
    case COFFER__MSCAN_ACTIVATION:
        return record->activation;
    default:
        return record->grad_norm;
    }
}

#define COFFER__MSCAN_EXPORT_BATCH 16384 /* records at a time */

typedef struct coffer__mscan_real {
    const coffer_mscan_quantization *scale; /* what it was computed with; NULL = not yet */
    double value;
} coffer__mscan_real;

typedef struct coffer__mscan_export {
    const coffer__convert_job *job;
    coffer_mscan *scan;
    uint64_t first, record_count; /* all selected records are in this range */
    bool by_token, by_param;      /* compare the tokens and parameters of each record */
    uint64_t token_begin, token_end;
    uint64_t params[COFFER__MSCAN_IDS / 64];          /* one bit for each param_id */
    coffer__mscan_field fields[COFFER__MSCAN_FIELDS]; /* the output columns, in this order */
    size_t field_count;
    bool real[2];               /* by metric: in real units */
    coffer__mscan_real *values; /* real values that were computed already: by metric and stored integer */
    uint64_t done;
    coffer_mscan_record *records; /* the current batch */
} coffer__mscan_export;

/* Opens the scan and parses the settings. */
coffer_status coffer__mscan_export_open(coffer__mscan_export *out, const coffer__convert_job *job,
                                        coffer_error *err);
void coffer__mscan_export_close(coffer__mscan_export *export);

/* The next selected records, borrowed until the next call. *records is NULL at the end; *count may be 0
 * before it. */
coffer_status coffer__mscan_export_next(const coffer_mscan_record **records, size_t *count,
                                        coffer__mscan_export *export, coffer_error *err);
/* Counts the selected records; reads them if a filter needs it. */
coffer_status coffer__mscan_export_count(uint64_t *count, coffer__mscan_export *export, coffer_error *err);
/* Activation or grad_norm of a record in real units, as the decimal number with the fewest digits. */
coffer_status coffer__mscan_export_real(double *out, coffer__mscan_export *export,
                                        const coffer_mscan_record *record, coffer__mscan_field field,
                                        coffer_error *err);
static inline bool coffer__mscan_export_is_real(const coffer__mscan_export *export, coffer__mscan_field field)
{
    return (field == COFFER__MSCAN_ACTIVATION && export->real[COFFER_MSCAN_ACTIVATION]) ||
           (field == COFFER__MSCAN_GRAD_NORM && export->real[COFFER_MSCAN_GRAD_NORM]);
}

/* A new output of the job. */
coffer_status coffer__mscan_export_create(coffer__sink **out, const coffer__mscan_export *export,
                                          const char *path, coffer_error *err);
/* Commits the outputs, and the metadata if a file for it was requested. Frees the sinks and sets them to
 * NULL, also on failure. */
coffer_status coffer__mscan_export_commit(coffer__sink **sinks, size_t count,
                                          const coffer__mscan_export *export, coffer_error *err);

#endif
