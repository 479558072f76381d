/* Samples of any origin for a training set. An input describes its fields and
 * gives one sample after the other; dataset_write.c does the rest. */
#ifndef COFFER_CONVERT_DATASET_INPUT_H
#define COFFER_CONVERT_DATASET_INPUT_H

#include "base/buffer.h"
#include "base/table.h"
#include "coffer/dataset.h"
#include "coffer/media.h"
#include "outside/archives/folder_walk.h"

/* ---- Fields ---- */

typedef struct coffer__dataset_schema {
    coffer__arena names;
    coffer_mldf_field *fields;
    size_t count, capacity;
} coffer__dataset_schema;

/* A field after the others, its name copied; flags and dims are for the caller to fill in. COFFER_E_BAD_TEXT
 * and COFFER_E_LIMIT for a name that cannot be one. Inputs see to it that
 * names are different. */
coffer_status coffer__dataset_add_field(coffer_mldf_field **out, coffer__dataset_schema *schema,
                                        const char *name, size_t name_len, uint16_t type, coffer_error *err);

static inline bool coffer__dataset_is_image(uint16_t type)
{
    return type == COFFER_MLDF_IMAGE_RAW || type == COFFER_MLDF_IMAGE_JPEG || type == COFFER_MLDF_IMAGE_PNG;
}
static inline bool coffer__dataset_is_audio(uint16_t type)
{
    return type == COFFER_MLDF_AUDIO || type == COFFER_MLDF_AUDIO_COMPRESSED;
}
/* The type that elements of an array are stored as: the format has none for booleans. */
static inline coffer_dtype coffer__dataset_stored_dtype(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_BOOL ? COFFER_DTYPE_U8 : dtype;
}
/* Types with an array descriptor. */
bool coffer__dataset_is_array(uint16_t type);

/* ---- Samples ---- */

typedef enum coffer__dataset_form {
    COFFER__DATASET_ABSENT = 0,
    COFFER__DATASET_SCALAR, /* i64 or f64 as the field is */
    COFFER__DATASET_READY, /* bytes as they are to be stored, with dims or an entry where the type has them */
    COFFER__DATASET_FILE   /* bytes of a file (JPEG, WAV, .npy, text …) that the field's type takes apart */
} coffer__dataset_form;

typedef struct coffer__dataset_value {
    coffer__dataset_form form;
    bool is_path; /* the bytes are a path, to be read by `load` */
    int64_t i64;
    double f64;
    const uint8_t *bytes; /* in `own`, or borrowed from what outlives the batch */
    size_t size;
    coffer__buffer own;
    bool has_entry;
    coffer_mldf_entry entry;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
} coffer__dataset_value;

typedef struct coffer__dataset_sample {
    uint64_t index;                /* in the input, those that are left out counted */
    uint64_t units;                /* files, members or lines that it is made of */
    coffer__buffer name;           /* what messages call it: a path, a member, a line */
    coffer_error failure;          /* of loading it */
    coffer__dataset_value *values; /* one for each field */
    coffer_mldf_origin origin;     /* of the files that were read for it */
    bool only_examine;             /* files are examined for the origin, but not read */
} coffer__dataset_sample;

/* Makes it ready for the next sample of the input. */
void coffer__dataset_clear_sample(coffer__dataset_sample *sample, size_t fields);

/* ---- Inputs ---- */

/* Inputs with fewer bytes become sets with small pages: 2 MiB of padding would be much for them. */
#define COFFER__DATASET_LARGE ((uint64_t)64 << 20)
#define COFFER__DATASET_SMALL_PAGE 4096

/* Something of the input that is not packed. */
typedef struct coffer__left_out {
    const char *name, *text;
    coffer_status code;
    bool expected; /* hidden, or left out on request */
} coffer__left_out;

typedef struct coffer__dataset_input {
    coffer__dataset_schema schema;
    const char *unit; /* what is counted: "files" */
    uint64_t found;   /* of them, left_out included */
    coffer__left_out *left_out;
    size_t left_out_count, left_out_capacity;
    coffer__arena left_out_names;
    uint64_t count;           /* of samples */
    uint64_t class_count;     /* 0: without classes */
    const char *kept_as_text; /* a field that names files which are not read in; NULL = none */
    uint64_t bytes;           /* about how many the samples have; 0 = unknown */
    const char *note;         /* a change that all samples have in common; NULL = none */
    bool shares_payloads;     /* the same bytes come again and again */
    coffer__digest *seen; /* of what the samples come from: an interrupted pack of another input is refused */
    /* The next sample, in order: values are absent before. *more is false after the last. */
    coffer_status (*next)(bool *more, coffer__dataset_sample *sample, struct coffer__dataset_input *input,
                          coffer_error *err);
    /* Reads what `next` only named; any thread. May be NULL. */
    coffer_status (*load)(coffer__dataset_sample *sample, const struct coffer__dataset_input *input,
                          coffer_error *err);
    /* Begins again. */
    coffer_status (*rewind)(struct coffer__dataset_input *input, coffer_error *err);
    void (*close)(struct coffer__dataset_input *input);
} coffer__dataset_input;

