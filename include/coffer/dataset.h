#ifndef COFFER_DATASET_H
#define COFFER_DATASET_H

#include "coffer/mldf.h"

COFFER_BEGIN_DECLS

/* Packing a training set from a folder or from files of other programs. */

typedef enum coffer_dataset_kind {
    COFFER_DATASET_AUTO = 0,   /* detected */
    COFFER_DATASET_IMAGES,     /* a folder of pictures; the names of folders inside are the classes */
    COFFER_DATASET_AUDIO,      /* the same with sounds */
    COFFER_DATASET_TEXT,       /* the same with text files */
    COFFER_DATASET_ARRAYS,     /* the same with .npy files; for one .npy file, a sample per row */
    COFFER_DATASET_WEBDATASET, /* tar shards: members with the same stem form a sample */
    COFFER_DATASET_MANIFEST,   /* a JSONL or CSV file; values that name files are replaced by their content */
    COFFER_DATASET_VIDEO       /* a folder of videos, which are stored byte for byte */
} coffer_dataset_kind;

typedef struct coffer_mldf_pack_opts {
    uint32_t struct_size;
    coffer_dataset_kind kind;
    uint32_t jpeg_quality; /* encode pictures again as JPEG of this quality; 0 = store them unchanged */
    uint32_t max_size;     /* scale larger pictures so that no side is longer; 0 = any */
    bool raw;              /* store decoded pixels */
    bool keep_going;       /* skip files that cannot be read, and report them; otherwise they are errors */
    bool resume;           /* continue an interrupted pack of the same input */
    bool restart;          /* discard what an interrupted pack left */
    bool zstd;             /* compress text, arrays and other payloads that are not compressed yet */
    uint32_t dictionary;   /* train a zstd dictionary of at most this many bytes per text field; 0 = none */
    bool encrypt;          /* with write->key */
    const coffer_mldf_writer_opts *write; /* NULL = defaults */
    const coffer_progress *progress;
    bool strict;        /* fail instead of leaving a file out or storing less than is in it */
    bool decode;        /* decode every picture and sound, so that damage inside is found */
    bool store_damaged; /* store pictures that are incomplete or cannot be decoded; otherwise they are errors
                         */
    bool follow_links;  /* pack what symbolic links in a folder lead to */
    const char *const *exclude; /* globs: files of a folder to leave out, by name or by path */
    size_t exclude_count;
    const char *root;   /* folder that the paths of a manifest are relative to; NULL = its own folder */
    const char *labels; /* a text column of a manifest whose values get numbers, in a field "label" */
    /* Work in parts, in several processes or on several machines. A call with `dry_run` counts the samples, a
     * call with `count` packs some of them into a set of their own, and a call with `parts` joins these sets:
     * without encryption, the output has the same bytes as if it had been packed at once. Input and options
     * must be the same in all calls. Parts are not resumable. */
    /* Write nothing: report "samples" (some may be skipped later), "bytes" (0 = not known) and "input". */
    bool dry_run;
    uint64_t first, count;    /* samples of the input, by their number; count 0 = all */
    const char *const *parts; /* all of them, in order; their samples are copied, no file is read */
    size_t part_count;
    /* "input" of a dry run: names, sizes and times of the files. COFFER_E_CHANGED when the input is another
     * now; a part compares the list of samples, the join every file. NULL = any */
    const char *expected_input;
    /* The names of the folders in the paths of samples, one for each of several inputs: the inputs themselves
     * may have to be absolute paths. NULL = as the inputs are named. */
    const char *const *input_names;
} coffer_mldf_pack_opts;

#define COFFER_MLDF_PACK_OPTS_INIT                                                                          \
    {                                                                                                       \
        sizeof(coffer_mldf_pack_opts), COFFER_DATASET_AUTO, 0, 0, false, false, false, false, false, 0,     \
            false, NULL, NULL, false, false, false, false, NULL, 0, NULL, NULL, false, 0, 0, NULL, 0, NULL, \
            NULL                                                                                            \
    }

COFFER_API void coffer_mldf_pack_opts_init(coffer_mldf_pack_opts *out, uint32_t struct_size);

/* Packs inputs (folders, shards, manifests; all of one kind) into a set. The samples are sorted by name,
 * independent of the number of threads. An interrupted pack leaves OUT.mldf.partial files that `resume`
 * continues.
 *
 * Every file of a folder, member of a shard and line of a manifest is packed or named. `out` gets
 *   "samples", "fields", "classes", "resumed", "size" (bytes of the file),
 *   "unit" ("files", "members", "lines"), "found", "packed" and "skipped": found = packed + skipped,
 *   "complete", false when something was skipped that the options did not ask to skip, or stored in part,
 *   "left_out", a list with the "sample", "code" and "text" of everything skipped, also before a resume,
 *   "notes", a list with the "text" and "count" of what was stored in another form than it was found in,
 *   "kept_as_text", the name of a manifest field that lists files of which some are missing or of different
 *   types, if there is one.
 * A part reports its own samples alone; the join reports what the input leaves out, and no sample as packed
 * or skipped. When one sample made it fail, "failed" is the name of that sample. Paths that lead outside the
 * input folder, links and devices are COFFER_E_UNSAFE_PATH. */
