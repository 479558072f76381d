/* The inside of a set of tensors. Each kind of file has a reader: a row of the table in tensors_open.c
 * with the functions below. Its `open` adds the tensors in any order; the set copies names and shapes,
 * sorts, looks up and converts. */
#ifndef COFFER_CONVERT_TENSORS_H
#define COFFER_CONVERT_TENSORS_H

#include "coffer/mcf.h"
#include "coffer/tensors.h"
#include "outside/models/gguf.h"

/* Names of files (coffer__tensors_files_free). */
typedef struct coffer__tensors_files {
    char **names;
    size_t count, capacity;
} coffer__tensors_files;

/* Rows of a head: both halves of it one after the other, or their rows in turn. */
typedef enum coffer__row_order {
    COFFER__ROWS_AS_STORED,
    COFFER__ROWS_INTERLEAVED, /* halves in the file, in turn for readers */
    COFFER__ROWS_SPLIT        /* in turn in the file, halves for readers */
} coffer__row_order;

/* One tensor of the set. */
typedef struct coffer__tensors_entry {
    coffer_tensor tensor; /* its name and dims are in `memory` */
    size_t index;         /* the reader's own number of it */
    size_t part;          /* which of the set's files */
    void *memory;
    bool damaged; /* the file records it under COFFER__TENSORS_DAMAGED_KEY */
    /* The form that readers get in place of the file's (tensor_forms.c): */
    char *new_name; /* owned; NULL = the file's */
    float *numbers; /* owned; the elements as float32 */
    coffer__row_order row_order;
    uint64_t head_rows; /* of a head, with another order than COFFER__ROWS_AS_STORED */
} coffer__tensors_entry;

typedef struct coffer__tensors_reader {
    const char *kind;       /* as in kinds.c */
    const char *shown_kind; /* what coffer_tensors_kind says */
    const char *title;      /* for people: "GGUF model" */
    bool has_checksums;     /* reading all payloads verifies them */
    bool repairs;           /* opens a damaged file (set->salvage), for coffer_tensors_repair */
    /* Adds the file as a part (coffer__tensors_add_part) and its tensors; may set set->state. On failure
     * `close` is called all the same, for what state there is. */
    coffer_status (*open)(coffer_tensors *set, coffer_source *src, coffer_error *err);
    /* Reads payload bytes; the range has been checked. NULL: they are in the part, at the tensor's offset. */
    coffer_status (*read)(void *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                          uint64_t begin, size_t len, coffer_error *err);
    /* Compares payload bytes with the checksums of the file; NULL: the kind has none. The range has been
     * checked. */
    coffer_status (*verify)(const coffer_tensors *set, const coffer__tensors_entry *entry, uint64_t begin,
                            uint64_t len, coffer_error *err);
    /* `decode` knows types that have no number of ours, too. */
    bool decodes_others;
    /* Elements [first, first + count) of a tensor whose type is not plain, as float32. first and count are
     * whole rows, a row being the last dimension; the range has been checked. NULL: all are plain. */
    coffer_status (*decode)(float *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                            uint64_t first, uint64_t count, coffer_error *err);
    /* Adds the metadata to `out`, a map. NULL: the kind has no metadata. Failures stick in the node. */
    coffer_status (*describe)(coffer_node *out, const coffer_tensors *set, coffer_error *err);
    /* Adds one value of the metadata in full. COFFER_E_NOT_FOUND, without a text, for an unknown key.
     * NULL: `describe` has all values in full. */
    coffer_status (*describe_value)(coffer_node *out, const coffer_tensors *set, const char *name,
                                    coffer_error *err);
    /* The files that one file contains next to the tensors, and the bytes of one (coffer__free). NULL: it has
     * none. */
    coffer_status (*list_files)(coffer__tensors_files *out, const coffer_tensors *set, coffer_error *err);
    coffer_status (*read_file)(uint8_t **out, size_t *len, const coffer_tensors *set, const char *name,
                               coffer_error *err);
    /* Reports bytes of the file that belong to no tensor, and what `open` accepts although it is not right.
     * full : verifies other bytes as well. NULL: `open` refuses all of it. */
    coffer_status (*check)(coffer_report *out, const coffer_tensors *set, bool full, coffer_error *err);
    void (*close)(void *state); /* NULL and a NULL state allowed */
} coffer__tensors_reader;

typedef struct coffer__tensors_part {
    coffer_source *src;
    bool owned;
} coffer__tensors_part;

struct coffer_tensors {
    const coffer__tensors_reader *reader;
    void *state; /* the reader's */
    coffer_limits limits;
    coffer_access access;  /* for files that the reader opens */
    bool allow_damaged;    /* payloads with a wrong checksum are read, not refused */
    coffer_source *opened; /* closed with the set; may be NULL */
    coffer__tensors_part *parts;
    size_t part_count, part_capacity;
    coffer__tensors_entry *entries; /* sorted by name once the set is open */
    size_t count, capacity;
    char *folder;                            /* the path of a model that is a folder; else NULL */
    struct coffer__tensors_salvage *salvage; /* of a damaged file that is repaired; else NULL */
};

