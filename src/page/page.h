/* Building the chunks of a page. A failed allocation is remembered: callers fill what they get and the
 * status is checked once, by coffer__chunks_status. */
#ifndef COFFER_PAGE_PAGE_H
#define COFFER_PAGE_PAGE_H

#include "base/buffer.h"
#include "base/table.h"
#include "coffer/page.h"

typedef struct coffer__chunk {
    coffer_chunk shown;
    uint8_t *data;
    uint8_t *packed; /* deflated; NULL where that is not smaller */
    size_t packed_size;
} coffer__chunk;

typedef struct coffer__page_kind coffer__page_kind;

struct coffer_chunks {
    const coffer__page_kind *kind;
    coffer_chunks_opts opts;
    coffer_limits limits;
    const coffer_file *files[2]; /* during coffer_chunks_new only */
    size_t file_count;
    coffer__chunk *items;
    size_t count, capacity;
    coffer_node *described;    /* "files", "diff": made once */
    coffer_node *view, *notes; /* of the page, made again when it has to shrink; notes is a map with a list */
    coffer_node *note_list;
    uint64_t errors;
    /* Texts that columns refer to by number. */
    coffer__table text_table;
    coffer__arena text_memory;
    const char **texts;
    size_t text_count, text_capacity;
    bool failed; /* out of memory */
};

/* A kind of page. `open` reads and computes once; `emit` adds chunks, with `detail` as the divisor of how
 * much it shows: 1, 2, 4 … */
struct coffer__page_kind {
    const char *page;
    const char *kinds; /* of files, with ", " between them; NULL = what `fits` says */
    bool (*fits)(const coffer_file *file);
    coffer_status (*open)(void **state, coffer_chunks *chunks, coffer_error *err);
    coffer_status (*emit)(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err);
    void (*close)(void *state);
    /* Fills "diff"; NULL = coffer_file_diff. */
    coffer_status (*diff)(coffer_node *out, void *state, coffer_error *err);
};

extern const coffer__page_kind coffer__page_trace;
extern const coffer__page_kind coffer__page_model;
extern const coffer__page_kind coffer__page_scan;
extern const coffer__page_kind coffer__page_matrix;
extern const coffer__page_kind coffer__page_set;
extern const coffer__page_kind coffer__page_other;

/* Columns of `count` elements, zeroed, to be filled by the caller; NULL after a failure. */
double *coffer__chunks_f64(coffer_chunks *chunks, const char *name, size_t count);
float *coffer__chunks_f32(coffer_chunks *chunks, const char *name, size_t count);
uint32_t *coffer__chunks_u32(coffer_chunks *chunks, const char *name, size_t count);
uint8_t *coffer__chunks_u8(coffer_chunks *chunks, const char *name, size_t count);
/* Bytes that the caller has collected. */
void coffer__chunks_bytes(coffer_chunks *chunks, const char *name, const coffer__buffer *bytes);
/* The same with a second part to the name: "flame.peak" and "bytes". */
typedef char coffer__chunk_name[64];
const char *coffer__chunk_name_of(coffer__chunk_name out, const char *group, const char *column);
/* The number of a text in the chunk "texts". */
uint32_t coffer__chunks_text(coffer_chunks *chunks, const char *text);
uint32_t coffer__chunks_text_len(coffer_chunks *chunks, const char *text, size_t len);
/* A tree as JSON. */
void coffer__chunks_json(coffer_chunks *chunks, const char *name, const coffer_node *root);
/* Says what was left out. */
void coffer__chunks_note(coffer_chunks *chunks, const char *format, ...) COFFER_PRINTF(2, 3);
coffer_status coffer__chunks_status(const coffer_chunks *chunks, coffer_error *err);

/* Adds "texts", then drops all chunks, texts and notes for another try. */
void coffer__chunks_finish_texts(coffer_chunks *chunks);
coffer_status coffer__chunks_clear(coffer_chunks *chunks, coffer_error *err);
/* Deflates every chunk; *size gets the sum as base64. */
void coffer__chunks_pack(uint64_t *size, coffer_chunks *chunks);

/* Adds the finite values of a row to the cells that they are reduced to. */
void coffer__page_sum_row(double *sums, uint64_t *counts, const float *row, uint64_t columns, uint32_t width);

/* "files": name, format, title, size, info, units, details, findings; and "diff". */
coffer_status coffer__page_describe(coffer_chunks *chunks, coffer_error *err);
coffer_status coffer__page_compare(coffer_chunks *chunks, void *state, coffer_error *err);
void coffer__page_add_summary(coffer_chunks *chunks);
/* The size of the HTML around the chunks. */
uint64_t coffer__page_frame_size(const coffer_chunks *chunks);

#endif
