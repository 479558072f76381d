/* Which stacks hold more and more: a straight line through the live bytes of each stack at the ends of equal
 * windows of time, by least squares. Three sums for each stack, however many windows. */
#ifndef COFFER_FORMATS_MLYZE_GROWTH_H
#define COFFER_FORMATS_MLYZE_GROWTH_H

#include "coffer/error.h"

typedef struct coffer__mlyze_growth {
    uint32_t windows;
    double window_seconds;
    uint32_t sampled; /* windows so far */
    double sum_x, sum_xx;
    double *sums; /* y, xy, yy of each row */
    size_t row_count, row_capacity;
} coffer__mlyze_growth;

void coffer__mlyze_growth_free(coffer__mlyze_growth *growth);
/* Rows that are not known yet were 0 at the ends of all windows before. */
coffer_status coffer__mlyze_growth_make_rows(coffer__mlyze_growth *growth, size_t count, coffer_error *err);
/* One window ends: first every row that is not 0, then the window. */
void coffer__mlyze_growth_sample(coffer__mlyze_growth *growth, size_t row, uint64_t live_bytes);
void coffer__mlyze_growth_end_window(coffer__mlyze_growth *growth);
/* bytes a second and r²; 0 and 0 when there is no line. */
void coffer__mlyze_growth_fit(double *slope, double *fit, const coffer__mlyze_growth *growth, size_t row);

#endif
