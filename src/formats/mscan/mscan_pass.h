/* Selection of records by parameter name, token range and sequence, and one pass over the selected ones on
 * several threads, in pieces that fit a cache. */
#ifndef COFFER_FORMATS_MSCAN_PASS_H
#define COFFER_FORMATS_MSCAN_PASS_H

#include "coffer/progress.h"
#include "coffer/source.h"
#include "formats/mscan/mscan_metadata.h"
#include "formats/mscan/mscan_private.h"

typedef struct coffer__mscan_selection {
    const coffer_mscan *scan;
    uint64_t first, count; /* the records that may be selected: all others are not */
    bool sorted;           /* token_idx never decreases; found out only where it was needed, else false */
    bool by_token;         /* the tokens below must still be compared, record by record */
    bool by_param;         /* so must the parameters */
    uint64_t token_begin, token_end;
    uint64_t params[COFFER__MSCAN_PARAM_IDS / 64]; /* a bit for each param_id */
} coffer__mscan_selection;

/* Tokens [begin, end); param_glob may be NULL; sequence is an index or COFFER_INDEX_NONE. When the tokens are
 * a part of the scan, this finds out whether they are sorted. */
coffer_status coffer__mscan_select(coffer__mscan_selection *out, const coffer_mscan *scan,
                                   const char *param_glob, uint64_t begin, uint64_t end, size_t sequence,
                                   coffer_error *err);
/* The selection of a query. */
coffer_status coffer__mscan_select_query(coffer__mscan_selection *out, const coffer_mscan *scan,
                                         const coffer_mscan_stats_opts *query, coffer_error *err);

static inline bool coffer__mscan_has_param(const coffer__mscan_selection *selection, uint16_t param_id)
{
    return selection->params[param_id / 64] >> (param_id % 64) & 1;
}

/* Whether records must go through coffer__mscan_pack before they are used. */
static inline bool coffer__mscan_must_pack(const coffer__mscan_selection *selection)
{
    return selection->by_token || selection->by_param;
}

/* ---- The pass ---- */

/* Takes in packed records. Calls with the same worker never overlap. */
typedef void (*coffer__mscan_visit)(void *context, uint32_t worker, const uint8_t *records, size_t count);

typedef struct coffer__mscan_pass {
    const coffer__mscan_selection *selection;
    uint32_t threads; /* from coffer__mscan_pass_threads */
    const coffer_progress *progress;
    coffer__mscan_visit visit;
    void *context;
    /* Gives the first token after the group that a token belongs to. When set, all records of a group go to
     * one worker, so that workers can share a table without locks. The tokens must be sorted. */
    uint64_t (*group_end)(void *context, uint32_t token);
} coffer__mscan_pass;

/* How many threads are worth it for these records: `wanted` (0 = one per core), never more than `most`, at
 * least 1. */
uint32_t coffer__mscan_pass_threads(const coffer__mscan_selection *selection, uint32_t wanted, uint64_t most);
/* Working memory of a pass for each thread. */
#define COFFER__MSCAN_PASS_BYTES ((size_t)2 * 16384 * COFFER__MSCAN_RECORD_SIZE)

coffer_status coffer__mscan_pass_run(const coffer__mscan_pass *pass, coffer_error *err);

/* One parallel pass over the records: what `check` and `repair` need to know about them. */
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
