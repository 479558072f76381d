#ifndef COFFER_PYCAUSET_H
#define COFFER_PYCAUSET_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* PYCAUSET: a matrix or vector on disk, with typed metadata. docs/formats/pycauset.md describes the file. */

typedef enum coffer_pycauset_type {
    COFFER_PYCAUSET_DENSE_FLOAT = 0,
    COFFER_PYCAUSET_INTEGER,
    COFFER_PYCAUSET_CAUSAL,
    COFFER_PYCAUSET_TRIANGULAR_FLOAT,
    COFFER_PYCAUSET_TRIANGULAR_INTEGER,
    COFFER_PYCAUSET_SYMMETRIC,
    COFFER_PYCAUSET_ANTISYMMETRIC,
    COFFER_PYCAUSET_VECTOR,
    COFFER_PYCAUSET_UNIT_VECTOR,
    COFFER_PYCAUSET_IDENTITY,
    COFFER_PYCAUSET_BLOCK,
    COFFER_PYCAUSET_DIAGONAL, /* of pycauset 0.6 */
    /* A type, element type or layout of a newer program: the metadata can be read and changed, the values
     * cannot be read. */
    COFFER_PYCAUSET_UNKNOWN
} coffer_pycauset_type;

typedef enum coffer_pycauset_layout {
    COFFER_PYCAUSET_LAYOUT_NONE = 0,
    COFFER_PYCAUSET_RAW_DENSE,
    COFFER_PYCAUSET_RAW_TRIANGULAR,
    COFFER_PYCAUSET_RAW_DIAGONAL
} coffer_pycauset_layout;

COFFER_API const char *coffer_pycauset_type_name(coffer_pycauset_type type);       /* "DENSE_FLOAT" */
COFFER_API const char *coffer_pycauset_layout_name(coffer_pycauset_layout layout); /* "raw_dense" */
/* The name in the file: "COMPLEX_FLOAT64", "BIT"; "MIXED" for COFFER_DTYPE_NONE (block matrices); NULL for a
 * type that the format does not have. */
COFFER_API const char *coffer_pycauset_dtype_name(coffer_dtype dtype);

/* ---- Metadata: a tree of typed values ---- */

typedef enum coffer_pycauset_kind {
    COFFER_PYCAUSET_BOOL = 1, /* the numbers are the tags in the file */
    COFFER_PYCAUSET_I64 = 2,
    COFFER_PYCAUSET_U64 = 3,
    COFFER_PYCAUSET_F64 = 4,
    COFFER_PYCAUSET_STRING = 5,
    COFFER_PYCAUSET_BYTES = 6,
    COFFER_PYCAUSET_ARRAY = 7,
    COFFER_PYCAUSET_MAP = 8
} coffer_pycauset_kind;

/* Borrowed from its handle. An accessor for another kind returns 0, false, NULL or empty; every call accepts
 * NULL for the value. */
typedef struct coffer_pycauset_value coffer_pycauset_value;

COFFER_API coffer_pycauset_kind coffer_pycauset_value_kind(const coffer_pycauset_value *value);
COFFER_API bool coffer_pycauset_value_bool(const coffer_pycauset_value *value);
COFFER_API int64_t coffer_pycauset_value_i64(const coffer_pycauset_value *value);  /* also a U64 that fits */
COFFER_API uint64_t coffer_pycauset_value_u64(const coffer_pycauset_value *value); /* also an I64 that fits */
COFFER_API double coffer_pycauset_value_f64(const coffer_pycauset_value *value);   /* any number */
/* The content of a STRING (UTF-8) or BYTES, followed by a NUL that len does not count. */
COFFER_API const char *coffer_pycauset_value_text(const coffer_pycauset_value *value, size_t *len);
COFFER_API size_t coffer_pycauset_value_count(const coffer_pycauset_value *value); /* of an ARRAY or MAP */
COFFER_API const coffer_pycauset_value *coffer_pycauset_value_at(const coffer_pycauset_value *value,
                                                                 size_t index); /* NULL past the end */
/* Key of the child of a MAP at an index, NUL-terminated; NULL past the end. len may be NULL. */
COFFER_API const char *coffer_pycauset_value_key_at(const coffer_pycauset_value *map, size_t index,
                                                    size_t *len);
