#include "convert/quantize/importance.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/quantize/imatrix.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct coffer__importance {
    coffer_tensors *set;
    coffer_source *src; /* of an old importance matrix; else the set has its own */
    char *path;
    bool for_all; /* one vector */
    bool sums;    /* with counts to divide by */
    bool calls;   /* with a number of calls to divide by */
};

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The old importance matrices have no magic: what no other reader knows may be one. */
static coffer_status open_set(coffer__importance *of, const coffer_limits *limits, coffer_error *err)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_error unknown = COFFER_ERROR_INIT, failure = COFFER_ERROR_INIT;
    opts.limits = limits;
    coffer_status status = coffer_tensors_open_path(&of->set, of->path, &opts, &unknown);
    if (status == COFFER_OK || (status != COFFER_E_NOT_RECOGNISED && status != COFFER_E_UNSUPPORTED)) {
        if (err && status)
            *err = unknown;
        return coffer__fail_other(err, status, of->path);
    }
    if ((status = coffer__source_open_other(&of->src, of->path, NULL, err)))
        return status;
    of->calls = true;
    status = coffer__tensors_open_with(&of->set, &coffer__tensors_imatrix, of->src, false, &opts, &failure);
    if (!status)
        return COFFER_OK;
    if (err)
        *err = failure;
    return coffer__fail_other(err,
                              coffer__fail_prefix(err, status, "not vectors and not an importance matrix"),
                              of->path);
}

coffer_status coffer__importance_open(coffer__importance **out, const char *path, const coffer_limits *limits,
                                      coffer_error *err)
{
    coffer__importance *of = coffer__calloc(1, sizeof *of);
    if (!of)
        return coffer__fail_no_memory(err, sizeof *of);
    of->path = coffer__strdup(path);
    coffer_status status = of->path ? open_set(of, limits, err) : coffer__fail_no_memory(err, strlen(path));
    if (status) {
        coffer__importance_close(of);
        return status;
    }
    of->for_all = strcmp(coffer_tensors_kind(of->set), "npy") == 0;
    for (size_t i = 0; i < coffer_tensors_count(of->set) && !of->sums; i++)
        of->sums = ends_with(coffer_tensors_at(of->set, i)->name, COFFER__IMATRIX_SUMS);
    *out = of;
    return COFFER_OK;
}

void coffer__importance_close(coffer__importance *importance)
{
    if (!importance)
        return;
    coffer_tensors_close(importance->set);
    coffer_source_close(importance->src);
    coffer__free(importance->path);
    coffer__free(importance);
}

const char *coffer__importance_source(const coffer__importance *importance)
{
    return importance->path + coffer__file_folder_len(importance->path);
}

/* ---- Looking up ---- */

/* "blk.0.up.weight", then "blk.0.up", with `end` behind. SIZE_MAX when there is neither, or no memory. */
static size_t find_named(const coffer_tensors *set, const char *name, const char *end)
{
    static const char weight[] = ".weight";
    size_t len = strlen(name), found = SIZE_MAX;
    for (int i = 0; i < 2 && found == SIZE_MAX; i++) {
        coffer__buffer text = COFFER__BUFFER_INIT;
        if (i == 1) {
            if (!ends_with(name, weight))
                break;
            len -= sizeof weight - 1;
        }
        if (coffer__buffer_append(&text, name, len) && coffer__buffer_append(&text, end, strlen(end)))
            found = coffer_tensors_find(set, coffer__buffer_text(&text));
        coffer__buffer_free(&text);
    }
    return found;
}

static size_t find_vector(const coffer__importance *of, const char *name)
{
    if (of->for_all)
        return coffer_tensors_count(of->set) ? 0 : SIZE_MAX;
    return find_named(of->set, name, of->sums ? COFFER__IMATRIX_SUMS : "");
}

bool coffer__importance_has(const coffer__importance *importance, const char *name)
{
    return find_vector(importance, name) != SIZE_MAX;
}

/* ---- Reading ---- */

/* 0 when nothing was counted. */
static coffer_status read_divisor(double *out, const coffer__importance *of, const char *name, size_t vector,
                                  coffer_error *err)
{
    double count = 0;
    *out = 1;
    if (of->calls) {
        *out = coffer__imatrix_calls(of->set, vector);
        return COFFER_OK;
    }
    if (!of->sums)
        return COFFER_OK;
    size_t counts = find_named(of->set, name, COFFER__IMATRIX_COUNTS);
    if (counts == SIZE_MAX)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "\"%s\" has sums and no " COFFER__IMATRIX_COUNTS, name);
    if (coffer_tensors_at(of->set, counts)->elements != 1)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " counts, one belongs to a tensor of two dimensions", name,
                            coffer_tensors_at(of->set, counts)->elements);
    coffer_status status = coffer_tensors_read_as(&count, COFFER_DTYPE_F64, of->set, counts, 0, 1, err);
    *out = count > 0 ? count : 0;
    return status;
}

static coffer_status check_values(const float *values, uint64_t count, const char *name, coffer_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!(values[i] >= 0.0f) || isinf(values[i]))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "the importance of column %" PRIu64 " of \"%s\" is %g", i, name,
                                (double)values[i]);
    }
    return COFFER_OK;
}

static coffer_status read_vector(float **out, const coffer__importance *importance, const char *name,
                                 uint64_t columns, coffer_error *err)
{
    size_t vector = find_vector(importance, name), count;
    double divisor;
    *out = NULL;
    if (vector == SIZE_MAX)
        return COFFER_OK;
    uint64_t elements = coffer_tensors_at(importance->set, vector)->elements;
    if (elements != columns || !coffer__to_size(&count, columns))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%" PRIu64 " importances for \"%s\", which has %" PRIu64 " columns", elements,
                            name, columns);
    coffer_status status = read_divisor(&divisor, importance, name, vector, err);
    if (status || divisor == 0)
        return status;
    float *values = coffer__alloc_array(count, sizeof *values);
    if (!values)
        return coffer__fail_no_memory(err, columns * sizeof *values);
    status = coffer_tensors_read_as(values, COFFER_DTYPE_F32, importance->set, vector, 0, columns, err);
    for (size_t i = 0; !status && i < count; i++)
        values[i] = (float)(values[i] / divisor);
    if (!status)
        status = check_values(values, columns, name, err);
    if (status) {
        coffer__free(values);
        return status;
    }
    *out = values;
    return COFFER_OK;
}

coffer_status coffer__importance_read(float **out, const coffer__importance *importance, const char *name,
                                      uint64_t columns, coffer_error *err)
{
    return coffer__fail_other(err, read_vector(out, importance, name, columns, err), importance->path);
}