COFFER_API_STATUS coffer_mldf_pack(coffer_node *out, const char *const *inputs, size_t input_count,
                                   const char *out_path, const coffer_mldf_pack_opts *opts,
                                   coffer_error *err);

/* Describes a sound file as the entry of a value that stores it byte for byte (coffer_mldf_writer_set_bytes):
 * its codec, rate, channels, length and depth. COFFER_E_LIMIT when the sound is too long for an entry. */
COFFER_API_STATUS coffer_mldf_describe_sound(coffer_mldf_entry *out, const void *bytes, size_t size,
                                             coffer_error *err);

typedef struct coffer_mldf_decode_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress; /* counts samples */
} coffer_mldf_decode_opts;

#define COFFER_MLDF_DECODE_OPTS_INIT                   \
    {                                                  \
        sizeof(coffer_mldf_decode_opts), 0, NULL, NULL \
    }

COFFER_API void coffer_mldf_decode_opts_init(coffer_mldf_decode_opts *out, uint32_t struct_size);

/* Decodes every picture and sound of a set. Each that cannot be decoded is a finding COFFER_E_UNDECODABLE
 * with its sample and field; what no installed codec can decode is counted in one note. */
COFFER_API_STATUS coffer_mldf_check_decode(coffer_report *out, const coffer_mldf *set,
                                           const coffer_mldf_decode_opts *opts, coffer_error *err);

/* Sets a field (int, float, text or JSON) of many samples of the set at `path` in one commit. set : the same
 * set, open for reading. values : a .csv table with a column of the field's name, lines of JSON objects with
 * that key, or an .npy array with one number per sample. A column or key "sample" with numbers, or in a table
 * a column with the name of a text field such as "path", says which samples the values are for; otherwise
 * there is one for each sample. *count : how many were set. COFFER_E_INVALID_ARGUMENT for values that do not
 * fit; nothing is changed then. */
COFFER_API_STATUS coffer_mldf_update_values(uint64_t *count, const char *path, const coffer_mldf *set,
                                            size_t field, coffer_source *values,
                                            const coffer_mldf_update_opts *opts, coffer_error *err);

/* Adds a field to the set at `path` with a value for every sample, in one commit. set : the same set, open
 * for reading. values : an .npy array whose first dimension counts the samples (for fields of type int, float
 * or array; type and shape of an array are taken from it), or a line of JSON for each sample, which is the
 * value or an object that has it under the field's name; null leaves it absent. NULL = all are absent. An
 * error of the values has the subject COFFER_SUBJECT_OTHER; nothing is changed then. */
COFFER_API_STATUS coffer_mldf_update_add_values(const char *path, const coffer_mldf *set,
                                                const coffer_mldf_field *field, coffer_source *values,
                                                const coffer_mldf_update_opts *opts, coffer_error *err);

/* One of the files that a set is divided into. */
typedef struct coffer_mldf_split_part {
    uint32_t struct_size; /* also the stride of an array */
    const char *path;
    const uint64_t *samples; /* in the order of the new set */
    uint64_t sample_count;
} coffer_mldf_split_part;

#define COFFER_MLDF_SPLIT_PART_INIT                   \
    {                                                 \
        sizeof(coffer_mldf_split_part), NULL, NULL, 0 \
    }

COFFER_API void coffer_mldf_split_part_init(coffer_mldf_split_part *out, uint32_t struct_size);

/* Writes parts of a set to new files. No file appears before all of them are complete; after a failure there
 * is none, except with write->overwrite those that have already replaced another file. opts : NULL for
 * defaults; samples is not used. *failed : index of the part that could not be written; may be NULL. */
COFFER_API_STATUS coffer_mldf_split(size_t *failed, const coffer_mldf *set,
                                    const coffer_mldf_split_part *parts, size_t count,
                                    const coffer_mldf_extract_opts *opts, coffer_error *err);

/* Turns the content of files, and texts and numbers as people write them, into values: a picture, a sound or
 * an array becomes what the field stores. */
typedef struct coffer_mldf_value_input coffer_mldf_value_input;
COFFER_API_STATUS coffer_mldf_value_input_new(coffer_mldf_value_input **out, coffer_error *err);
COFFER_API void coffer_mldf_value_input_free(coffer_mldf_value_input *input);
/* Sets the value of the current sample of a writer; bytes : borrowed for the call. */
COFFER_API_STATUS coffer_mldf_value_input_set(coffer_mldf_value_input *input, coffer_mldf_writer *writer,
                                              size_t field, const void *bytes, size_t size,
                                              coffer_error *err);

COFFER_END_DECLS

#endif