/* By path from a MAP: "properties.label", array elements by index "spacetime.2"; a dot inside a key is
 * written
 * "\.". NULL when it is not found. O(log keys) per step. */
COFFER_API const coffer_pycauset_value *coffer_pycauset_value_find(const coffer_pycauset_value *map,
                                                                   const char *path);

/* Adds the children of a MAP to out, a map of nodes; bytes become hexadecimal digits. */
COFFER_API_STATUS coffer_pycauset_value_to_node(coffer_node *out, const coffer_pycauset_value *map,
                                                coffer_error *err);

/* ---- Reading ---- */

typedef struct coffer_pycauset coffer_pycauset;

typedef struct coffer_pycauset_open_opts {
    uint32_t struct_size;
    uint64_t generation; /* an older state of the metadata; 0 = the active one */
    /* The folder of a block matrix's children; NULL = NAME.blocks next to the file. */
    const char *blocks_folder;
    const coffer_limits *limits;
    bool ignore_view; /* read the values as stored: not transposed, conjugated or scaled */
} coffer_pycauset_open_opts;

#define COFFER_PYCAUSET_OPEN_OPTS_INIT                          \
    {                                                           \
        sizeof(coffer_pycauset_open_opts), 0, NULL, NULL, false \
    }

COFFER_API void coffer_pycauset_open_opts_init(coffer_pycauset_open_opts *opts, uint32_t struct_size);

typedef struct coffer_pycauset_info {
    uint64_t rows, cols; /* as seen through the view; a vector has one column, or one row when transposed */
    uint64_t stored_rows, stored_cols; /* before the transposition */
    coffer_pycauset_type type;
    coffer_pycauset_layout layout;
    coffer_dtype dtype;       /* as stored: BIT, …; COFFER_DTYPE_NONE when the blocks differ */
    coffer_dtype value_dtype; /* of the values that reading returns: BOOL for BIT; the stored type if the
                                 scalar is 1, else F64, or C128 if type or scalar are complex */
    bool has_diagonal;        /* of a triangular layout */
    bool transposed, conjugated;
    double scalar_real, scalar_imag;
    uint64_t unit_index; /* of a UNIT_VECTOR */
    uint64_t payload_offset, payload_length;
    uint64_t payload_needed; /* bytes that shape, type and layout require; <= payload_length */
    uint64_t generation;
    char active_slot;  /* 'A' or 'B' */
    char damaged_slot; /* the other slot when it is damaged, else 0 */
    /* The damaged slot may have named a newer state: bytes follow the metadata of the active one. */
    bool newer_lost;
} coffer_pycauset_info;

/* Why the program pycauset 0.6 reads other values from such a matrix, as a sentence; NULL when it reads the
 * right ones. */
COFFER_API const char *coffer_pycauset_misread(const coffer_pycauset_info *info);

/* Opens a matrix for reading.
 * src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * out : owned by the caller, coffer_pycauset_close(); untouched on failure.
 * Reads the header and one metadata block, no byte of the payload; children of a block matrix are opened when
 * they are first read. Fails when the metadata of the active slot is damaged; it never falls back to the
 * other slot. The handle keeps the state it was opened with, even after later commits. COFFER_E_CHANGED when
 * commits have overwritten the state of a source that was opened before them: open the source again.
 * Thread safety: after success all calls with a const handle may run concurrently. */
COFFER_API_STATUS coffer_pycauset_open(coffer_pycauset **out, coffer_source *src,
                                       const coffer_pycauset_open_opts *opts, coffer_error *err);
/* Like coffer_pycauset_open; the handle owns its source. */
COFFER_API_STATUS coffer_pycauset_open_path(coffer_pycauset **out, const char *path,
                                            const coffer_pycauset_open_opts *opts, coffer_error *err);
COFFER_API void coffer_pycauset_close(coffer_pycauset *matrix);
/* Both are borrowed from the handle. */
COFFER_API const coffer_pycauset_info *coffer_pycauset_get_info(const coffer_pycauset *matrix);
COFFER_API const coffer_pycauset_value *coffer_pycauset_metadata(const coffer_pycauset *matrix);

/* A cached value by name. NULL when it does not exist or its signature does not match payload and view;
 * *stale (may be NULL) tells the two apart. */
