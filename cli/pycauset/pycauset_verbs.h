/* The verbs for matrices: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_PYCAUSET_VERBS_H
#define COFFER_CLI_PYCAUSET_VERBS_H

#include "base/json_write.h"
#include "cli.h"

extern const cli_format_verb cli_pycauset_get;
extern const cli_format_verb cli_pycauset_set;
extern const cli_format_verb cli_pycauset_revert;
extern const cli_format_verb cli_pycauset_pack;
extern const cli_format_verb cli_pycauset_log;
extern const cli_format_verb cli_pycauset_stats;
extern const cli_format_verb cli_pycauset_heatmap;
/* A matrix with a damaged slot may show an older state. */
extern const cli_format_notice cli_pycauset_notice;

/* Options for files of other programs. */
#define PYCAUSET_ARRAY_OPTIONS                                                                         \
    { "dataset", 0, "NAME", NULL, "HDF5: the dataset" },                                               \
    {                                                                                                  \
        "slice", 0, "N,N…", NULL, "arrays of three dimensions and more: index in all but the last two" \
    }
/* path : for messages. A matrix in a temporary file out of an array file of another program; *out stays NULL
 * for a pycauset file. A status other than CLI_OK after a message. */
int pycauset_open_array(coffer_source **out, const cli_args *args, const char *path, coffer_source *src);
/* Draws an array of another program in the way of `heatmap`. part : its name, for the heading. */
int pycauset_draw_heat(const cli_args *args, coffer_source *array, const char *part);
/* get for an array of another program: a tile, or all values. */
int pycauset_get_array(const cli_args *args, coffer_source *src);
bool pycauset_is_tile(const char *what);

/* Opens the matrix, calls `work` and closes it; prints an error when it cannot be opened. generation : 0 =
 * the active one. */
int pycauset_with_matrix(const cli_args *args, coffer_source *src, uint64_t generation,
                         int (*work)(const cli_args *args, const coffer_pycauset *matrix));
/* A number as it is typed: "7", "-1.5e3", "nan", "1+2j", "true". */
typedef struct pycauset_number {
    coffer_dtype dtype; /* I64, U64, F64 or C128 */
    uint8_t bytes[16];
} pycauset_number;
bool pycauset_parse_number(pycauset_number *out, const char *text);
/* Seconds since 1970, as SOURCE_DATE_EPOCH says where it is set. */
int64_t pycauset_now(void);
/* "f64", "bit"; "mixed" for a block matrix whose blocks differ. */
const char *pycauset_element_type(const coffer_pycauset_info *info);

/* Bytes become hexadecimal digits; NaN and infinities null. */
void pycauset_put_json(coffer__json_writer *json, const coffer_pycauset_value *value);
/* A text, number or truth value by itself, bytes as hexadecimal digits, arrays and maps as indented JSON. */
void pycauset_put_text(coffer__buffer *out, const coffer_pycauset_value *value);

#endif