/* The losses of a damaged file: tensors that are not complete are left out of the set. */
typedef struct coffer__tensors_salvage {
    coffer_report *report;
    char **names; /* of lost tensors */
    size_t count, capacity;
} coffer__tensors_salvage;

/* For readers: a part of the file cannot be used. name : of the tensor, or NULL. context : the set. */
coffer_status coffer__tensors_lose(void *context, const char *name, const coffer_error *why,
                                   coffer_error *err);

/* ---- For readers, while they open ---- */

/* owned : closed with the set, and at once when this fails. */
coffer_status coffer__tensors_add_part(coffer_tensors *set, coffer_source *src, bool owned,
                                       coffer_error *err);
/* A tensor of the part that was added last. name, dims : copied (name_len bytes, not NUL-terminated; text
 * that is not UTF-8 or contains a NUL is COFFER_E_BAD_TEXT). type_name : must outlive the set. elements and
 * file are filled in. */
coffer_status coffer__tensors_add(coffer_tensors *set, const coffer_tensor *tensor, size_t name_len,
                                  size_t index, coffer_error *err);
/* The number of elements of a shape. COFFER_E_SIZE_MISMATCH when it does not fit into 64 bits. */
coffer_status coffer__tensors_elements(uint64_t *out, uint32_t rank, const uint64_t *dims, coffer_error *err);

/* ---- For users inside the library ---- */

const coffer__tensors_entry *coffer__tensors_entry_at(const coffer_tensors *set, size_t tensor);
/* True when a tensor of a packed type can be decoded. */
bool coffer__tensors_can_decode(const coffer_tensors *set, size_t tensor);
/* Verifies bytes that are about to be read through coffer__tensors_source_at. */
coffer_status coffer__tensors_verify(const coffer_tensors *set, size_t tensor, uint64_t begin, uint64_t len,
                                     coffer_error *err);
/* The file that contains the payload, at tensor->offset; NULL when the payload is not stored plainly. Call
 * coffer__tensors_verify before using the bytes. */
coffer_source *coffer__tensors_source_at(const coffer_tensors *set, size_t tensor);

/* Opens by a reader that the caller has chosen. opts : all members there. owned : src is closed with the set,
 * unless this fails. */
coffer_status coffer__tensors_open_with(coffer_tensors **out, const coffer__tensors_reader *reader,
                                        coffer_source *src, bool owned, const coffer_tensors_open_opts *opts,
                                        coffer_error *err);

/* The same for a damaged file. salvage : gets what is lost. */
coffer_status coffer__tensors_open_damaged(coffer_tensors **out, const coffer__tensors_reader *reader,
                                           coffer_source *src, coffer__tensors_salvage *salvage,
                                           const coffer_tensors_open_opts *opts, coffer_error *err);
/* Opens the file with the tensors of a folder, or a file, and finds its reader. COFFER_E_NOT_FOUND when the
 * folder has none, COFFER_E_INVALID_ARGUMENT when it has several that do not belong together. */
coffer_status coffer__tensors_open_source(coffer_source **src, const coffer__tensors_reader **reader,
                                          const char *path, coffer_access access, coffer_error *err);
/* The number of a shard and of all shards in "NAME-00002-of-00003.safetensors". stem_len : of NAME. */
bool coffer__tensors_is_shard(const char *name, size_t *stem_len, unsigned *number, unsigned *total);

/* The key that lists the tensors which a repair lost: a JSON list in the metadata of safetensors, an array of
 * strings in GGUF. */
#define COFFER__TENSORS_LOST_KEY "coffer.lost"
struct coffer__buffer;
struct coffer__selection;

/* The same for tensors that were damaged when the file was written: their bytes are those of the damage. */
#define COFFER__TENSORS_DAMAGED_KEY "coffer.damaged"

/* Names under one of these keys, or to be written there. */
typedef struct coffer__tensors_names {
    char **items;
    size_t count, capacity;
} coffer__tensors_names;

void coffer__tensors_names_free(coffer__tensors_names *names);
coffer_status coffer__tensors_names_add(coffer__tensors_names *names, const char *text, size_t len,
                                        coffer_error *err);
/* Sorts, so that `have` can search. */
void coffer__tensors_names_sort(coffer__tensors_names *names);
bool coffer__tensors_names_have(const coffer__tensors_names *sorted, const char *text);
/* The value of the key: a JSON list, or an array of strings with its type and length. */
void coffer__tensors_names_put_json(struct coffer__buffer *out, const coffer__tensors_names *names);
void coffer__tensors_names_put_gguf(struct coffer__buffer *out, const coffer__tensors_names *names);
/* The names that the file has under the key; none for kinds of file that do not record any. */
coffer_status coffer__tensors_recorded_names(coffer__tensors_names *out, const coffer_tensors *set,
                                             const char *key, coffer_error *err);
/* The tensors that an earlier repair could not save, for COFFER__TENSORS_LOST_KEY of a file that is written
 * from the set. */
