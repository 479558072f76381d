#ifndef COFFER_QUANTIZE_H
#define COFFER_QUANTIZE_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/mcf.h"
#include "coffer/progress.h"
#include "coffer/quant.h"
#include "coffer/report.h"
#include "coffer/tensors.h"

COFFER_BEGIN_DECLS

/* Quantizing files: reads what coffer_mcf_pack reads and stores two-dimensional tensors with fewer bits. */

/* The type for the tensors whose name matches. */
typedef struct coffer_mcf_quantize_rule {
    uint32_t struct_size;
    /* A quantized type for two-dimensional float tensors; F16 or BF16 for floats of any shape, but without a
     * glob not for tensors of one dimension; COFFER_DTYPE_NONE keeps them unchanged. */
    coffer_dtype dtype;
    const char *glob; /* NULL = all */
} coffer_mcf_quantize_rule;

#define COFFER_MCF_QUANTIZE_RULE_INIT                             \
    {                                                             \
        sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_NONE, NULL \
    }

COFFER_API void coffer_mcf_quantize_rule_init(coffer_mcf_quantize_rule *out, uint32_t struct_size);

/* The meaning of a mixture, as text: "k4; attention values and feed-forward outputs of half of the layers k6;
 * …". Upper and lower case are the same. NULL for an unknown name. */
COFFER_API const char *coffer_mcf_quantize_preset(const char *name);

typedef struct coffer_mcf_quantize_opts {
    uint32_t struct_size;
    /* The last matching rule applies; tensors without one are copied. The struct_size of the first rule is
     * the stride of the array. */
    const coffer_mcf_quantize_rule *rules;
    size_t rule_count;
    const char *const *include, *const *exclude; /* globs; tensors that they leave out are copied */
    size_t include_count, exclude_count;
    coffer_quant_method method; /* of q* and k* */
    bool requantize;            /* also tensors that are quantized already; otherwise they are copied */
    bool nan_to_zero;           /* NaN and infinities become 0; otherwise they are an error */
    const char *weights;        /* a file with the importance of each column; NULL = all equal */
    /* Bits per weight of all tensors together: chooses a type for each tensor without a rule. 0 = use the
     * rules only. */
    double target_bpw;
    bool activations;  /* int8 and int4 with a zero point */
    double percentile; /* int8 and int4: clip values beyond it, 50 to 100; 0 = no clipping */
    bool dry_run;      /* write nothing, only report */
    uint32_t align;    /* as in coffer_mcf_writer_opts */
    bool no_dedup, no_checksums;
    bool overwrite;         /* replace an existing file instead of failing with COFFER_E_EXISTS */
    const char *model_name; /* NULL = as in coffer_mcf_pack_opts */
    uint32_t threads;       /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool allow_damaged; /* as in coffer_mcf_pack_opts */
    /* q* and k*: no scales below the normal range of float16, which the first program reads as 0; costs
     * accuracy where all weights of a block are tiny. */
    bool portable_scales;
    /* Work in parts, in several processes or on several machines. A call with `only` writes a part: a file
     * with the named tensors and no sections. A call with `parts` joins them: tensors are copied from the
     * first of these files that has them, instead of being computed, and the output has the same bytes as
     * without parts. Input and options must be the same in all calls; a tensor of a part that does not have
     * the type and shape that it must have is COFFER_E_INCONSISTENT. */
    const char *const *only, *const *parts;
    size_t only_count, part_count;
    bool plan_only; /* with dry_run: choose the types, do not measure errors */
    /* A file with second moments of the inputs of layers, such as coffer.torch.calibrate writes; NULL = none.
     * For each layer NAME.moments, the sum of xᵀx over all samples, and NAME.count, their number. Tensors
     * that have moments, by their name or their name without ".weight", are encoded for the least error of
     * the layer's output; others as without the file. Takes 8·columns² bytes while a tensor is encoded. */
    const char *hessian;
    double damping; /* share of the mean of a layer's moments that is added to each of them; 0 = 0.01 */
    /* Targets: each chooses a type for every tensor without a rule. Quality: the smallest type whose
     * signal-to-noise ratio is at least min_snr decibels and whose root mean square error is at most
     * max_error of the root mean square of the weights; of the layer's output for tensors that have moments.
     * Tensors that no quantized type is good enough for are copied. Size: the least error for a file of at
     * most max_size bytes. 0 = none. */
    double min_snr, max_error;
    uint64_t max_size;
    /* A mixture of types that llama.cpp has a name for, such as "Q4_K_M", for the matrices without a rule;
     * NULL = none. coffer_mcf_quantize_preset says what it means. */
    const char *preset;
} coffer_mcf_quantize_opts;

#define COFFER_MCF_QUANTIZE_OPTS_INIT                                                                      \
    {                                                                                                      \
        sizeof(coffer_mcf_quantize_opts), NULL, 0, NULL, NULL, 0, 0, COFFER_QUANT_FIT, false, false, NULL, \
            0.0, false, 0.0, false, 0, false, false, false, NULL, 0, NULL, NULL, false, false, NULL, NULL, \
            0, 0, false, NULL, 0.0, 0.0, 0.0, 0, NULL                                                      \
    }

COFFER_API void coffer_mcf_quantize_opts_init(coffer_mcf_quantize_opts *out, uint32_t struct_size);

/* Quantizes a file or folder into an MCF file.
 * out      : may be NULL; gets "tensors" (name, from, type, bits, size, and for quantized ones snr_db,
 *            max_error, method, error, which is relative, and output_snr_db of those with moments),
 * "weights", "size", "bits_per_weight", "preset" (name, meaning) and "small_scales", the number of scales
 *            that portable_scales would avoid, of the tensors that this call computed. With a hessian also
 *            "moments": file, used, "without", the quantized tensors that have none, and "unused", the layers
 *            of the file that no tensor has.
 * out_path : ignored in a dry run.
 * opts     : NULL for defaults, which copy everything.
 * Keeps a few rows per thread in memory. The same input and options give the same bytes. A number that is not
 * finite is COFFER_E_BAD_VALUE, a target that cannot be reached COFFER_E_INVALID_ARGUMENT. */
COFFER_API_STATUS coffer_mcf_quantize(coffer_node *out, const char *out_path, const char *in_path,
                                      const coffer_mcf_quantize_opts *opts, coffer_error *err);

/* Compares a quantized model with its original, and adds a finding for every tensor whose error is larger
 * than the file records. path : a model.     original : any file or folder of tensors.     opts : NULL for
 * defaults. */
COFFER_API_STATUS coffer_mcf_quantize_check(coffer_report *out, const char *path, const char *original,
                                            const coffer_mcf_work_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
