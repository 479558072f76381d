/* The same model as transformers and llama.cpp have it: names of architectures and tensors, in both
 * directions.
 */
#ifndef COFFER_CONVERT_GGUF_NAMES_H
#define COFFER_CONVERT_GGUF_NAMES_H

#include "base/buffer.h"
#include "coffer/report.h"
#include "convert/convert.h"
#include "convert/tensors/tensors.h"

#define COFFER__GGUF_NAMES_OPTION                                                                      \
    {                                                                                                  \
        "names", "KIND", "names and row order of tensors: of the file, or of transformers", "keep|hf", \
            "keep"                                                                                     \
    }

/* The key of a GGUF file whose tensors had other names before; a colon and what stood before all of them may
 * follow the value. */
#define COFFER__GGUF_NAMES "mcf.names"
#define COFFER__GGUF_NAMES_HF "huggingface"

/* The traits of an architecture. */
enum {
    COFFER__GGUF_PERMUTED = 1,   /* rows of queries and keys are interleaved in GGUF */
    COFFER__GGUF_PLUS_ONE = 2,   /* norms are stored with 1 added */
    COFFER__GGUF_TIED = 4,       /* output.weight must not be there */
    COFFER__GGUF_HEAD_DIM = 8,   /* has the keys attention.key_length and value_length */
    COFFER__GGUF_LAYER_NORM = 16 /* the norm has a mean: attention.layer_norm_epsilon */
};

typedef struct coffer__gguf_arch {
    const char *model_type; /* of config.json */
    const char *name;       /* general.architecture */
    uint32_t traits;
    const struct coffer__gguf_name *names; /* that are different; ends with NULL */
} coffer__gguf_arch;

/* NULL for a model that llama.cpp does not have, or that needs more than new names. */
const coffer__gguf_arch *coffer__gguf_arch_for(const char *model_type);
/* By general.architecture. Mistral and Llama have the same. */
const coffer__gguf_arch *coffer__gguf_arch_named(const char *name);

typedef enum coffer__gguf_match {
    COFFER__GGUF_UNKNOWN,
    COFFER__GGUF_RENAMED,
    COFFER__GGUF_LEFT_OUT /* llama.cpp computes the tensor itself, or refuses a file that has it */
} coffer__gguf_match;

/* The name in GGUF of a tensor of transformers. */
coffer__gguf_match coffer__gguf_name_of(coffer__buffer *out, const coffer__gguf_arch *arch, const char *name);
/* The part of a name that models with more than one task put before it: "bert.". */
size_t coffer__gguf_prefix_len(const coffer__gguf_arch *arch, const char *name);

typedef enum coffer__gguf_direction { COFFER__TO_GGUF, COFFER__FROM_GGUF } coffer__gguf_direction;

/* Heads of queries, and of keys and values. */
typedef struct coffer__gguf_heads {
    uint64_t queries, keys;
} coffer__gguf_heads;

/* Gives the tensor its form in the other program; `name` : of transformers. */
coffer_status coffer__gguf_reshape(coffer_tensors *set, size_t tensor, const coffer__gguf_arch *arch,
                                   const char *name, coffer__gguf_heads heads,
                                   coffer__gguf_direction direction, coffer_error *err);

bool coffer__gguf_wants_hf_names(const coffer__convert_job *job);
/* Gives the tensors of a GGUF set the names and forms of transformers: those of a file that was converted
 * from them, and with `requested` those of any file. COFFER_E_UNSUPPORTED when that is requested of an
 * unknown architecture. notes : may be NULL; gets the tensors that keep their names. */
coffer_status coffer__gguf_restore_names(coffer_tensors *set, bool requested, coffer_report *notes,
                                         coffer_error *err);

#endif
