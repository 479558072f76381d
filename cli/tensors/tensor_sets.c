#include "tensors/tensor_sets.h"

#include <string.h>

coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err)
{
    if (strcmp(path, "-") == 0)
        return coffer_tensors_open(out, src, NULL, err);
    return coffer_tensors_open_path(out, path, NULL, err);
}

coffer_status tensors_diff(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                           const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_tensors_diff_opts options = COFFER_TENSORS_DIFF_OPTS_INIT;
    options.tolerance = opts->tolerance;
    options.max_shown = opts->max_shown;
    options.threads = opts->threads;
    options.progress = opts->progress;
    return coffer_tensors_diff(out, a, b, &options, err);
}
