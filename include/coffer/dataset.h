#ifndef COFFER_DATASET_H
#define COFFER_DATASET_H

#include "coffer/mldf.h"

COFFER_BEGIN_DECLS

/* Making a training set of what lies in a folder or in the files of other programs. */

typedef enum coffer_dataset_kind {
    COFFER_DATASET_AUTO = 0,   /* by what is there */
    COFFER_DATASET_IMAGES,     /* a folder of pictures; with folders inside, their names are the classes */
    COFFER_DATASET_AUDIO,      /* the same with WAV and FLAC files */
    COFFER_DATASET_TEXT,       /* the same with text files */
    COFFER_DATASET_ARRAYS,     /* the same with .npy files; one .npy file: a sample for each of its rows */
    COFFER_DATASET_WEBDATASET, /* tar shards: members with one stem are one sample */
    COFFER_DATASET_MANIFEST    /* a JSONL or CSV file; values that name files are read in */
} coffer_dataset_kind;

typedef struct coffer_mldf_pack_opts {
    uint32_t struct_size;
    coffer_dataset_kind kind;
    uint32_t jpeg_quality; /* pictures are encoded again as JPEG of this quality; 0 = stored as they are */
    uint32_t max_size;     /* larger pictures are scaled so that no side is longer; 0 = any */
    bool raw;              /* store decoded pixels */
    bool keep_going;       /* leave out files that cannot be read, and say so; else they are errors */
    bool resume;           /* go on with what an interrupted pack of the same input left behind */
    bool restart;          /* drop what an interrupted pack left behind */
    bool zstd;             /* compress text, arrays and other payloads that are not compressed yet */
    uint32_t dictionary;   /* train a zstd dictionary of at most this many bytes per text field; 0 = none */
    bool encrypt;          /* with write.key */
    coffer_mldf_writer_opts write;
    const coffer_progress *progress;
} coffer_mldf_pack_opts;

#define COFFER_MLDF_PACK_OPTS_INIT                                                                      \
    {                                                                                                   \
        sizeof(coffer_mldf_pack_opts), COFFER_DATASET_AUTO, 0, 0, false, false, false, false, false, 0, \
            false, COFFER_MLDF_WRITER_OPTS_INIT, NULL                                                   \
    }

/* Packs inputs (folders, shards, manifests; of one kind) into a set. Order: names sorted, whatever the
 * threads. A pack that was cut off leaves OUT.mldf.partial files that `resume` goes on with. `out` gets
 * "samples", "fields", "classes", "skipped" and "resumed", and "kept_as_text", a field of a manifest
 * that names files of which not all are there or of one kind, if there is one; when one sample made it fail,
 * only "failed", the name of that. Paths that lead outside the input folder, links and devices are
 * COFFER_E_UNSAFE_PATH. */
COFFER_API coffer_status coffer_mldf_pack(coffer_node *out, const char *const *inputs, size_t input_count,
                                          const char *out_path, const coffer_mldf_pack_opts *opts,
                                          coffer_error *err);

COFFER_END_DECLS

#endif
