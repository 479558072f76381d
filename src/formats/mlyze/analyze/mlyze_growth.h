/* Finds stacks that grow: a least-squares line through the live bytes of each stack at the ends of equal time
 * windows. Three sums per stack, for any number of windows. */
#ifndef COFFER_FORMATS_MLYZE_GROWTH_H
#define COFFER_FORMATS_MLYZE_GROWTH_H

#include "coffer/error.h"

#include <stdbool.h>

typedef struct coffer__mlyze_growth {
    uint32_t windows;
    double window_seconds; /* or events */
    bool by_events;
    uint32_t sampled; /* windows so far */
    double sum_x, sum_xx;
    double *sums; /* y, xy, yy of each row */
    size_t row_count, row_capacity;
} coffer__mlyze_growth;

void coffer__mlyze_growth_free(coffer__mlyze_growth *growth);
/* New rows were 0 in all earlier windows. */
coffer_status coffer__mlyze_growth_make_rows(coffer__mlyze_growth *growth, size_t count, coffer_error *err);
/* At the end of a window: first every row that is not 0, then the window. */
void coffer__mlyze_growth_sample(coffer__mlyze_growth *growth, size_t row, uint64_t live_bytes);
void coffer__mlyze_growth_end_window(coffer__mlyze_growth *growth);
/* Bytes per second and r²; 0 and 0 without a line. */
void coffer__mlyze_growth_fit(double *slope, double *fit, const coffer__mlyze_growth *growth, size_t row);

#endif
