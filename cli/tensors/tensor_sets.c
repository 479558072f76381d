#include "tensors/tensor_sets.h"

#include <string.h>

coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err)
{
    if (strcmp(path, "-") == 0)
        return coffer_tensors_open(out, src, NULL, err);
    return coffer_tensors_open_path(out, path, NULL, err);
}