COFFER_API const coffer_pycauset_value *coffer_pycauset_cached(const coffer_pycauset *matrix,
                                                               const char *name, bool *stale);

/* The stored bytes, where they are mapped or in memory. The strides account for the transposition; scalar
 * and conjugation are not applied, and checksums are not compared: coffer_pycauset_verify does that.
 * COFFER_E_UNSUPPORTED when the layout has no strides (bits, triangular, no
 * payload, COMPLEX_FLOAT16, blocks) or the source has no view. */
typedef struct coffer_pycauset_view {
    uint32_t struct_size;
    coffer_dtype dtype;
    const void *data;
    uint64_t rows, cols;
    int64_t row_stride, col_stride; /* bytes */
} coffer_pycauset_view;

#define COFFER_PYCAUSET_VIEW_INIT                                         \
    {                                                                     \
        sizeof(coffer_pycauset_view), COFFER_DTYPE_NONE, NULL, 0, 0, 0, 0 \
    }

COFFER_API void coffer_pycauset_view_init(coffer_pycauset_view *view, uint32_t struct_size);

/* Compares the whole payload with its checksums; COFFER_OK without checksums. Everything else that reads
 * values verifies what it reads. COFFER_E_BAD_CHECKSUM. */
COFFER_API_STATUS coffer_pycauset_verify(const coffer_pycauset *matrix, coffer_error *err);

COFFER_API_STATUS coffer_pycauset_get_view(coffer_pycauset_view *out, const coffer_pycauset *matrix,
                                           coffer_error *err);

/* One element through the view, real and imaginary part (each may be NULL). Integers beyond 2^53 lose digits
 * here; coffer_pycauset_read_tile returns them exactly. */
COFFER_API_STATUS coffer_pycauset_get(double *real, double *imag, const coffer_pycauset *matrix, uint64_t row,
                                      uint64_t col, coffer_error *err);

typedef struct coffer_pycauset_tile {
    uint32_t struct_size;
    uint64_t row, rows, col, cols;
} coffer_pycauset_tile;

#define COFFER_PYCAUSET_TILE_INIT COFFER_PYCAUSET_TILE(0, 0, 0, 0)
#define COFFER_PYCAUSET_TILE(row, rows, col, cols)                 \
    {                                                              \
        sizeof(coffer_pycauset_tile), (row), (rows), (col), (cols) \
    }

COFFER_API void coffer_pycauset_tile_init(coffer_pycauset_tile *tile, uint32_t struct_size);

/* Values of a tile through the view (transposed, conjugated, times scalar), row by row as `dtype`
 * (COFFER_DTYPE_NONE = value_dtype). out_stride : bytes from row to row of out; 0 = no gap.
 * Touches only the bytes it needs. */
COFFER_API_STATUS coffer_pycauset_read_tile(void *out, size_t out_stride, const coffer_pycauset *matrix,
                                            const coffer_pycauset_tile *tile, coffer_dtype dtype,
                                            coffer_error *err);
/* Whole rows [first, first + count), without a gap. */
COFFER_API_STATUS coffer_pycauset_read_rows(void *out, const coffer_pycauset *matrix, uint64_t first,
                                            uint64_t count, coffer_dtype dtype, coffer_error *err);

/* ---- Statistics ---- */

typedef struct coffer_pycauset_stats_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    const coffer_progress *progress;
} coffer_pycauset_stats_opts;

#define COFFER_PYCAUSET_STATS_OPTS_INIT             \
    {                                               \
        sizeof(coffer_pycauset_stats_opts), 0, NULL \
    }

COFFER_API void coffer_pycauset_stats_opts_init(coffer_pycauset_stats_opts *opts, uint32_t struct_size);

/* Over all rows × cols values, including the zeros that the layout implies; complex values by magnitude. */
typedef struct coffer_pycauset_summary {
    uint64_t elements, nonzero, nans, infinities;
    double density;             /* nonzero / elements; 0 when the matrix is empty */
    double min, max, mean, std; /* of the finite values; NaN without finite values */
    double frobenius;           /* of the finite values */
    bool complex_values;
} coffer_pycauset_summary;

typedef struct coffer_pycauset_stats coffer_pycauset_stats;

