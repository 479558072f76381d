/* Matrix Market files (.mtx): text, coordinates or an array by columns, of real, integer, complex or pattern
 * values, general, symmetric, skew-symmetric or Hermitian.
 *
 *   %%MatrixMarket matrix coordinate real general
 *   % comments
 *   ROWS COLS ENTRIES            (an array: ROWS COLS)
 *   ROW COL VALUE                from 1; an array: VALUE, column by column, the lower triangle when symmetric
 */
#ifndef COFFER_CONVERT_MTX_H
#define COFFER_CONVERT_MTX_H

#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "outside/text/number.h"
#include "outside/text/text_window.h"

typedef enum coffer__mtx_field {
    COFFER__MTX_REAL,
    COFFER__MTX_INTEGER,
    COFFER__MTX_COMPLEX,
    COFFER__MTX_PATTERN,
    COFFER__MTX_UNSIGNED /* of SciPy: integers from 0 to 2^64 - 1 */
} coffer__mtx_field;

enum { COFFER__MTX_FIELDS = 5 };

typedef enum coffer__mtx_symmetry {
    COFFER__MTX_GENERAL,
    COFFER__MTX_SYMMETRIC,
    COFFER__MTX_SKEW,
    COFFER__MTX_HERMITIAN
} coffer__mtx_symmetry;

/* As the first line spells them. */
extern const char *const coffer__mtx_field_names[COFFER__MTX_FIELDS];
extern const char *const coffer__mtx_symmetry_names[4];

typedef struct coffer__mtx {
    bool coordinate;
    coffer__mtx_field field;
    coffer__mtx_symmetry symmetry;
    uint64_t rows, cols;
    uint64_t entries; /* that the file has to hold */
    /* The reader's own. */
    uint64_t read, row, col;
    coffer__text_window window;
    uint64_t line;
} coffer__mtx;

typedef struct coffer__mtx_entry {
    uint64_t row, col; /* from 0 */
    coffer__number real, imag;
    uint64_t line;
} coffer__mtx_entry;

bool coffer__mtx_probe(const uint8_t *head, size_t len);
/* Reads the first lines. The file is long enough for its entries when this succeeds. */
coffer_status coffer__mtx_open(coffer__mtx *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__mtx_close(coffer__mtx *mtx);
/* The next entry, inside the matrix, in the order of the file; *more is false after the last. The value of a
 * pattern is 1, that of an integer matrix a whole number. */
coffer_status coffer__mtx_next(bool *more, coffer__mtx_entry *out, coffer__mtx *mtx, coffer_error *err);

/* Reads all entries, and reports what coffer__mtx_next accepts although it is not right (mtx_check.c). */
coffer_status coffer__mtx_check(coffer_report *out, coffer_source *src, const coffer_limits *limits,
                                const coffer_progress *progress, coffer_error *err);

#endif
