#include "pycauset_verbs.h"

int pycauset_with_matrix(const cli_args *args, coffer_source *src, uint64_t generation,
                         int (*work)(const cli_args *args, const coffer_pycauset *matrix))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.generation = generation;
    coffer_status status = coffer_pycauset_open(&matrix, src, &opts, &err);
    if (status != COFFER_OK)
        return cli_fail(cli_operand(args, 0), &err,
                        status == COFFER_E_NOT_FOUND ? "'coffer log' lists the generations there are" : NULL);
    int result = work(args, matrix);
    coffer_pycauset_close(matrix);
    return result;
}