/* Notes something of the input that is not packed. text : a constant. Does not change `found`. */
coffer_status coffer__dataset_leave_out(coffer__dataset_input *input, const char *name, coffer_status code,
                                        const char *text, bool expected, coffer_error *err);
/* Zeroed memory for an input of this size, with its digest. */
coffer_status coffer__dataset_input_new(void *out, size_t size, coffer_error *err);
/* Frees the common part of an input; called by its close. */
void coffer__dataset_input_free(coffer__dataset_input *input);
static inline void coffer__dataset_input_close(coffer__dataset_input *input)
{
    if (input)
        input->close(input);
}

/* Copies into the value. */
coffer_status coffer__dataset_value_copy(coffer__dataset_value *value, const void *bytes, size_t size,
                                         coffer_error *err);

/* Wraps the input in one that has a field "label" with numbers for the texts of a column. */
coffer_status coffer__dataset_number_labels(coffer__dataset_input **input, const char *column,
                                            coffer_error *err);

/* A kind of files in a folder. */
typedef struct coffer__file_kind {
    coffer_dataset_kind kind;
    const char *field;
    uint16_t type;
    const char *title, *other_title; /* "a picture", "not a picture" */
    const char *const *extensions;
} coffer__file_kind;

/* Chooses the kind of a folder's samples and leaves its files in the list; the input gets all others as left
 * out. folders : descriptors. */
coffer_status coffer__dataset_sort_out(const coffer__file_kind **out, coffer__folder_list *list,
                                       const int *folders, coffer__dataset_input *input,
                                       const coffer_mldf_pack_opts *opts, coffer_error *err);

/* One for each kind of input. Sources are borrowed. Paths and options: as in coffer_mldf_pack. */
/* folders : those that the list is of. list : their files; the input takes ownership, the list is empty
 * afterwards. */
coffer_status coffer__dataset_open_folders(coffer__dataset_input **out, const char *const *folders,
                                           size_t folder_count, coffer__folder_list *list,
                                           const coffer_mldf_pack_opts *opts, const coffer_limits *limits,
                                           coffer_error *err);
coffer_status coffer__dataset_open_tar(coffer__dataset_input **out, coffer_source *const *shards,
                                       size_t count, const coffer_limits *limits, coffer_error *err);
/* folder : a descriptor of the folder that paths are relative to, or −1: no value names a file. */
coffer_status coffer__dataset_open_jsonl(coffer__dataset_input **out, coffer_source *src, int folder,
                                         const coffer_limits *limits, coffer_error *err);
coffer_status coffer__dataset_open_csv(coffer__dataset_input **out, coffer_source *src, int folder,
                                       const coffer_limits *limits, coffer_error *err);
coffer_status coffer__dataset_open_npy(coffer__dataset_input **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err);
coffer_status coffer__dataset_open_npz(coffer__dataset_input **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err);
coffer_status coffer__dataset_open_tfrecord(coffer__dataset_input **out, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err);
coffer_status coffer__dataset_open_beton(coffer__dataset_input **out, coffer_source *src,
                                         const coffer_limits *limits, coffer_error *err);

/* ---- Origins ---- */

/* Reads a file of a sample, and notes its size, time and hash. */
coffer_status coffer__dataset_read_file(coffer__buffer *out, coffer__dataset_sample *sample, int fd,
                                        uint64_t limit, const char *path, coffer_error *err);

/* Comparing the files of an interrupted pack with those of the input. */
typedef struct coffer__dataset_resume {
    coffer__dataset_input *input;   /* at its beginning; it has to be rewound afterwards */
    coffer__dataset_sample *sample; /* to work with */
    uint64_t index;                 /* of the next sample */
    bool changed;                   /* a file has changed; sample->name says which sample */
} coffer__dataset_resume;

#define COFFER__DATASET_EXAMINED_MAX 64 /* fields; a sample with more of them is read at once */

/* A coffer_mldf_resume_check. context : a coffer__dataset_resume. */
coffer_status coffer__dataset_unchanged(bool *same, void *context, uint64_t mark,
                                        const coffer_mldf_origin *origin, coffer_error *err);

/* ---- Parts (dataset_parts.c) ---- */

/* Copies the samples of all parts. */
coffer_status coffer__dataset_copy_parts(coffer_mldf_writer *writer, const coffer_mldf_pack_opts *opts,
                                         coffer_error *err);
/* COFFER_E_CHANGED when the list of samples is not the expected one. Before options are added to the digest.
 */
