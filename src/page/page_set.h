/* State and functions that the files of the page of sets share. */
#ifndef COFFER_PAGE_PAGE_SET_H
#define COFFER_PAGE_PAGE_SET_H

#include "coffer/mldf_analyze.h"
#include "page/page.h"

#include <stdio.h>

typedef struct coffer__page_set_state {
    coffer_mldf *sets[2];
    coffer_mldf_stats *stats[2];
    size_t count;
    uint64_t *damaged; /* samples of the first set that cannot be read completely, ascending */
    uint64_t damaged_count;
    bool is_verified; /* every value was read for `damaged` */
} coffer__page_set_state;

/* The samples that a page shows. */
typedef struct coffer__page_gallery {
    coffer_chunks *chunks;
    const coffer_mldf *set;
    uint32_t detail;
    coffer_bytes bytes; /* memory that is reused for every value */
    uint64_t *numbers;  /* of the samples */
    size_t count;
} coffer__page_gallery;

/* "samples.…": evenly chosen samples and their values as text; pictures, sounds and arrays of the first field
 * of each kind. */
coffer_status coffer__page_add_samples(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                                       coffer_error *err);
/* "pictures.…" of a field: thumbnails. */
void coffer__page_add_pictures(coffer__page_gallery *gallery, size_t field);
/* "sounds.…" of a field: waves to draw, and bytes to play. */
void coffer__page_add_sounds(coffer__page_gallery *gallery, size_t field);
/* "arrays.…" of a field: grids of means. */
void coffer__page_add_arrays(coffer__page_gallery *gallery, size_t field);

/* Finds the samples that cannot be read. Reads every value: not in a set that is larger than the page may
 * read. */
coffer_status coffer__page_find_damage(coffer__page_set_state *page, const coffer_chunks *chunks,
                                       coffer_error *err);
/* Covers all samples: "columns.N", the numbers of a field; "order.sample", how a training run reads
 * them; "damaged.…". */
coffer_status coffer__page_add_whole(coffer_chunks *chunks, const coffer__page_set_state *page,
                                     uint32_t detail, coffer_error *err);

#endif
