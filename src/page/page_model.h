/* The parts of the page of a model: pictures of tensors, comparison, texts. */
#ifndef COFFER_PAGE_PAGE_MODEL_H
#define COFFER_PAGE_PAGE_MODEL_H

#include "coffer/mcf.h"
#include "coffer/tensors.h"
#include "page/page.h"

/* A tensor as a grid of means: its first dimension down, all others across. */
typedef struct coffer__page_map {
    uint32_t tensor, width, height;
    float *cells;
} coffer__page_map;

typedef struct coffer__page_maps {
    coffer__page_map *list; /* the largest tensors, largest first */
    size_t count;
    size_t skipped; /* tensors with two dimensions or more that have none */
} coffer__page_maps;

/* Reads every value of the tensors it draws. A tensor that cannot be read or decoded has no picture. */
coffer_status coffer__page_maps_new(coffer__page_maps *out, const coffer_tensors *set, coffer_error *err);
void coffer__page_maps_free(coffer__page_maps *maps);
/* "maps.tensor", ".width", ".height" and ".cells", of tensors before `tensors`. */
void coffer__page_add_maps(coffer_chunks *chunks, const coffer__page_maps *maps, size_t tensors,
                           uint32_t detail);

/* ---- Comparison ---- */

#define COFFER__PAGE_ROW_GROUPS 64

/* Two tensors with one name and shape. Errors are relative to the first: the root of the sum of squared
 * differences over the sum of squares. */
typedef struct coffer__page_pair {
    size_t tensors[2];
    double relative, max_abs;
    uint32_t groups;
    float rows[COFFER__PAGE_ROW_GROUPS]; /* of neighboring rows */
} coffer__page_pair;

typedef struct coffer__page_pairs {
    coffer__page_pair *list;
    size_t count, skipped; /* skipped : cannot be decoded */
} coffer__page_pairs;

/* Reads every value of both. */
coffer_status coffer__page_pairs_new(coffer__page_pairs *out, const coffer_tensors *a,
                                     const coffer_tensors *b, coffer_error *err);
void coffer__page_pairs_free(coffer__page_pairs *pairs);
/* "quality.…" */
void coffer__page_add_pairs(coffer_chunks *chunks, const coffer__page_pairs *pairs, const coffer_tensors *a,
                            const coffer_tensors *b, uint32_t detail);

/* ---- Containers ---- */

/* *out stays NULL for other files, and for a container that cannot be opened. */
coffer_status coffer__page_open_container(coffer_mcf **out, const coffer_file *file, coffer_error *err);
/* "tensors.snr_db" and "documents.…"; model : NULL adds nothing. */
coffer_status coffer__page_add_parts(coffer_chunks *chunks, const coffer_mcf *model,
                                     const coffer_tensors *set, size_t tensors, uint32_t detail,
                                     coffer_error *err);

#endif
