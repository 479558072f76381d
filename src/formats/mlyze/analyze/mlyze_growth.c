#include "formats/mlyze/analyze/mlyze_growth.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

#define SUMS 3

void coffer__mlyze_growth_free(coffer__mlyze_growth *growth)
{
    coffer__free(growth->sums);
    memset(growth, 0, sizeof *growth);
}

coffer_status coffer__mlyze_growth_make_rows(coffer__mlyze_growth *growth, size_t count, coffer_error *err)
{
    if (count > growth->row_capacity) {
        size_t capacity = count + count / 2, bytes;
        double *larger = NULL;
        if (coffer__mul_size(&bytes, capacity, SUMS * sizeof *larger))
            larger = coffer__realloc(growth->sums, bytes);
        if (!larger)
            return coffer__fail_no_memory(err, (uint64_t)capacity * SUMS * sizeof *larger);
        growth->sums = larger;
        growth->row_capacity = capacity;
    }
    for (; growth->row_count < count; growth->row_count++) {
        for (size_t i = 0; i < SUMS; i++)
            growth->sums[growth->row_count * SUMS + i] = 0;
    }
    return COFFER_OK;
}

static double end_of_window(const coffer__mlyze_growth *growth)
{
    return (double)(growth->sampled + 1) * growth->window_seconds;
}

void coffer__mlyze_growth_sample(coffer__mlyze_growth *growth, size_t row, uint64_t live_bytes)
{
    double *sums = &growth->sums[row * SUMS], y = (double)live_bytes;
    sums[0] += y;
    sums[1] += end_of_window(growth) * y;
    sums[2] += y * y;
}

void coffer__mlyze_growth_end_window(coffer__mlyze_growth *growth)
{
    double x = end_of_window(growth);
    growth->sum_x += x;
    growth->sum_xx += x * x;
    growth->sampled++;
}

void coffer__mlyze_growth_fit(double *slope, double *fit, const coffer__mlyze_growth *growth, size_t row)
{
    *slope = *fit = 0;
    if (row >= growth->row_count)
        return;
    double n = growth->sampled, sum_y = growth->sums[row * SUMS];
    double xx = n * growth->sum_xx - growth->sum_x * growth->sum_x;
    double xy = n * growth->sums[row * SUMS + 1] - growth->sum_x * sum_y;
    double yy = n * growth->sums[row * SUMS + 2] - sum_y * sum_y;
    /* Differences of equal numbers are rounding errors. */
    if (xx <= 0 || yy <= n * growth->sums[row * SUMS + 2] * 1e-12)
        return;
    *slope = xy / xx;
    *fit = xy * xy / (xx * yy);
    if (*fit > 1)
        *fit = 1;
}
