/* How the fields of a set are named in a tar file, and back. */
#ifndef COFFER_CONVERT_MLDF_TAR_H
#define COFFER_CONVERT_MLDF_TAR_H

#include "coffer/mldf.h"

/* A member that says what the others are, in a folder that readers of WebDataset pass over. */
#define COFFER__TAR_SCHEMA "__mldf__/schema.json"

typedef enum coffer__tar_class {
    COFFER__TAR_BYTES,
    COFFER__TAR_IMAGE,
    COFFER__TAR_AUDIO,
    COFFER__TAR_VIDEO,
    COFFER__TAR_INT,
    COFFER__TAR_FLOAT,
    COFFER__TAR_TEXT,
    COFFER__TAR_JSON,
    COFFER__TAR_ARRAY
} coffer__tar_class;

typedef struct coffer__tar_extension {
    const char *name;
    coffer__tar_class kind;
    bool is_first; /* pictures that are stored as PNG, sounds that are compressed */
} coffer__tar_extension;

/* By the part after the last dot ("seg.png"), or all of it; NULL when it is unknown. */
const coffer__tar_extension *coffer__tar_extension_of(const char *extension);

#endif