coffer_status coffer__dataset_expect_list(const coffer__dataset_input *input,
                                          const coffer_mldf_pack_opts *opts, coffer_error *err);
/* The same for the files of all samples; the input is at its end afterwards. */
coffer_status coffer__dataset_expect_files(coffer__dataset_input *input, const coffer_mldf_pack_opts *opts,
                                           coffer_error *err);
/* The report of a dry run. */
coffer_status coffer__dataset_survey(coffer_node *out, coffer__dataset_input *input, coffer_error *err);

/* ---- Taking files apart ---- */

/* Changes between a file and the value that is stored of it. */
typedef enum coffer__dataset_change {
    COFFER__STORED_AS_PNG, /* a kind that the format does not have */
    COFFER__KEPT_AS_PNG,   /* 16 bits or alpha, which the form asked for cannot hold */
    COFFER__TURNED,        /* the orientation is in the pixels now */
    COFFER__FIRST_FRAME,   /* of several */
    COFFER__STORED_WHOLE,  /* a WAV file that is not plain integers */
    COFFER__NOT_DECODED,   /* asked for, but Coffer has no decoder */
    COFFER__STORED_DAMAGED,
    COFFER__CHANGE_COUNT
} coffer__dataset_change;

typedef struct coffer__dataset_taker {
    const coffer_mldf_pack_opts *opts;
    coffer_image_decoder *decoder;
    coffer_pixels pixels, scaled;
    float *sound;
    size_t sound_capacity;
    uint64_t changes[COFFER__CHANGE_COUNT];
} coffer__dataset_taker;

void coffer__dataset_taker_free(coffer__dataset_taker *taker);
/* Decodes a stored value and throws the result away. COFFER_E_UNSUPPORTED without a decoder for it. */
coffer_status coffer__dataset_try_sound(const void *bytes, size_t size, coffer__dataset_taker *taker,
                                        const coffer_limits *limits, coffer_error *err);

/* Makes a value of form FILE one that is READY for its field. One taker per thread. */
coffer_status coffer__dataset_take(coffer__dataset_value *value, const coffer_mldf_field *field,
                                   coffer__dataset_taker *taker, coffer_error *err);
coffer_status coffer__dataset_take_image(coffer__dataset_value *value, coffer__dataset_taker *taker,
                                         coffer_error *err);

/* ---- Writing ---- */

/* Adds a value, which must not be a FILE any more, to the sample that is being written. */
coffer_status coffer__dataset_put(coffer_mldf_writer *writer, size_t index,
                                  const coffer__dataset_value *value, coffer_error *err);
/* Writes all samples. opts : complete, its `write` is not NULL; the options for resuming are set here when
 * `resumable`. out : may be NULL. */
coffer_status coffer__dataset_write(coffer_node *out, coffer__dataset_input *input, const char *out_path,
                                    const coffer_mldf_pack_opts *opts, bool resumable, coffer_error *err);
/* A dictionary for each field that can use one; in the arena of the schema. */
coffer_status coffer__dataset_train(coffer__dataset_input *input, const coffer_mldf_pack_opts *opts,
                                    coffer_error *err);

/* The account of a pack. */

/* A sample that was left out before the pack was interrupted. */
typedef struct coffer__earlier_skip {
    uint64_t index;
    const char *name;
    size_t name_len;
    const char *code, *text;
} coffer__earlier_skip;

typedef struct coffer__dataset_account {
    coffer_node *out, *list;  /* may be NULL */
    uint64_t packed, skipped; /* files, members or lines of samples */
    uint64_t unexpected;      /* left out without being asked to */
    char *path;               /* of the notes for a resumed pack; NULL = none */
    int fd;
    coffer__arena texts;
    coffer__earlier_skip *earlier;
    size_t earlier_count, earlier_capacity;
} coffer__dataset_account;

/* out_path : NULL when the pack cannot be resumed. */
coffer_status coffer__dataset_account_open(coffer__dataset_account *account, coffer_node *out,
                                           const char *out_path, bool resumed, coffer_error *err);
/* done : nothing is left to be resumed. */
void coffer__dataset_account_close(coffer__dataset_account *account, bool done);
/* A sample that an interrupted pack has handled. */
void coffer__dataset_account_resumed(coffer__dataset_account *account, const coffer__dataset_sample *sample);
/* A sample that is left out now. */
coffer_status coffer__dataset_account_skip(coffer__dataset_account *account,
                                           const coffer__dataset_sample *sample, coffer_error *err);
/* The members of coffer_mldf_pack's report that are about the account. of_part : without what the input
 * leaves out. */
void coffer__dataset_account_describe(coffer__dataset_account *account, const coffer__dataset_input *input,
                                      const uint64_t changes[COFFER__CHANGE_COUNT], bool of_part);

#endif
