#ifndef COFFER_PAGE_H
#define COFFER_PAGE_H

#include "coffer/bytes.h"
#include "coffer/file.h"
#include "coffer/limits.h"
#include "coffer/progress.h"

COFFER_BEGIN_DECLS

/* Pages: what a file contains, as typed arrays that a viewer draws, and as one HTML file that shows them.
 * docs/formats/report-chunks.md describes the arrays of each page. */

typedef enum coffer_chunk_type {
    COFFER_CHUNK_JSON = 0, /* UTF-8 */
    COFFER_CHUNK_TEXTS,    /* uint32 count, uint32 ends[count], then the texts in UTF-8 without separators */
    COFFER_CHUNK_U8,
    COFFER_CHUNK_U32,
    COFFER_CHUNK_F32,
    COFFER_CHUNK_F64
} coffer_chunk_type;

COFFER_API const char *coffer_chunk_type_name(coffer_chunk_type type); /* "json", "texts", "f64" */

/* An array. Belongs to its chunks; may get members at its end. */
typedef struct coffer_chunk {
    const char *name; /* letters, digits, '.' and '_': "flame.peak.bytes" */
    coffer_chunk_type type;
    uint64_t count;      /* elements; bytes for JSON and texts */
    const uint8_t *data; /* little-endian */
    size_t size;
} coffer_chunk;

typedef struct coffer_chunks coffer_chunks;

typedef struct coffer_chunks_opts {
    uint32_t struct_size;
    const char *name, *other_name; /* of the files, as the page shows them; NULL = "" */
    /* The largest size of the HTML file. What does not fit is reduced: fewer points, frames, rows or
     * pictures, which the notes say. COFFER_E_LIMIT when the smallest page is larger. */
    uint64_t max_bytes;
    /* Statistics of tensors read every byte: larger models get none, which the notes say. */
    uint64_t max_read_bytes;
    uint32_t threads; /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_chunks_opts;

#define COFFER_CHUNKS_MAX_BYTES (UINT64_C(10) * 1000 * 1000)
#define COFFER_CHUNKS_MAX_READ_BYTES (UINT64_C(4) << 30)
#define COFFER_CHUNKS_OPTS_INIT                                                                           \
    {                                                                                                     \
        sizeof(coffer_chunks_opts), NULL, NULL, COFFER_CHUNKS_MAX_BYTES, COFFER_CHUNKS_MAX_READ_BYTES, 0, \
            NULL, NULL                                                                                    \
    }
COFFER_API void coffer_chunks_opts_init(coffer_chunks_opts *opts, uint32_t struct_size);

/* Reads what the page of a file shows, or of two files of a kind, a comparison. A damaged file gives what can
 * be read, and its findings. other : NULL for one file. opts : NULL = defaults.
 * out : owned by the caller, free with coffer_chunks_free(); untouched on failure. The files are not used
 * after the call. Thread safety: after success, all calls with const chunks may run concurrently. */
COFFER_API_STATUS coffer_chunks_new(coffer_chunks **out, const coffer_file *file, const coffer_file *other,
                                    const coffer_chunks_opts *opts, coffer_error *err);
COFFER_API void coffer_chunks_free(coffer_chunks *chunks);
COFFER_API const char *coffer_chunks_page(const coffer_chunks *chunks); /* "trace", "model", "file" … */
COFFER_API size_t coffer_chunks_count(const coffer_chunks *chunks);
COFFER_API const coffer_chunk *coffer_chunks_at(const coffer_chunks *chunks,
                                                size_t index); /* NULL past the end */
COFFER_API const coffer_chunk *coffer_chunks_find(const coffer_chunks *chunks,
                                                  const char *name); /* or NULL */
/* The notes say what was left out or reduced, one line each. */
COFFER_API size_t coffer_chunks_note_count(const coffer_chunks *chunks);
COFFER_API const char *coffer_chunks_note_at(const coffer_chunks *chunks,
                                             size_t index); /* NULL past the end */
/* Errors that the check of the files found. */
COFFER_API uint64_t coffer_chunks_error_count(const coffer_chunks *chunks);

/* Whether the library was built with the pages' script; coffer_page_write needs it. */
COFFER_API bool coffer_page_is_available(void);
/* Writes the HTML file: self-contained, without a request to any network, and inert whatever names the file
 * contains. out : memory that is reused. COFFER_E_UNSUPPORTED without the pages' script. */
COFFER_API_STATUS coffer_page_write(coffer_bytes *out, const coffer_chunks *chunks, coffer_error *err);

COFFER_END_DECLS

#endif
