/* Packs sets of tensors and their metadata into one MCF model. */
#ifndef COFFER_CONVERT_MCF_PACK_H
#define COFFER_CONVERT_MCF_PACK_H

#include "base/buffer.h"
#include "coffer/mcf.h"
#include "convert/tensors/tensor_selection.h"

/* ModelInfo while it is put together: the numbers, and a table that owns its texts. */
typedef struct coffer__mcf_info {
    coffer_mcf_model_info info; /* its kvs and texts are set by coffer__mcf_info_finish */
    char *model_name, *base_model;
    coffer_mcf_kv *kvs; /* keys and texts owned */
    size_t count, capacity;
} coffer__mcf_info;

#define COFFER__MCF_INFO_INIT                              \
    {                                                      \
        COFFER_MCF_MODEL_INFO_INIT, NULL, NULL, NULL, 0, 0 \
    }

/* The key is prefix followed by name. */
coffer_status coffer__mcf_info_add_u32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       uint32_t value, coffer_error *err);
coffer_status coffer__mcf_info_add_f32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       float value, coffer_error *err);
coffer_status coffer__mcf_info_add_text(coffer__mcf_info *info, const char *prefix, const char *name,
                                        const char *text, size_t len, coffer_error *err);
/* Copies the text; replaces an existing name. */
coffer_status coffer__mcf_info_set_name(char **name, const char *text, size_t len, coffer_error *err);
/* Sorts the table and gives all of it as the writer wants it. COFFER_E_DUPLICATE for a key that is there
 * twice. */
coffer_status coffer__mcf_info_finish(const coffer_mcf_model_info **out, coffer__mcf_info *info,
                                      coffer_error *err);
void coffer__mcf_info_free(coffer__mcf_info *info); /* frees the members, not info itself */

/* The family that a model's type names: its members have its name in theirs, "qwen2_moe", "gemma3_text". 0
 * for none. */
uint32_t coffer__mcf_arch_of(const char *model_type);
/* The numbers of a Hugging Face config.json, of its "text_config" where it has one, into info. name : of the
 * file, for messages. */
coffer_status coffer__mcf_info_from_config(coffer__mcf_info *info, const uint8_t *text, size_t len,
                                           const char *name, const coffer_limits *limits, coffer_error *err);

/* A file that becomes a section. */
typedef struct coffer__mcf_resource {
    uint32_t type, version;
    char *path;
    uint8_t *bytes;
    size_t len;
} coffer__mcf_resource;

/* A file of the folder that is stored under its name. */
typedef struct coffer__mcf_packed_file {
    char *name;
    coffer_mcf_file_kind kind;
    uint8_t *bytes;
    size_t len;
} coffer__mcf_packed_file;

/* A file that was found and not packed. */
typedef struct coffer__mcf_left_out {
    char *name;
    uint64_t size;
    const char *reason;
} coffer__mcf_left_out;

/* Writes the payload of a tensor that was begun. position : of the tensor in the selection. */
typedef coffer_status (*coffer__mcf_put_tensor)(void *context, const coffer__chosen_tensor *chosen,
                                                size_t position, coffer__tensors_stream *stream,
                                                coffer_mcf_writer *writer, coffer_error *err);

typedef struct coffer__mcf_pack {
    coffer_tensors **sets;
    size_t set_count, set_capacity;
    coffer__mcf_resource *resources;
    size_t resource_count, resource_capacity;
    coffer__mcf_packed_file *files;
    size_t file_count, file_capacity;
    coffer__mcf_left_out *left_out;
    size_t left_out_count, left_out_capacity;
    bool incomplete;        /* some of them could not be read */
    uint64_t found, packed; /* files of the inputs */
    char *chat_template;    /* of chat_template.jinja; NULL when the folder has none */
    size_t chat_template_len;
    char *chat_template_path;
    coffer__mcf_info info;
    bool has_info;             /* a model that is packed again brought its own */
    coffer_mcf_pack_opts opts; /* all members there */
    coffer_limits limits;
    bool tensors_only;                 /* write no sections and files */
    bool hf_names;                     /* tensors of GGUF files get the names of transformers */
    const char *also_read[2];          /* other inputs, which cannot be the output either; may be NULL */
    coffer__mcf_put_tensor put_tensor; /* for the tensors whose `quantize` is set; may be NULL when none is */
    void *put_context;
} coffer__mcf_pack;

