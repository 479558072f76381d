/* A repair under way. */
#ifndef COFFER_FORMATS_MLDF_REPAIR_H
#define COFFER_FORMATS_MLDF_REPAIR_H

#include "base/report.h"
#include "formats/mldf/analyze/mldf_survey.h"
#include "formats/mldf/write/mldf_write.h"

/* Rows [first, first + count) that recovery blocks have, at this place of `rows`. */
typedef struct coffer__mldf_stretch {
    uint64_t first, count, at;
} coffer__mldf_stretch;

typedef struct coffer__mldf_recovered {
    coffer__mldf_spill rows;
    coffer__mldf_stretch *stretches; /* by first sample */
    size_t stretch_count, stretch_capacity;
    coffer__mldf_allocation *entries;
    size_t entry_count, entry_capacity;
    uint64_t end;    /* after the last sample */
    uint64_t wasted; /* bytes of bodies that were read and are not those of a block */
    uint64_t unpacked;
} coffer__mldf_recovered;

typedef struct coffer__mldf_rescue {
    coffer_report *report;
    const coffer_mldf_repair_opts *opts;
    coffer_mldf set;  /* as much of it as is there; its samples are those whose rows are */
    uint64_t samples; /* that the header says */
    bool *renamed;    /* fields whose names could not stay */
    bool header_restored;
    bool fields_wrong; /* the descriptors are not those that were written, and no copy confirms them */
    bool region_wrong; /* the file has a checksum of the data region alone, and it is wrong */
    /* The allocation table, sorted by offset. */
    coffer__mldf_allocation *table;
    size_t table_count;
    bool table_in_order; /* nothing of it is plainly wrong */
    bool table_sure;     /* and its sum is right: what is not in it is not there */
    bool keeps_numbers;  /* encrypted for their numbers and no key: samples stay, damaged values are absent */
    coffer_mldf_writer *writer;
    coffer__mldf_surveyor surveyor;
    coffer__mldf_row_reader rows;
    coffer__mldf_recovered recovered;
    uint8_t *row;             /* the one at hand */
    bool *in_use;             /* by entry of the table: a sample that was kept has this payload */
    coffer__mldf_mark *marks; /* of an earlier repair */
    size_t mark_count;
    coffer_bytes stored, scratch;
    uint64_t lost, fetched;        /* samples */
    uint64_t restored, unverified; /* rows that came from recovery blocks; rows that nothing vouches for */
    uint64_t values_lost;
} coffer__mldf_rescue;

/* Finds the recovery blocks (mldf_recover.c). */
coffer_status coffer__mldf_recover(coffer__mldf_rescue *work, coffer_error *err);
/* The row of a sample as a recovery block has it; *found is false when no block does. */
coffer_status coffer__mldf_recovered_row(bool *found, uint8_t *row, const coffer__mldf_rescue *work,
                                         uint64_t sample, coffer_error *err);
void coffer__mldf_recovered_free(coffer__mldf_recovered *recovered);

/* Reads the allocation table, in whatever state it is. */
coffer_status coffer__mldf_rescue_table(coffer__mldf_rescue *work, coffer_error *err);
/* Writes every sample that can be saved. */
coffer_status coffer__mldf_rescue_samples(coffer__mldf_rescue *work, coffer_error *err);

#endif
