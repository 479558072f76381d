#include "pycauset_verbs.h"

int pycauset_with_matrix(const cli_args *args, coffer_source *src, uint64_t generation,
                         int (*work)(const cli_args *args, const coffer_pycauset *matrix))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.generation = generation;
    coffer_status status = coffer_pycauset_open(&matrix, src, &opts, &err);
    if (status)
        return cli_fail(cli_operand(args, 0), &err,
                        status == COFFER_E_NOT_FOUND ? "'coffer log' lists the generations" : NULL);
    int result = work(args, matrix);
    coffer_pycauset_close(matrix);
    return result;
}

const char *pycauset_element_type(const coffer_pycauset_info *info)
{
    return info->dtype == COFFER_DTYPE_NONE ? "mixed" : coffer_dtype_name(info->dtype);
}
