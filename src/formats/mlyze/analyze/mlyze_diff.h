/* Compares two traces by names, since their ids are unrelated. */
#ifndef COFFER_FORMATS_MLYZE_DIFF_H
#define COFFER_FORMATS_MLYZE_DIFF_H

#include "formats/mlyze/mlyze_private.h"

/* Numbers for the names of a table in both traces: equal names have equal numbers. */
typedef struct coffer__mlyze_name_numbers {
    uint32_t *by_side[2]; /* by trace and place in its table */
    uint32_t unknown;     /* for an id that the table does not list */
} coffer__mlyze_name_numbers;

typedef struct coffer__mlyze_side {
    const coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
} coffer__mlyze_side;

typedef struct coffer__mlyze_comparison {
    coffer_mlyze_diff_opts opts;
    coffer__mlyze_side side[2];
    coffer__mlyze_name_numbers functions, files;
} coffer__mlyze_comparison;

/* One stack, by its names, in both traces. */
typedef struct coffer__mlyze_match {
    uint64_t bytes[2], allocs[2];
    unsigned named_by; /* the trace that has the frames */
    size_t stack;      /* in that trace; SIZE_MAX = not listed */
} coffer__mlyze_match;

coffer_status coffer__mlyze_number_names(coffer__mlyze_comparison *cmp, coffer_error *err);
void coffer__mlyze_free_names(coffer__mlyze_comparison *cmp);
uint32_t coffer__mlyze_function_number(const coffer__mlyze_comparison *cmp, unsigned side, uint64_t id);
uint32_t coffer__mlyze_file_number(const coffer__mlyze_comparison *cmp, unsigned side, uint64_t id);

/* Every stack of either trace; coffer__free(). */
coffer_status coffer__mlyze_match_stacks(coffer__mlyze_match **out, size_t *count,
                                         const coffer__mlyze_comparison *cmp, coffer_error *err);

#endif
