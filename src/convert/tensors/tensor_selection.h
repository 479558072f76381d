/* A conversion of tensors: its settings, the tensors that it writes and their new types, and their payloads
 * in pieces. */
#ifndef COFFER_CONVERT_TENSOR_SELECTION_H
#define COFFER_CONVERT_TENSOR_SELECTION_H

#include "base/work.h"
#include "coffer/report.h"
#include "convert/convert.h"
#include "convert/tensors/tensors.h"

/* The tensors of one or more sets that are written to a new file, and their new types. */
typedef struct coffer__chosen_tensor {
    const coffer_tensors *set;
    size_t index; /* in the set */
    const coffer_tensor *tensor;
    coffer_dtype dtype; /* what it becomes; that of the tensor, COFFER_DTYPE_NONE included, when it stays */
    bool as_is;         /* copy the bytes of the payload */
    bool quantize;      /* dtype is a quantized one, and the tensor has to become it */
    bool decoded;       /* becomes F32 only because the new file does not have its type */
    bool repack;        /* dtype is a quantized one with the same codes and scales as the tensor's blocks */
    bool activations;   /* with a zero point */
    uint64_t size;      /* bytes of the new payload */
} coffer__chosen_tensor;

typedef struct coffer__selection {
    coffer__chosen_tensor *items; /* by name, once finished */
    size_t count, capacity;
    uint64_t bytes; /* of all new payloads */
} coffer__selection;

typedef struct coffer__selection_opts {
    coffer_dtype cast; /* real floats of other types become this; COFFER_DTYPE_NONE = keep */
    const char *const *include, *const *exclude;
    size_t include_count, exclude_count;
    bool keep_quantized; /* the new file has the quantized types of ours */
} coffer__selection_opts;

/* Chooses from a set, which must outlive the selection. */
coffer_status coffer__selection_add(coffer__selection *selection, const coffer_tensors *set,
                                    const coffer__selection_opts *opts, coffer_error *err);
/* Sorts. COFFER_E_DUPLICATE when two sets have a tensor of the same name, COFFER_E_INVALID_ARGUMENT when an
 * `include` matches nothing in any of the sets, or nothing is left. */
coffer_status coffer__selection_finish(coffer__selection *selection, const coffer_tensors *const *sets,
                                       size_t set_count, const coffer__selection_opts *opts,
                                       coffer_error *err);
void coffer__selection_free(coffer__selection *selection); /* its items, not itself */

/* Chooses a quantized type of ours for each decoded tensor whose blocks it holds exactly. Reads the payloads
 * of the types that may qualify. */
coffer_status coffer__selection_keep_blocks(coffer__selection *selection, coffer_error *err);

/* ---- Notes: what the new file does not keep as it was ---- */

typedef struct coffer__type_change {
    const char *from, *to;
    const char *how; /* "decoded to" */
    uint64_t tensors, before, after;
} coffer__type_change;

/* Totals by types; what does not fit is added to the last one. */
typedef struct coffer__type_changes {
    coffer__type_change items[32];
    size_t count;
} coffer__type_changes;

void coffer__type_changes_add(coffer__type_changes *changes, const coffer_tensor *tensor, const char *how,
                              const char *to, uint64_t after);
/* A note for each. notes : may be NULL. */
void coffer__type_changes_note(coffer_report *notes, const coffer__type_changes *changes);
/* The same for the types of a selection. */
void coffer__selection_note(coffer_report *notes, const coffer__selection *selection);

/* The settings that all conversions of tensors have in common, and opening their input. */

/* One text a line, for the tables of conversions. */
#define COFFER__TENSOR_OPTIONS                                                                    \
    { "cast", "TYPE", "convert floats of other types to this one", "keep|f16|bf16|f32", "keep" }, \
        { "include", "GLOB", "only tensors whose name matches" },                                 \
    {                                                                                             \
        "exclude", "GLOB", "leave out tensors whose name matches"                                 \
    }

typedef struct coffer__tensors_settings {
    coffer__selection_opts selection;
    uint64_t shard_size; /* 0 = one file */
    const char **globs;  /* memory of include and exclude */
} coffer__tensors_settings;

/* "include" and "exclude" may be there several times. */
coffer_status coffer__tensors_settings_read(coffer__tensors_settings *out, const coffer__convert_job *job,
                                            coffer_error *err);
void coffer__tensors_settings_free(coffer__tensors_settings *settings);
/* "4096", "5GB" (powers of ten), "2MiB", "64K" (powers of two). Untouched when the setting is not there. */
coffer_status coffer__job_size(uint64_t *out, const coffer__convert_job *job, const char *name,
                               coffer_error *err);

/* The input of the job as a set of tensors. It is read, not mapped: pages of a mapping would count as memory
 * of ours. */
coffer_status coffer__tensors_settings_open(coffer_tensors **out, const coffer__convert_job *job,
                                            coffer_error *err);

/* Copies tensors into a new file as another type: elements are read and converted on all threads while the
 * batch before is written. Memory does not grow with the tensor. */
typedef struct coffer__tensors_stream coffer__tensors_stream;

/* Takes the bytes in their order. May be called on another thread than the one that runs the stream, never by
 * two at a time. */
typedef coffer_status (*coffer__tensors_put)(void *context, const void *bytes, size_t len, coffer_error *err);

/* threads : 0 = one per core.     progress : may be NULL.     total : bytes of all new payloads, for it. */
coffer_status coffer__tensors_stream_new(coffer__tensors_stream **out, uint32_t threads,
                                         const coffer_limits *limits, const coffer_progress *progress,
                                         uint64_t total, coffer_error *err);
void coffer__tensors_stream_free(coffer__tensors_stream *stream);
/* Copies a tensor; its payload unchanged where the choice says so. */
coffer_status coffer__tensors_stream_run(coffer__tensors_stream *stream, const coffer__chosen_tensor *chosen,
                                         coffer__tensors_put put, void *context, coffer_error *err);
/* Adds bytes that were written without the stream to the progress; may return COFFER_E_CANCELLED. */
coffer_status coffer__tensors_stream_count(coffer__tensors_stream *stream, uint64_t bytes, coffer_error *err);

/* ---- For other work on the same threads ---- */

uint32_t coffer__tensors_stream_pieces(const coffer__tensors_stream *stream); /* useful size of a batch */
uint64_t coffer__tensors_stream_memory(const coffer__tensors_stream *stream); /* bytes that it may take */
coffer__work *coffer__tensors_stream_work(const coffer__tensors_stream *stream);

#endif
