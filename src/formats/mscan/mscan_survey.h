/* One parallel pass over the records: what `check` and `repair` need to know about them. */
#ifndef COFFER_FORMATS_MSCAN_SURVEY_H
#define COFFER_FORMATS_MSCAN_SURVEY_H

#include "coffer/progress.h"
#include "coffer/source.h"
#include "formats/mscan/mscan_metadata.h"

typedef struct coffer__mscan_survey_opts {
    coffer_source *source;
    uint64_t area, count;                   /* file offset of the first record, and how many */
    const coffer__mscan_metadata *metadata; /* NULL: no parameter is known and there are 0 tokens */
    bool columns;                           /* look at the values too */
    uint32_t threads;
    const coffer_progress *progress;
} coffer__mscan_survey_opts;

typedef struct coffer__mscan_survey {
    uint64_t unknown_count, unknown_first; /* records whose param_id has no name; index of the first */
    uint64_t past_count, past_first;       /* records whose token_idx is not below the total */
    uint32_t max_token;
    bool unsorted;                     /* token_idx decreases somewhere */
    uint64_t nonzero[2], saturated[2]; /* by coffer_mscan_metric; only with `columns` */
    uint64_t unknown_ids[65536 / 64];  /* one bit for each param_id */
} coffer__mscan_survey;

coffer_status coffer__mscan_survey_records(coffer__mscan_survey *out, const coffer__mscan_survey_opts *opts,
                                           coffer_error *err);

/* The smallest id >= from that is used without a name, or 65536. */
uint32_t coffer__mscan_next_unknown(const coffer__mscan_survey *survey, uint32_t from);

#endif
