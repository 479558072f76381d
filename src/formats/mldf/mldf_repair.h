/* A repair under way. */
#ifndef COFFER_FORMATS_MLDF_REPAIR_H
#define COFFER_FORMATS_MLDF_REPAIR_H

#include "base/report.h"
#include "formats/mldf/analyze/mldf_survey.h"
#include "formats/mldf/write/mldf_write.h"

typedef struct coffer__mldf_rescue {
    coffer_report *report;
    const coffer_mldf_repair_opts *opts;
    coffer_mldf set;  /* as much of it as is there; its samples are those whose rows are */
    uint64_t samples; /* that the header says */
    bool *renamed;    /* fields whose names could not stay */
    /* The allocation table, sorted by offset. */
    coffer__mldf_allocation *table;
    size_t table_count;
    bool table_in_order; /* nothing of it is plainly wrong */
    bool table_sure;     /* and its sum is right: what is not in it is not there */
    bool keeps_numbers;  /* encrypted for their numbers and no key: samples stay, damaged values are absent */
    coffer_mldf_writer *writer;
    coffer__mldf_surveyor surveyor;
    coffer__mldf_row_reader rows;
    coffer_bytes stored, scratch;
    uint64_t lost, fetched; /* samples */
} coffer__mldf_rescue;

/* Reads the allocation table, in whatever state it is. */
coffer_status coffer__mldf_rescue_table(coffer__mldf_rescue *work, coffer_error *err);
/* Writes every sample that can be saved. */
coffer_status coffer__mldf_rescue_samples(coffer__mldf_rescue *work, coffer_error *err);

#endif