/* One pass over the payload. The result does not depend on the number of threads. */
COFFER_API_STATUS coffer_pycauset_stats_new(coffer_pycauset_stats **out, const coffer_pycauset *matrix,
                                            const coffer_pycauset_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_pycauset_stats_free(coffer_pycauset_stats *stats);
/* Borrowed from the handle. */
COFFER_API const coffer_pycauset_summary *coffer_pycauset_stats_total(const coffer_pycauset_stats *stats);

/* Reduces the matrix to grid_rows × grid_cols equal cells: each is the mean of the real parts (magnitudes
 * when complex). A matrix with fewer rows or columns gets one cell for each. Cells without a finite value are
 * NaN. */
COFFER_API_STATUS coffer_pycauset_downsample(double *cells, uint64_t grid_rows, uint64_t grid_cols,
                                             const coffer_pycauset *matrix,
                                             const coffer_pycauset_stats_opts *opts, coffer_error *err);

/* ---- Changes to metadata ---- */

/* A list of changes, applied in order in one commit. Paths are as in coffer_pycauset_value_find; missing maps
 * are created, and an index equal to the length of an array appends to it. Keys that describe the payload
 * (rows, cols, matrix_type, data_type, payload_layout, payload_uuid, block_manifest, object_type, n, and the
 * seed of a unit vector) are refused, and so are values of the wrong kind for the keys the format defines.
 * `view` may be changed and makes cached values stale; changing its transposition swaps rows and cols,
 * because the payload does not change. */
typedef struct coffer_pycauset_changes coffer_pycauset_changes;

COFFER_API_STATUS coffer_pycauset_changes_new(coffer_pycauset_changes **out, coffer_error *err);
COFFER_API void coffer_pycauset_changes_free(coffer_pycauset_changes *changes);
COFFER_API_STATUS coffer_pycauset_changes_set_bool(coffer_pycauset_changes *changes, const char *path,
                                                   bool value, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_changes_set_i64(coffer_pycauset_changes *changes, const char *path,
                                                  int64_t value, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_changes_set_u64(coffer_pycauset_changes *changes, const char *path,
                                                  uint64_t value, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_changes_set_f64(coffer_pycauset_changes *changes, const char *path,
                                                  double value, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_changes_set_string(coffer_pycauset_changes *changes, const char *path,
                                                     const char *text, size_t len, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_changes_set_bytes(coffer_pycauset_changes *changes, const char *path,
                                                    const void *bytes, size_t len, coffer_error *err);
/* A JSON document: objects become maps, arrays become arrays; null is refused. */
COFFER_API_STATUS coffer_pycauset_changes_set_json(coffer_pycauset_changes *changes, const char *path,
                                                   const char *json, size_t len, coffer_error *err);
/* A cached value, with the signature that payload and view have at the commit. */
COFFER_API_STATUS coffer_pycauset_changes_set_cached(coffer_pycauset_changes *changes, const char *name,
                                                     double value, coffer_error *err);
/* The commit fails with COFFER_E_NOT_FOUND when the path does not exist. */
COFFER_API_STATUS coffer_pycauset_changes_delete(coffer_pycauset_changes *changes, const char *path,
                                                 coffer_error *err);
/* A new value of the element in a row and column of the view, from one value of any plain type. A value that
 * the type of the matrix does not have is refused at the commit (real numbers are rounded), and so are
 * elements that are not stored, an element that is set twice, and a view with a scalar. The bytes are
 * overwritten in place under a rollback journal; the payload gets a new payload_uuid, so that cached values
 * become stale, and new checksums. At most 65536 elements in one commit. */
COFFER_API_STATUS coffer_pycauset_changes_set_element(coffer_pycauset_changes *changes, uint64_t row,
                                                      uint64_t col, const void *value, coffer_dtype dtype,
                                                      coffer_error *err);
/* Computes CRC-32 checksums of the payload, one per MiB, at the commit and stores them in the metadata. Other
 * programs ignore them; whatever reads the payload verifies them. COFFER_E_BAD_CHECKSUM when the payload does
 * not match the checksums that it has already. */
COFFER_API_STATUS coffer_pycauset_changes_set_checksums(coffer_pycauset_changes *changes, coffer_error *err);

typedef struct coffer_pycauset_editor_opts {
    uint32_t struct_size;
    coffer_durability durability;
    const coffer_limits *limits;
    /* Shown by the history of the file: texts in UTF-8, or NULL, and seconds since 1970, or 0. */
    const char *message, *author;
    int64_t time;
} coffer_pycauset_editor_opts;

#define COFFER_PYCAUSET_EDITOR_OPTS_INIT                                                 \
    {                                                                                    \
        sizeof(coffer_pycauset_editor_opts), COFFER_DURABILITY_FULL, NULL, NULL, NULL, 0 \
    }

COFFER_API void coffer_pycauset_editor_opts_init(coffer_pycauset_editor_opts *opts, uint32_t struct_size);

/* Holds the write lock of a file from open to close (COFFER_E_LOCKED when another process has it). Readers
 * are never blocked: they see the old state or the new one. */
typedef struct coffer_pycauset_editor coffer_pycauset_editor;

COFFER_API_STATUS coffer_pycauset_editor_open(coffer_pycauset_editor **out, const char *path,
                                              const coffer_pycauset_editor_opts *opts, coffer_error *err);
/* Applies all changes in one commit and returns the new generation (may be NULL). When a change cannot be
 * applied, nothing is written. After a failed write or sync the editor refuses further commits.
 * Thread safety: several threads may commit at the same time; those that wait share a write and its syncs,
 * and each gets its own generation. */
COFFER_API_STATUS coffer_pycauset_editor_commit(uint64_t *generation, coffer_pycauset_editor *editor,
                                                const coffer_pycauset_changes *changes, coffer_error *err);
/* Makes an older state the newest one, in one commit: its metadata, and the values of the elements that later
 * generations changed. COFFER_E_NOT_FOUND when the file does not have the generation anymore;
 * COFFER_E_UNSUPPORTED when another program changed the payload since. */
COFFER_API_STATUS coffer_pycauset_editor_revert(uint64_t *generation, coffer_pycauset_editor *editor,
                                                uint64_t to, coffer_error *err);
/* Metadata as of the last commit; borrowed until the next. */
COFFER_API const coffer_pycauset_value *coffer_pycauset_editor_metadata(const coffer_pycauset_editor *editor);
COFFER_API void coffer_pycauset_editor_close(coffer_pycauset_editor *editor);

/* ---- History ---- */

/* All intact metadata blocks outside the payload, oldest first. */
typedef struct coffer_pycauset_history coffer_pycauset_history;

typedef struct coffer_pycauset_history_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_pycauset_history_opts;

#define COFFER_PYCAUSET_HISTORY_OPTS_INIT          \
    {                                              \
        sizeof(coffer_pycauset_history_opts), NULL \
    }

COFFER_API void coffer_pycauset_history_opts_init(coffer_pycauset_history_opts *opts, uint32_t struct_size);

typedef struct coffer_pycauset_generation {
    uint64_t generation; /* exact for the two that the slots name; counted from them for the others */
    bool committed;      /* false: a block that no slot ever named, left by an interrupted commit */
    bool active;
    char slot; /* 'A' or 'B' when a slot names it now, else 0 */
    uint64_t offset, length;
    const char *date; /* of the commit, or from provenance; NULL: not recorded */
    const coffer_pycauset_value *metadata;
    const char *message, *author; /* of the commit; NULL: not recorded */
    /* An array of maps {row, col, old, new}: the elements that the commit changed, by their place in the
     * payload; NULL: none. */
    const coffer_pycauset_value *elements;
} coffer_pycauset_generation;

/* src : not used after the call. */
COFFER_API_STATUS coffer_pycauset_history_open(coffer_pycauset_history **out, coffer_source *src,
                                               const coffer_pycauset_history_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_pycauset_history_open_path(coffer_pycauset_history **out, const char *path,
                                                    const coffer_pycauset_history_opts *opts,
                                                    coffer_error *err);
COFFER_API void coffer_pycauset_history_close(coffer_pycauset_history *history);
COFFER_API size_t coffer_pycauset_history_count(const coffer_pycauset_history *history);
/* Borrowed from the handle; NULL past the end. */
COFFER_API const coffer_pycauset_generation *coffer_pycauset_history_at(
    const coffer_pycauset_history *history, size_t index);
/* Bytes of older states that are damaged, and so are not in the list. */
COFFER_API uint64_t coffer_pycauset_history_damaged_bytes(const coffer_pycauset_history *history);
/* The differences between two trees: out gets a list "changes" of maps {path, change: added|removed|changed,
 * old, new}. before may be NULL. */
COFFER_API_STATUS coffer_pycauset_value_diff(coffer_node *out, const coffer_pycauset_value *before,
                                             const coffer_pycauset_value *after, coffer_error *err);

/* ---- Writing ---- */

typedef struct coffer_pycauset_shape {
    uint32_t struct_size;
    coffer_pycauset_type type;
    coffer_dtype dtype;  /* BIT, …; ignored for IDENTITY without a payload: F64 */
    uint64_t rows, cols; /* as stored; a vector has cols 1 */
    bool has_diagonal;   /* for TRIANGULAR_*; the other types imply it */
    bool transposed, conjugated;
    double scalar_real, scalar_imag;
    uint64_t unit_index; /* UNIT_VECTOR */
} coffer_pycauset_shape;

#define COFFER_PYCAUSET_SHAPE_INIT                                                                        \
    {                                                                                                     \
        sizeof(coffer_pycauset_shape), COFFER_PYCAUSET_DENSE_FLOAT, COFFER_DTYPE_F64, 0, 0, false, false, \
            false, 1.0, 0.0, 0                                                                            \
    }

COFFER_API void coffer_pycauset_shape_init(coffer_pycauset_shape *shape, uint32_t struct_size);

typedef struct coffer_pycauset_writer_opts {
    uint32_t struct_size;
    bool overwrite;               /* replace an existing file; otherwise COFFER_E_EXISTS */
    bool checksums;               /* store CRC-32 checksums of the payload, one per MiB; the default */
    coffer_durability durability; /* ORDERED is the same as FULL here */
    const char *payload_uuid; /* 32 hexadecimal digits; NULL = derived from the content, so that equal input
                                 gives equal bytes */
} coffer_pycauset_writer_opts;

#define COFFER_PYCAUSET_WRITER_OPTS_INIT                                               \
    {                                                                                  \
        sizeof(coffer_pycauset_writer_opts), false, true, COFFER_DURABILITY_FULL, NULL \
    }

COFFER_API void coffer_pycauset_writer_opts_init(coffer_pycauset_writer_opts *opts, uint32_t struct_size);

typedef struct coffer_pycauset_writer coffer_pycauset_writer;

/* Streams a matrix into a new file that gets its name at commit. Uses memory for a few rows only. */
COFFER_API_STATUS coffer_pycauset_writer_create(coffer_pycauset_writer **out, const char *path,
                                                const coffer_pycauset_shape *shape,
                                                const coffer_pycauset_writer_opts *opts, coffer_error *err);
/* The next rows, as stored, each with all its columns, without a gap; BIT as BOOL bytes, complex as pairs. In
 * a triangular matrix the part that is not stored must be zero, else COFFER_E_INVALID_ARGUMENT; in a
 * symmetric one it is the mirror image and is not read. */
COFFER_API_STATUS coffer_pycauset_writer_put_rows(coffer_pycauset_writer *writer, const void *rows,
                                                  uint64_t count, coffer_error *err);
/* Metadata in addition to the shape; at most once before commit. changes : borrowed for the call. */
COFFER_API_STATUS coffer_pycauset_writer_set_metadata(coffer_pycauset_writer *writer,
                                                      const coffer_pycauset_changes *changes,
                                                      coffer_error *err);
/* All rows must have been written. Frees the writer, also on failure. */
COFFER_API_STATUS coffer_pycauset_writer_commit(coffer_pycauset_writer *writer, coffer_error *err);
COFFER_API void coffer_pycauset_writer_discard(coffer_pycauset_writer *writer);

/* Writes a block matrix in one call: copies existing files into PATH.blocks and creates PATH, which names
 * them. children : block_rows × block_cols paths, row by row. */
COFFER_API_STATUS coffer_pycauset_write_blocks(const char *path, const char *const *children,
                                               uint64_t block_rows, uint64_t block_cols,
                                               const coffer_pycauset_writer_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