coffer_status coffer__mcf_pack_init(coffer__mcf_pack *pack, const coffer_mcf_pack_opts *opts,
                                    coffer_error *err);
/* Closes the sets, frees the resources. */
void coffer__mcf_pack_free(coffer__mcf_pack *pack);
/* A folder, a file of tensors, or one of the files that become a section. (mcf_pack_inputs.c) */
coffer_status coffer__mcf_pack_add_input(coffer__mcf_pack *pack, const char *path, coffer_error *err);
/* Adds an open set, which the pack owns from now on, also on failure. Also takes the metadata of a GGUF
 * file. */
coffer_status coffer__mcf_pack_add_set(coffer__mcf_pack *pack, coffer_tensors *set, coffer_error *err);
/* Sets the model name: from the options, else the name of the folder, or of the file without its
 * extension. */
coffer_status coffer__mcf_pack_name(coffer__mcf_pack *pack, const char *path, bool is_folder,
                                    coffer_error *err);
/* Reads a file that may not be larger than limits.json_bytes, and adds a NUL. (mcf_pack_inputs.c) */
coffer_status coffer__mcf_pack_read(uint8_t **out, size_t *len, const char *path, const coffer_limits *limits,
                                    coffer_error *err);
/* Takes the other files of a folder, and the headers of its safetensors files. What is left out is noted.
 * (mcf_pack_files.c) */
coffer_status coffer__mcf_pack_folder(coffer__mcf_pack *pack, const char *folder, coffer_error *err);
/* The headers of the safetensors files of a set. */
coffer_status coffer__mcf_pack_heads(coffer__mcf_pack *pack, const coffer_tensors *set, coffer_error *err);
/* Adds a file; bytes belong to the pack from now on, also on failure. COFFER_E_DUPLICATE when another file
 * has the name. */
coffer_status coffer__mcf_pack_add_file(coffer__mcf_pack *pack, const char *name, coffer_mcf_file_kind kind,
                                        uint8_t *bytes, size_t len, coffer_error *err);
/* Takes the files of a model that is packed again. */
coffer_status coffer__mcf_pack_take_files(coffer__mcf_pack *pack, const coffer_mcf *model, coffer_error *err);
coffer_status coffer__mcf_pack_write_files(coffer_mcf_writer *writer, const coffer__mcf_pack *pack,
                                           coffer_error *err);
/* Adds "files" to a node. */
void coffer__mcf_pack_report(coffer_node *out, const coffer__mcf_pack *pack);
void coffer__mcf_pack_free_files(coffer__mcf_pack *pack);
/* tokenizer_config.json with the chat template in it (coffer__buffer_free). config : the file, or NULL. */
coffer_status coffer__mcf_pack_fold(coffer__buffer *out, const coffer__mcf_resource *config,
                                    const char *chat_template, size_t template_len,
                                    const coffer_limits *limits, coffer_error *err);

/* COFFER_E_INVALID_ARGUMENT when the output is one of the files that are read. */
coffer_status coffer__mcf_pack_check_output(const char *out_path, const coffer__mcf_pack *pack,
                                            coffer_error *err);
/* The tensors by the options of the pack (coffer__selection_free). */
coffer_status coffer__mcf_pack_choose(coffer__selection *out, const coffer__mcf_pack *pack,
                                      coffer_error *err);
coffer_status coffer__mcf_pack_write_chosen(const char *out_path, coffer__mcf_pack *pack,
                                            const coffer__selection *selection, coffer_error *err);
/* All three: checks everything that can be checked before, then writes. */
coffer_status coffer__mcf_pack_write(const char *out_path, coffer__mcf_pack *pack, coffer_error *err);

#endif