coffer_status coffer__tensors_lost_names(coffer__tensors_names *out, const coffer_tensors *set,
                                         coffer_error *err);
/* Says in the notes, which may be NULL, that a file is written without them. */
void coffer__tensors_note_lost(coffer_report *notes, const coffer__tensors_names *lost);
/* The names for COFFER__TENSORS_DAMAGED_KEY of a file that is written from a selection of the set, sorted:
 * those that the input records, and where the caller accepts damage (coffer_source_keep_damaged) those that
 * are damaged now, sections included. Reads their payloads then. */
coffer_status coffer__tensors_damaged_names(coffer__tensors_names *out, const coffer_tensors *set,
                                            const struct coffer__selection *selection, coffer_error *err);

/* ---- tensor_forms.c: tensors as another program has them; for conversions, after the set was opened ---- */

/* Names are unique when all tensors are renamed; coffer__tensors_sort brings them into their new order. */
coffer_status coffer__tensors_rename(coffer_tensors *set, size_t tensor, const char *name, coffer_error *err);
coffer_status coffer__tensors_sort(coffer_tensors *set, coffer_error *err);
void coffer__tensors_remove(coffer_tensors *set, size_t tensor);
/* COFFER_E_BAD_VALUE when the rows are not whole heads of an even number of rows. */
coffer_status coffer__tensors_reorder(coffer_tensors *set, size_t tensor, coffer__row_order order,
                                      uint64_t heads, coffer_error *err);
/* Replaces the elements of a small float tensor by their sum with a number, as float32. */
coffer_status coffer__tensors_add_number(coffer_tensors *set, size_t tensor, float number, coffer_error *err);
/* True when the bytes that are read are not those of the file. */
bool coffer__tensors_has_form(const coffer__tensors_entry *entry);
/* The file's bytes of a tensor; `read` of the functions below. */
typedef coffer_status (*coffer__tensors_read_stored)(void *out, const coffer_tensors *set,
                                                     const coffer__tensors_entry *entry, uint64_t begin,
                                                     size_t len, coffer_error *err);
coffer_status coffer__tensors_read_form(void *out, const coffer_tensors *set,
                                        const coffer__tensors_entry *entry, uint64_t begin, size_t len,
                                        coffer__tensors_read_stored read, coffer_error *err);
/* As the reader's `decode`. */
coffer_status coffer__tensors_decode_form(float *out, const coffer_tensors *set,
                                          const coffer__tensors_entry *entry, uint64_t first, uint64_t count,
                                          coffer_error *err);

/* ---- tensors_files.c: configuration, tokenizer and other files of the model ---- */

/* Weights in other forms are not files next to the tensors. */
bool coffer__tensors_is_weights(const char *name);

coffer_status coffer__tensors_files_add(coffer__tensors_files *files, const char *name, coffer_error *err);
void coffer__tensors_files_free(coffer__tensors_files *files); /* its names, not itself */
/* True for a folder and a file that may contain files. */
bool coffer__tensors_has_files(const coffer_tensors *set);
/* In the order of their names, without weights. */
coffer_status coffer__tensors_files_list(coffer__tensors_files *out, const coffer_tensors *set,
                                         coffer_error *err);
coffer_status coffer__tensors_file_read(uint8_t **out, size_t *len, const coffer_tensors *set,
                                        const char *name, coffer_error *err);
struct coffer__node_changes;
/* Compares the files of two models: JSON key by key, others by their bytes. */
coffer_status coffer__tensors_files_diff(struct coffer__node_changes *changes, const coffer_tensors *a,
                                         const coffer_tensors *b, coffer_error *err);

/* The reader for a kind of file; NULL when it has no tensors. */
const coffer__tensors_reader *coffer__tensors_find_reader(const char *kind);

struct coffer__safetensors_metadata;
/* The metadata of a safetensors set; NULL for a set of another kind. */
const struct coffer__safetensors_metadata *coffer__safetensors_metadata_of(const coffer_tensors *set);

/* The readers: mcf_tensors.c, safetensors_tensors.c, gguf_tensors.c, numpy_tensors.c. */
extern const coffer__tensors_reader coffer__tensors_mcf;
extern const coffer__tensors_reader coffer__tensors_safetensors;
/* src is model.safetensors.index.json; the shards are in the same folder. */
extern const coffer__tensors_reader coffer__tensors_safetensors_index;
/* src is the first of "NAME-00001-of-00003.safetensors", which have no index. */
extern const coffer__tensors_reader coffer__tensors_safetensors_shards;
extern const coffer__tensors_reader coffer__tensors_gguf;
extern const coffer__tensors_reader coffer__tensors_npz;
extern const coffer__tensors_reader coffer__tensors_npy;

/* The GGUF or MCF handle of a set of tensors. */

/* NULL when the set is of another kind. Lives as long as the set. */
const coffer__gguf *coffer__gguf_of(const coffer_tensors *set);

/* The MCF model that a set of tensors was opened from. */

/* NULL when the set is of another kind. Lives as long as the set. */
const coffer_mcf *coffer__mcf_model_of(const coffer_tensors *set);

#endif
