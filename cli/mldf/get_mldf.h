/* get, for training sets: what its files share. */
#ifndef COFFER_CLI_GET_MLDF_H
#define COFFER_CLI_GET_MLDF_H

#include "mldf/mldf_verbs.h"
#include "mldf/sample_file.h"
#include "mldf/sample_place.h"

typedef struct mldf_get {
    const cli_args *args;
    const char *path, *output;
    sample_place place;
    bool json, force;
    sample_reader reader;
} mldf_get;

/* One field of many samples: a line each, a JSON list, or an array in a .npy file. */
int mldf_get_column(mldf_get *job);
/* One field of many samples, a file each, in the folder that is the output. */
int mldf_get_files(mldf_get *job);
bool mldf_output_is_folder(const mldf_get *job);

#endif
