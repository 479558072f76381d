/* A view: chunks that are made once, and questions that are answered as they come. */
#ifndef COFFER_VIEW_VIEW_PRIVATE_H
#define COFFER_VIEW_VIEW_PRIVATE_H

#include "coffer/view.h"
#include "page/page.h"

/* A question with its arguments. */
typedef struct coffer__question {
    const char *name;
    const coffer_view_arg *args;
    size_t count;
} coffer__question;

/* The value of an argument, or NULL. */
const char *coffer__question_text(const coffer__question *question, const char *name);
/* An integer from `least` to `most`, or `otherwise` without the argument. COFFER_E_INVALID_ARGUMENT. */
coffer_status coffer__question_number(uint64_t *out, const coffer__question *question, const char *name,
                                      uint64_t otherwise, uint64_t least, uint64_t most, coffer_error *err);
/* The arguments "NAME_begin" and "NAME_end": a part of [0, all) that is not empty; all of it by default. */
coffer_status coffer__question_range(uint64_t *begin, uint64_t *end, const coffer__question *question,
                                     const char *name, uint64_t all, coffer_error *err);
/* "file": 0, or 1 in a comparison. */
coffer_status coffer__question_file(size_t *out, const coffer__question *question,
                                    const coffer_chunks *chunks, coffer_error *err);
/* "width" and "height": the most cells of a tile. */
coffer_status coffer__question_cells(uint64_t *width, uint64_t *height, const coffer__question *question,
                                     coffer_error *err);

typedef struct coffer__view_question {
    const char *name;
    coffer_status (*answer)(coffer_chunks *chunks, void *state, const coffer__question *question,
                            coffer_error *err);
} coffer__view_question;

/* The questions of a kind of page. `open` is called with the first question, and once; answers
 * may run concurrently. */
typedef struct coffer__view_kind {
    const char *page;
    coffer_status (*open)(void **state, coffer_chunks *chunks, coffer_error *err);
    void (*close)(void *state);
    const coffer__view_question *questions; /* ends with a name of NULL */
} coffer__view_kind;

extern const coffer__view_kind coffer__view_trace;
extern const coffer__view_kind coffer__view_model;
extern const coffer__view_kind coffer__view_scan;
extern const coffer__view_kind coffer__view_matrix;
extern const coffer__view_kind coffer__view_set;

/* coffer_view_ask with a progress that can cancel the answer; NULL = without. */
coffer_status coffer__view_ask(coffer_bytes *out, coffer_view *view, const coffer__question *question,
                               const coffer_progress *progress, coffer_error *err);
coffer_status coffer__view_copy(coffer_bytes *out, const coffer_bytes *from, coffer_error *err);
/* Chunks as one run of bytes. */
coffer_status coffer__view_bundle(coffer_bytes *out, const coffer_chunks *chunks, coffer_error *err);

/* A tile: cells that cover a part of a grid evenly, and the part. */
typedef struct coffer__view_tile {
    uint64_t row_begin, row_end, column_begin, column_end;
    uint64_t width, height;
} coffer__view_tile;

/* The arguments of a tile of a grid of that size. At most one cell for each value. */
coffer_status coffer__question_tile(coffer__view_tile *out, const coffer__question *question, uint64_t rows,
                                    uint64_t columns, coffer_error *err);
/* "tile" in the summary: where the cells are. */
void coffer__view_add_tile(coffer_chunks *chunks, const coffer__view_tile *tile, bool sampled);

#endif
