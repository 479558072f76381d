/* Quantizing the tensors of a selection while they are packed. */
#ifndef COFFER_CONVERT_QUANTIZE_H
#define COFFER_CONVERT_QUANTIZE_H

#include "base/elements.h"
#include "coffer/mcf.h"
#include "coffer/quantize.h"
#include "convert/models/mcf_pack.h"
#include "convert/quantize/importance.h"
#include "convert/quantize/moments.h"
#include "convert/tensors/tensor_pass.h"
#include "convert/tensors/tensor_selection.h"
#include "quant/quant_encode.h"

/* The result for one tensor. */
typedef struct coffer__quantize_result {
    coffer__comparison error;           /* of the tensor with what can be decoded again */
    double weighted;                    /* squared error, each column counted by its importance */
    float largest;                      /* magnitude */
    uint64_t small_scales;              /* below the normal range of float16 */
    bool known;                         /* the tensor was measured or copied from a part */
    const coffer_mcf_quality *recorded; /* of a part, instead of `error`; else NULL */
    bool calibrated;                    /* with moments, which `output` is measured by */
    coffer_quant_method method;
    coffer__quant_output_error output;
} coffer__quantize_result;

/* The one scale of an int8 or int4 tensor. */
typedef struct coffer__quantize_whole {
    float scale, zero;
    float min_clip, max_clip;
} coffer__quantize_whole;

/* The work on one tensor. */
typedef struct coffer__quantize_task {
    const coffer__chosen_tensor *chosen;
    const coffer__quant_type *type;
    coffer__quant_method method;
    bool activations, nan_to_zero, portable_scales;
    const float *weights;                 /* importance of each column; NULL = all the same */
    const coffer__quant_moments *moments; /* of the inputs; NULL = none */
    coffer__quantize_whole whole;         /* of int8 and int4 */
} coffer__quantize_task;

/* ---- quantize_tensor.c: a few rows at a time, and all bands of a tensor ---- */

/* Memory for a band: rows as numbers, what they decode to, and their payload. */
typedef struct coffer__quantize_band {
    uint64_t first, rows; /* rows 0: there is nothing in it */
    float *values, *decoded;
    uint8_t *payload;            /* as if the rows were a tensor of their own */
    void *scratch;               /* of a task with moments: coffer__quant_calibrate_scratch bytes */
    int8_t *codes;               /* of int8 and int4 with moments */
    coffer__quant_layout layout; /* of that */
    coffer__quantize_result result;
} coffer__quantize_band;

/* Rows [first, first + rows) of the band, read, encoded, decoded and compared. */
coffer_status coffer__quantize_band_run(coffer__quantize_band *band, const coffer__quantize_task *task,
                                        coffer_error *err);

/* writer : where the tensor was begun; NULL = only measure. */
coffer_status coffer__quantize_tensor(coffer__quantize_result *out, const coffer__quantize_task *task,
                                      coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                      coffer_error *err);

/* ---- quantize_whole.c: the scale of int8 and int4 ---- */

/* percentile : as in the options. COFFER_E_BAD_VALUE for a number that is not finite and must be. */
coffer_status coffer__quantize_find_whole(coffer__quantize_whole *out, const coffer__quantize_task *task,
                                          double percentile, coffer__tensors_workers *workers,
                                          coffer_error *err);

/* ---- quantize.c: the tensors of a pack ---- */

typedef struct coffer__quantize_job {
    coffer_mcf_quantize_opts opts;    /* complete: .rules is the array below */
    coffer_mcf_quantize_rule *rules;  /* copies of the caller's, which may be shorter structs */
    coffer__quantize_result *results; /* one for each tensor of the selection */
    coffer__importance *importance;   /* NULL = all columns count the same */
    coffer__moments *moments;         /* NULL = none */
    coffer__quant_moments loaded;     /* of the tensor that was worked on last */
    const coffer_tensor *loaded_for;  /* NULL = nothing is loaded */
    coffer__tensors_workers *workers; /* made when first needed */
    bool planning;                    /* tensors are measured to choose their types: parts have no say */
    coffer_tensors **parts;           /* as many as the options name */
    size_t part_count;                /* open */
} coffer__quantize_job;

/* Prepares the work on a tensor. weights : those of the task, owned by the caller (coffer__free). */
coffer_status coffer__quantize_new_task(coffer__quantize_task *out, float **weights,
                                        const coffer__quantize_job *job, const coffer__chosen_tensor *chosen,
                                        coffer_error *err);

/* Encodes and measures a tensor. writer : where it was begun; NULL = only measure. context : the job. */
coffer_status coffer__quantize_put_tensor(void *context, const coffer__chosen_tensor *chosen, size_t position,
                                          coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                          coffer_error *err);

/* ---- quantize_report.c: results ---- */

/* The signal-to-noise ratio of the layer's output for a tensor with moments, else of the weights. */
double coffer__quantize_result_snr(const coffer__quantize_result *result);
void coffer__quantize_describe(coffer_node *out, const coffer__quantize_job *job,
                               const coffer__selection *selection);

/* ---- quantize_presets.c: mixtures of types that llama.cpp has names for ---- */

/* The facts of a model that decide about the types of its tensors. */
typedef struct coffer__quantize_model {
    uint64_t layers;
    bool has_output; /* a matrix of its own, not that of the embeddings */
} coffer__quantize_model;

coffer__quantize_model coffer__quantize_model_of(const coffer__selection *selection);
/* The type that a mixture, which exists, has for a tensor. */
coffer_dtype coffer__quantize_preset_type(const char *name, const char *tensor,
                                          const coffer__quantize_model *model);

/* ---- quantize_parts.c: a model that several calls work on ---- */

/* Reduces the selection to the tensors that the options name. COFFER_E_NOT_FOUND for an unknown name. */
coffer_status coffer__quantize_keep_only(coffer__selection *selection, const coffer_mcf_quantize_opts *opts,
                                         coffer_error *err);
coffer_status coffer__quantize_open_parts(coffer__quantize_job *job, coffer_error *err);
void coffer__quantize_close_parts(coffer__quantize_job *job);
/* Copies the tensor that was begun from a part. *done : false when no part has it. */
coffer_status coffer__quantize_put_part(bool *done, coffer__quantize_job *job,
                                        const coffer__chosen_tensor *chosen, coffer__quantize_result *result,
                                        coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                        coffer_error *err);

/* ---- quantize_plan.c: which type for which tensor ---- */

/* Follows the rules. */
coffer_status coffer__quantize_plan(coffer__selection *selection, const coffer_mcf_quantize_opts *opts,
                                    coffer_error *err);
/* Sets what a chosen tensor becomes. */
coffer_status coffer__quantize_choose(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                                      coffer_dtype dtype, coffer_error *err);
/* True for a tensor that can be quantized and has no rule: a target chooses its type. */
bool coffer__quantize_is_free(const coffer_mcf_quantize_opts *opts, const coffer__chosen_tensor *chosen);

/* ---- quantize_targets.c ---- */

/* Types for the free tensors, so that the size is reached. COFFER_E_INVALID_ARGUMENT when it cannot be. */
coffer_status coffer__quantize_spend(coffer__selection *selection, coffer__quantize_job *job,
                                     const coffer__mcf_pack *pack, coffer__tensors_stream *stream,
                                     coffer_error *err);
/* The smallest type of each free tensor that has the quality. */
coffer_status coffer__quantize_reach(coffer__selection *selection, coffer__quantize_job *job,
                                     coffer__tensors_stream *stream, coffer_error *err);

#endif
