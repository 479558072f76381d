/* Going over all of a set: sums of payloads, rows, and what the values hold. Work is split into pieces that
 * run on all threads; what is found does not depend on their timing. */
#ifndef COFFER_FORMATS_MLDF_SURVEY_H
#define COFFER_FORMATS_MLDF_SURVEY_H

#include "base/work.h"
#include "formats/mldf/mldf_private.h"

/* ---- Contents (mldf_content.c): errors have no place and do not name the sample ---- */

coffer_status coffer__mldf_check_content(const coffer_mldf_field *field, const coffer_mldf_entry *entry,
                                         const uint8_t *bytes, size_t size, const coffer_limits *limits,
                                         coffer_error *err);
/* True when the type constrains the bytes of its values. */
bool coffer__mldf_has_content_rule(const coffer_mldf_field *field);
/* The numbers in a row entry that only have a few values. */
coffer_status coffer__mldf_check_entry_values(const coffer_mldf_field *field, const coffer_mldf_entry *entry,
                                              coffer_error *err);

/* ---- Work in pieces ---- */

/* Runs task for [0, count), a batch at a time, with a call of the progress in between. */
coffer_status coffer__mldf_run_pieces(coffer__pool *pool, uint64_t count, coffer__pool_task task,
                                      void *context, const coffer_progress *progress, coffer_error *err);

/* Rows in memory: those of samples [first, first + count). */
typedef struct coffer__mldf_rows {
    const uint8_t *bytes;
    uint64_t first;
    size_t count;
} coffer__mldf_rows;

uint64_t coffer__mldf_row_pieces(const coffer_mldf *set);
/* The rows of a piece: borrowed, or read into scratch. */
coffer_status coffer__mldf_fetch_rows(coffer__mldf_rows *out, const coffer_mldf *set, uint64_t piece,
                                      coffer_bytes *scratch, coffer_error *err);

/* ---- Sums (mldf_survey.c) ---- */

/* One bit for each allocation: its sum is wrong. */
typedef struct coffer__mldf_sums {
    _Atomic(uint64_t) *bad;
    uint64_t bad_count;
    uint32_t data_crc;              /* of the data region up to the end of the last payload */
    uint32_t data_crc_to_next_part; /* the same with the padding after it */
} coffer__mldf_sums;

/* The table is sorted and inside the file. Without checksums in the file nothing is bad. */
coffer_status coffer__mldf_survey_sums(coffer__mldf_sums *out, const coffer_mldf *set, coffer__pool *pool,
                                       const coffer_progress *progress, coffer_error *err);
void coffer__mldf_sums_free(coffer__mldf_sums *sums);

/* ---- Values ---- */

typedef struct coffer__mldf_survey {
    const coffer_mldf *set;
    bool use_table;                /* it is sorted: payloads are looked up in it */
    bool decode;                   /* compressed and encrypted payloads, where the key is there */
    bool entries;                  /* row entries say only what they may */
    bool contents;                 /* values are compared with their types, coded ones only with `decode` */
    const coffer__mldf_sums *sums; /* NULL = not known */
    /* By allocation: a mark of the field whose value was found right there, so that a payload that many
     * samples share is decoded once; NULL = not kept. */
    _Atomic(uint32_t) *seen;
} coffer__mldf_survey;

/* State of one thread; zeros to begin with. */
typedef struct coffer__mldf_surveyor {
    uint64_t hint; /* the allocation after the one that was looked up last */
    coffer__mldf_decoder *decoder;
    coffer_bytes stored, value, rows;
} coffer__mldf_surveyor;

coffer_status coffer__mldf_survey_begin(coffer__mldf_survey *survey, coffer_error *err);
void coffer__mldf_survey_end(coffer__mldf_survey *survey);
void coffer__mldf_surveyor_free(coffer__mldf_surveyor *surveyor, const coffer_mldf *set);
/* The first thing that is wrong with a value, without the name of the sample in the text. Failures that are
 * not about the file are passed on as they are. */
coffer_status coffer__mldf_survey_value(const coffer__mldf_survey *survey, coffer__mldf_surveyor *surveyor,
                                        uint64_t sample, size_t field, const coffer_mldf_entry *entry,
                                        coffer_error *err);

#endif
