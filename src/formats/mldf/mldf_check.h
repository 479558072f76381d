/* A check under way: what its parts share. Each part adds findings and fails only when it cannot continue. */
#ifndef COFFER_FORMATS_MLDF_CHECK_H
#define COFFER_FORMATS_MLDF_CHECK_H

#include "base/report.h"
#include "formats/mldf/analyze/mldf_survey.h"

typedef struct coffer__mldf_checker {
    coffer_report *report;
    const coffer_check_opts *opts;
    coffer__pool *pool;
    coffer_mldf set; /* as an open one, but only as far as the parts below are there */
    bool has_data, has_table, has_schema, has_rows;
    bool table_in_order; /* sorted, inside the data region, nothing overlaps */
} coffer__mldf_checker;

/* Every entry of the allocation table, and whether payloads share bytes with the other parts. */
coffer_status coffer__mldf_check_allocations(coffer__mldf_checker *check, coffer_error *err);
/* The header against its copy, the bytes that no other sum covers, and what a repair could not verify. */
coffer_status coffer__mldf_check_guard(coffer__mldf_checker *check, coffer_error *err);
/* Sums of the tables, and, when all is read or it costs next to nothing, of the payloads. */
coffer_status coffer__mldf_check_sums(coffer__mldf_sums *sums, bool *known, coffer__mldf_checker *check,
                                      coffer_error *err);
/* Every row, and with `full` the values. sums : NULL when they are unknown. */
coffer_status coffer__mldf_check_samples(coffer__mldf_checker *check, const coffer__mldf_sums *sums,
                                         coffer_error *err);

#endif
