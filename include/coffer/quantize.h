#ifndef COFFER_QUANTIZE_H
#define COFFER_QUANTIZE_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/quant.h"
#include "coffer/report.h"
#include "coffer/tensors.h"

COFFER_BEGIN_DECLS

/* Quantizing whole files: what coffer_mcf_pack takes in, tensors of two dimensions in fewer bits. */

/* What becomes of the tensors whose names match. */
typedef struct coffer_mcf_quantize_rule {
    const char *glob; /* NULL = all */
    /* A quantized type for float tensors of two dimensions; F16 or BF16 for floats of any shape;
     * COFFER_DTYPE_NONE: they stay as they are. */
    coffer_dtype dtype;
} coffer_mcf_quantize_rule;

typedef struct coffer_mcf_quantize_opts {
    uint32_t struct_size;
    const coffer_mcf_quantize_rule *rules; /* of those that match, the last one counts; none matches: kept */
    size_t rule_count;
    const char *const *include, *const *exclude; /* globs: what they leave out is copied */
    size_t include_count, exclude_count;
    coffer_quant_method method; /* of q* and k* */
    bool requantize;            /* tensors that are quantized already too, else they are copied */
    bool nan_to_zero;           /* NaN and infinities become 0, else they are an error */
    const char *weights;        /* a file of importances, one for each column; NULL = all the same */
    /* Bits per weight of all tensors together: a type is chosen for each tensor that no rule is for. 0 = by
     * the rules alone. */
    double target_bpw;
    bool activations;  /* int8 and int4 with a zero point */
    double percentile; /* int8 and int4: what lies beyond is clipped, 50 to 100; 0 = nothing is */
    bool dry_run;      /* nothing is written: what would come out */
    uint32_t align;    /* as in coffer_mcf_writer_opts */
    bool no_dedup, no_checksums, exclusive;
    const char *model_name; /* NULL = as coffer_mcf_pack finds it */
    uint32_t threads;       /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mcf_quantize_opts;

#define COFFER_MCF_QUANTIZE_OPTS_INIT                                                                      \
    {                                                                                                      \
        sizeof(coffer_mcf_quantize_opts), NULL, 0, NULL, NULL, 0, 0, COFFER_QUANT_FIT, false, false, NULL, \
            0.0, false, 0.0, false, 0, false, false, false, NULL, 0, NULL, NULL                            \
    }

/* Quantizes a file or folder into a model.
 * out      : what became of the tensors: "tensors" (name, from, type, bits, and for those that were quantized
 *            snr_db, max_error), "weights", "size" and "bits_per_weight"; may be NULL.
 * out_path : not looked at in a dry run.     opts : NULL = defaults, by which everything is copied.
 * Streams: a few rows for each thread are in memory. The same input and options give the same bytes. A number
 * that is not finite is COFFER_E_BAD_VALUE, a target that cannot be reached COFFER_E_INVALID_ARGUMENT. */
COFFER_API coffer_status coffer_mcf_quantize(coffer_node *out, const char *out_path, const char *in_path,
                                             const coffer_mcf_quantize_opts *opts, coffer_error *err);

/* Compares a quantized model with what it was made from, and adds a finding for every tensor that is not as
 * near to it as the file says. path : a model.     original : any file or folder of tensors. */
COFFER_API coffer_status coffer_mcf_quantize_check(coffer_report *out, const char *path, const char *original,
                                                   const coffer_tensors_work *work, coffer_error *err);

COFFER_END_DECLS

#endif
