/* Shared by JSONL and CSV manifests: values that name files. */
#ifndef COFFER_CONVERT_DATASET_MANIFEST_H
#define COFFER_CONVERT_DATASET_MANIFEST_H

#include "convert/datasets/dataset_columns.h"

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
