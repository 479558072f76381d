/* Going through the records of a scan to write them elsewhere: what the conversions from mscan share. */
#ifndef COFFER_CONVERT_MSCAN_EXPORT_H
#define COFFER_CONVERT_MSCAN_EXPORT_H

#include "convert/convert.h"
#include "convert/scans/mscan_fields.h"
#include "formats/mscan/mscan_select.h"
#include "io/sink.h"

#define COFFER__MSCAN_EXPORT_BATCH 16384 /* records at a time */

typedef struct coffer__mscan_export {
    const coffer__convert_job *job;
    coffer_mscan *scan;
    coffer__mscan_selection selection;
    coffer__mscan_field fields[COFFER__MSCAN_FIELDS]; /* what is written, in this order */
    size_t field_count;
    bool real; /* activation and grad_norm in real units */
    uint64_t done;
    uint8_t *fetched, *packed;
} coffer__mscan_export;

/* Opens the scan and understands the settings. */
coffer_status coffer__mscan_export_open(coffer__mscan_export *out, const coffer__convert_job *job,
                                        coffer_error *err);
void coffer__mscan_export_close(coffer__mscan_export *export);

/* The next selected records, packed and borrowed until the next call. *records is NULL at the end; *count may
 * be 0 before it. */
coffer_status coffer__mscan_export_next(const uint8_t **records, size_t *count, coffer__mscan_export *export,
                                        coffer_error *err);
/* How many are selected in all. Reads them where only reading can tell. */
coffer_status coffer__mscan_export_count(uint64_t *count, coffer__mscan_export *export, coffer_error *err);
/* Activation or grad_norm of a record in real units. */
coffer_status coffer__mscan_export_real(double *out, const coffer__mscan_export *export,
                                        const uint8_t *record, coffer__mscan_field field, coffer_error *err);
static inline bool coffer__mscan_export_is_real(const coffer__mscan_export *export, coffer__mscan_field field)
{
    return export->real && (field == COFFER__MSCAN_ACTIVATION || field == COFFER__MSCAN_GRAD_NORM);
}

/* A new output of the job. */
coffer_status coffer__mscan_export_create(coffer__sink **out, const coffer__mscan_export *export,
                                          const char *path, coffer_error *err);
/* Commits the outputs, and with them the metadata where a file for it is asked for. Frees the sinks and sets
 * them to NULL, whether it succeeds or not. */
coffer_status coffer__mscan_export_commit(coffer__sink **sinks, size_t count,
                                          const coffer__mscan_export *export, coffer_error *err);

#endif
