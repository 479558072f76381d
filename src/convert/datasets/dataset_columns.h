/* Properties that the values of a column share, and the type of field that follows from them. */
#ifndef COFFER_CONVERT_DATASET_COLUMNS_H
#define COFFER_CONVERT_DATASET_COLUMNS_H

#include "base/table.h"
#include "convert/datasets/dataset_input.h"
#include "outside/arrays/npy.h"

/* ---- Arrays ---- */

typedef struct coffer__array_facts {
    uint64_t seen;
    coffer_dtype dtype;
    uint32_t ndim;
    uint64_t dims[COFFER_MLDF_MAX_DIMS]; /* 0: they differ */
    bool mixed;                          /* types or numbers of dimensions differ, or one cannot be stored */
} coffer__array_facts;

/* A source over an open file, which stays the caller's. */
coffer_status coffer__array_facts_source(coffer_source **out, int fd, uint64_t size, const char *name,
                                         coffer_error *err);
/* A .npy file; one that cannot be read makes them mixed. */
void coffer__array_facts_add(coffer__array_facts *facts, coffer_source *src);
void coffer__array_facts_add_shape(coffer__array_facts *facts, coffer_dtype dtype, const uint64_t *dims,
                                   size_t ndim);
/* Gives the field its type and dims. COFFER_E_INCONSISTENT when they are mixed. */
coffer_status coffer__array_facts_settle(coffer_mldf_field *field, const coffer__array_facts *facts,
                                         coffer_error *err);

/* ---- Columns ---- */

/* Types that a value could be stored as. */
enum {
    COFFER__CAN_INT = 1,
    COFFER__CAN_FLOAT = 2,
    COFFER__CAN_JSON = 4,
    COFFER__CAN_TEXT = 8,
    COFFER__CAN_ARRAY = 16,
    COFFER__CAN_IMAGE = 32,
    COFFER__CAN_AUDIO = 64,
    COFFER__CAN_LIST = 128, /* several texts */
    COFFER__CAN_BYTES = 256,
    COFFER__CAN_VIDEO = 1024,
    COFFER__CAN_PATH = 512 /* the value names a file, and the rest is about that */
};

typedef struct coffer__column {
    const char *name;
    size_t name_len;
    uint32_t can;
    uint64_t seen;        /* in how many samples it is */
    uint64_t last_sample; /* the last of them, counted from 1 */
    uint64_t firsts;      /* how many pictures are stored as PNG, how many sounds are compressed */
    bool names_files;     /* pictures, sounds or arrays, going by a name */
    coffer__array_facts arrays;
    uint16_t given_type;    /* said by the file itself; 0 = by the values */
    size_t field;           /* once the schema is made */
    const char *field_name; /* when it is another; in the arena of the columns */
} coffer__column;

typedef struct coffer__columns {
    coffer__arena arena;
    coffer__column *items; /* in the order in which they came */
    size_t count, capacity;
    coffer__table table; /* by name */
} coffer__columns;

/* The column of that name, created when it does not exist. The pointer is valid until the next call. */
coffer_status coffer__columns_get(coffer__column **out, coffer__columns *columns, const char *name,
                                  size_t len, const coffer_limits *limits, coffer_error *err);
coffer__column *coffer__columns_find(const coffer__columns *columns, const char *name, size_t len);
void coffer__columns_free(coffer__columns *columns);
/* A value of the column in sample `sample`, counted from 1, that can be one of these types. */
void coffer__column_see(coffer__column *column, uint64_t sample, uint32_t can);
/* A field for each column, its type the first in the order of the list above that all values can have;
 * scalars only when every one of `samples` has a value. Nothing in common becomes bytes. */
coffer_status coffer__columns_settle(coffer__dataset_schema *schema, coffer__columns *columns,
                                     uint64_t samples, coffer_error *err);

/* The kind of a file, picture, sound or array, by its first bytes. */
uint32_t coffer__column_sniff(coffer__column *column, const uint8_t *bytes, size_t size);

/* Shared by JSONL and CSV manifests: values that name files. */
typedef struct coffer__manifest {
    coffer__dataset_input base;
    coffer_source *src;
    int folder; /* −1: no value names a file */
    coffer_limits limits;
    coffer__columns columns;
    uint64_t sample; /* the current one, counted from 1 */
} coffer__manifest;

/* Which types a text could have by the file that it names; 0 when it names none. The first value of a column
 * decides whether there are such files at all. COFFER_E_UNSAFE_PATH when it leads out of the folder. */
coffer_status coffer__manifest_judge_path(uint32_t *can, coffer__manifest *manifest, coffer__column *column,
                                          const char *text, size_t len, coffer_error *err);
/* Ends the survey: settles the fields, and which columns are paths. */
coffer_status coffer__manifest_settle(coffer__manifest *manifest, coffer_error *err);
/* Reads the files that values name. */
coffer_status coffer__manifest_load(coffer__dataset_sample *sample, const coffer__dataset_input *input,
                                    coffer_error *err);
void coffer__manifest_close(coffer__manifest *manifest);

#endif
