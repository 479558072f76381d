#ifndef COFFER_CONVERT_H
#define COFFER_CONVERT_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* Conversions between the library's formats and those of others. Each is a row of a table: from one kind of
 * file to another, with its own options. A program can list all of them without knowing any format. */
typedef struct coffer_conversion coffer_conversion;

/* An option of a conversion. Belongs to the library; may get members at its end. */
typedef struct coffer_convert_option {
    const char *name;          /* "param" */
    const char *argument;      /* "GLOB"; NULL for a switch, whose value is ignored */
    const char *help;          /* one line */
    const char *choices;       /* "real|imag|abs": the accepted values; NULL = any */
    const char *default_value; /* NULL = none, or one that depends on the file */
} coffer_convert_option;

COFFER_API size_t coffer_conversion_count(void);
COFFER_API const coffer_conversion *coffer_conversion_at(size_t index);             /* NULL past the end */
COFFER_API const char *coffer_conversion_from(const coffer_conversion *conversion); /* "mscan" */
COFFER_API const char *coffer_conversion_to(const coffer_conversion *conversion);   /* "npy" */
COFFER_API size_t coffer_conversion_option_count(const coffer_conversion *conversion);
COFFER_API const coffer_convert_option *coffer_conversion_option_at(const coffer_conversion *conversion,
                                                                    size_t index); /* NULL past the end */

/* The kind of a file, "mcf" or "safetensors": by its content, and by its name for kinds without a magic.
 * Fails as coffer_identify does. */
COFFER_API_STATUS coffer_convert_kind(const char **out, coffer_source *src, coffer_error *err);
/* Whether files of a kind ("csv") are text that a terminal can show; false for an unknown kind. */
COFFER_API bool coffer_convert_is_text(const char *kind);
/* The title of a kind, "NumPy array"; the name of a kind without a title. */
COFFER_API const char *coffer_convert_title(const char *kind);
/* The extensions of a kind's files, ".h5" and ".hdf5", the usual one first. NULL past the end. */
COFFER_API const char *coffer_convert_extension_at(const char *kind, size_t index);

/* One option with its value. Never gets more members, so that arrays of it are safe. */
typedef struct coffer_setting {
    const char *name;
    const char *value; /* may be NULL for a switch */
} coffer_setting;

typedef struct coffer_convert_opts {
    uint32_t struct_size;
    const char
        *from;      /* kind of the input; NULL = by its content, and by its name for kinds without a magic */
    const char *to; /* kind of the output; NULL = by the extension of its name */
    bool overwrite; /* replace a file that exists; else COFFER_E_EXISTS */
    const coffer_setting *settings;
    size_t setting_count;
    const coffer_limits *limits;
    const coffer_progress *progress;
    const uint8_t *key; /* 32 bytes, for an input with encrypted values; NULL = as the setting says */
    /* Gets what the output does not keep as it was: decoded, converted, renamed or left out. NULL = not
     * wanted */
    coffer_report *notes;
} coffer_convert_opts;

#define COFFER_CONVERT_OPTS_INIT                                                        \
    {                                                                                   \
        sizeof(coffer_convert_opts), NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL \
    }

COFFER_API void coffer_convert_opts_init(coffer_convert_opts *opts, uint32_t struct_size);

/* Converts a file. in : borrowed.     opts : NULL = defaults. Every output appears complete or not at all;
 * "-" is standard output. COFFER_E_UNSUPPORTED when the table does not have the conversion; the text lists
 * the conversions from the input's kind and to the output's. COFFER_E_INVALID_ARGUMENT for a setting that the
 * conversion does not have, or a value that is not one of its choices. */
COFFER_API_STATUS coffer_convert(coffer_source *in, const char *out_path, const coffer_convert_opts *opts,
                                 coffer_error *err);

/* Opens the values of an array file of another program (npy, npz, mtx, hdf5, csv) as a matrix: *out is a
 * source in the format pycauset, over a temporary file without a name, which coffer_pycauset_open and all
 * calls on sources read. opts : `from`, and settings of the conversion of that kind to pycauset; NULL =
 * defaults. out  : owned by the caller, coffer_source_close(); untouched on failure. */
COFFER_API_STATUS coffer_convert_to_matrix(coffer_source **out, coffer_source *in,
                                           const coffer_convert_opts *opts, coffer_error *err);

/* The header of a .npy file for elements that follow it in row-major order, little-endian: coffer_free(*out).
 * COFFER_E_UNSUPPORTED for types that NumPy does not have and for more than 64 dimensions. */
COFFER_API_STATUS coffer_npy_header(uint8_t **out, size_t *size, coffer_dtype dtype, const uint64_t *dims,
                                    size_t ndim, coffer_error *err);

COFFER_END_DECLS

#endif
