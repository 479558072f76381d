#include "base/elements.h"
#include "base/fail.h"
#include "base/report.h"
#include "convert/matrices/pycauset_import.h"
#include "convert/matrices/pycauset_values.h"

#include <inttypes.h>
#include <string.h>

typedef enum wish {
    WISH_DENSE,
    WISH_VECTOR,
    WISH_TRIANGULAR,
    WISH_SYMMETRIC,
    WISH_ANTISYMMETRIC,
    WISH_CAUSAL,
    WISH_DIAGONAL,
    WISH_COUNT
} wish;

static const char *const wish_names[] = { "dense",         "vector", "triangular", "symmetric",
                                          "antisymmetric", "causal", "diagonal" };

static coffer_status choose_wish(wish *out, const coffer__pycauset_input *input,
                                 const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "type");
    if (!name) {
        *out = input->half == COFFER__PYCAUSET_SYMMETRIC       ? WISH_SYMMETRIC
               : input->half == COFFER__PYCAUSET_ANTISYMMETRIC ? WISH_ANTISYMMETRIC
               : input->is_vector                              ? WISH_VECTOR
                                                               : WISH_DENSE;
        return COFFER_OK;
    }
    for (unsigned i = 0; i < WISH_COUNT; i++) {
        if (strcmp(wish_names[i], name) == 0) {
            *out = (wish)i;
            return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "type \"%s\" must be one of dense, vector, triangular, symmetric, "
                        "antisymmetric, causal, diagonal",
                        name);
}

static coffer_pycauset_type type_of(wish wanted, coffer_dtype dtype)
{
    bool integer = coffer_dtype_is_integer(dtype);
    switch (wanted) {
    case WISH_VECTOR:
        return COFFER_PYCAUSET_VECTOR;
    case WISH_TRIANGULAR:
        return integer ? COFFER_PYCAUSET_TRIANGULAR_INTEGER : COFFER_PYCAUSET_TRIANGULAR_FLOAT;
    case WISH_SYMMETRIC:
        return COFFER_PYCAUSET_SYMMETRIC;
    case WISH_ANTISYMMETRIC:
        return COFFER_PYCAUSET_ANTISYMMETRIC;
    case WISH_CAUSAL:
        return COFFER_PYCAUSET_CAUSAL;
    case WISH_DIAGONAL:
        return COFFER_PYCAUSET_DIAGONAL;
    default:
        return integer ? COFFER_PYCAUSET_INTEGER : COFFER_PYCAUSET_DENSE_FLOAT;
    }
}

static coffer_status check_wish(wish wanted, const coffer__pycauset_input *input, coffer_dtype dtype,
                                const coffer__convert_job *job, coffer_error *err)
{
    if (input->rows == 0 || input->cols == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 ": a matrix without an element", input->rows,
                            input->cols);
    if (wanted == WISH_VECTOR && input->rows != 1 && input->cols != 1)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 " is not a vector; use --type dense", input->rows,
                            input->cols);
    if (wanted > WISH_VECTOR && input->rows != input->cols)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 ": a %s matrix is square; use --type dense", input->rows,
                            input->cols, wish_names[wanted]);
    if (wanted == WISH_CAUSAL && dtype != COFFER_DTYPE_BIT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a causal matrix consists of bits; use --type triangular --dtype %s",
                            coffer_dtype_name(dtype));
    if (wanted == WISH_ANTISYMMETRIC && !coffer__dtype_has_negatives(dtype))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s has no negative numbers for an antisymmetric matrix; use --dtype i64",
                            coffer_dtype_name(dtype));
    if (coffer__job_has(job, "diagonal") && wanted != WISH_TRIANGULAR)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "--diagonal requires --type triangular");
    return COFFER_OK;
}

void coffer__pycauset_info_of_shape(coffer_pycauset_info *out, const coffer_pycauset_shape *shape)
{
    *out = (coffer_pycauset_info){ .rows = shape->rows,
                                   .cols = shape->cols,
                                   .type = shape->type,
                                   .dtype = shape->dtype,
                                   .has_diagonal = shape->has_diagonal,
                                   .scalar_real = 1 };
}

coffer_status coffer__pycauset_choose_shape(coffer_pycauset_shape *out, const coffer__pycauset_input *input,
                                            const coffer__convert_job *job, coffer_error *err)
{
    wish wanted = WISH_DENSE;
    coffer_dtype dtype = input->dtype == COFFER_DTYPE_BOOL ? COFFER_DTYPE_BIT : input->dtype;
    coffer_status status = choose_wish(&wanted, input, job, err);
    if (!status && wanted == WISH_CAUSAL)
        dtype = COFFER_DTYPE_BIT;
    if (!status)
        status = coffer__pycauset_dtype_setting(&dtype, job, err);
    if (!status)
        status = check_wish(wanted, input, dtype, job, err);
    if (status)
        return status;
    out->type = type_of(wanted, dtype);
    out->dtype = dtype;
    out->has_diagonal = coffer__job_has(job, "diagonal");
    coffer_pycauset_info info;
    coffer__pycauset_info_of_shape(&info, out);
    if (coffer__job_has(job, "portable") && coffer_pycauset_misread(&info)) {
        if (job->notes)
            coffer__report_add(job->notes, COFFER_E_INCONSISTENT, COFFER_NOTE, COFFER_OFFSET_NONE,
                               "stored as a dense matrix: %s", coffer_pycauset_misread(&info));
        wanted = WISH_DENSE;
        out->type = type_of(wanted, dtype);
        out->has_diagonal = false;
    }
    out->rows = wanted == WISH_VECTOR ? input->rows * input->cols : input->rows;
    out->cols = wanted == WISH_VECTOR ? 1 : input->cols;
    return COFFER_OK;
}
