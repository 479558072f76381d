/* State and functions that the files of the page of sets share. */
#ifndef COFFER_PAGE_PAGE_SET_H
#define COFFER_PAGE_PAGE_SET_H

#include "coffer/mldf.h"
#include "page/page.h"

#include <stdio.h>

typedef struct coffer__page_set_state {
    coffer_mldf *sets[2];
    coffer_mldf_stats *stats[2];
    size_t count;
} coffer__page_set_state;

/* "samples.number", "samples.value.N", and thumbnails of the first field with pictures.
 * whole : with texts of up to 64 KiB and large pictures, for a few samples. */
void coffer__page_put_samples(coffer_chunks *chunks, const coffer_mldf *set, const uint64_t *samples,
                              size_t count, bool whole);
/* "samples.…": evenly chosen samples, their values as text, and thumbnails of the first field with pictures.
 */
coffer_status coffer__page_add_samples(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                                       coffer_error *err);

#endif
