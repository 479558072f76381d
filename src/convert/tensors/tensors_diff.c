/* Two sets of tensors, compared by name: shapes, types, values, and metadata where both are files of the same
 * kind. */
#include "base/buffer.h"
#include "base/elements.h"
#include "base/memory.h"
#include "base/node_diff.h"
#include "base/options.h"
#include "base/report.h"
#include "convert/tensors/tensor_pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Something that differs: how often, and the first of it. */
typedef struct diff_list {
    coffer_node *shown;
    uint64_t count;
} diff_list;

/* A tensor whose values differ. */
typedef struct differing {
    const coffer_tensor *tensor;
    coffer__comparison comparison;
} differing;

typedef struct diff_job {
    const coffer_tensors *a, *b;
    coffer_tensors_diff_opts opts;
    coffer__tensors_workers *workers;
    diff_list only_a, only_b, shapes, types, values, undecoded;
    coffer__node_changes metadata;
    differing *differing;
    size_t differing_count, differing_capacity;
    uint64_t compared, identical;
    double max_abs;
} diff_job;

/* Counts one more; a map to describe it in, or NULL when enough are shown. */
static coffer_node *add_to(diff_list *list, const diff_job *job, const char *name)
{
    if (list->count++ >= job->opts.max_shown)
        return NULL;
    coffer_node *out = coffer_node_add_map(list->shown, NULL);
    coffer_node_add_text(out, "name", name);
    return out;
}

/* ---- Values ---- */

static void init_comparison(void *result)
{
    coffer__comparison_init(result);
}

static void add_comparison(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                           size_t count)
{
    const double *tolerance = context;
    coffer__comparison_add(result, first, runs[0].elements, runs[0].dtype, runs[1].elements, runs[1].dtype,
                           count, *tolerance);
}

static void merge_comparison(void *into, const void *from)
{
    coffer__comparison_merge(into, from);
}

static const coffer__tensors_pass comparison_pass = { sizeof(coffer__comparison), init_comparison,
                                                      add_comparison, merge_comparison };

/* The place of an element in its tensor: "[3, 17]". */
static void put_place(coffer_node *out, const char *name, const coffer_tensor *tensor, uint64_t index)
{
    uint64_t rest = index, stride = tensor->elements;
    coffer_node *list = coffer_node_add_list(out, name);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        stride /= tensor->dims[i];
        coffer_node_add_u64(list, NULL, rest / stride, COFFER_UNIT_NONE);
        rest %= stride;
    }
}

static void put_comparison(coffer_node *out, const coffer_tensor *tensor,
                           const coffer__comparison *comparison)
{
    coffer_node_add_u64(out, "differing", comparison->differing, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "elements", comparison->count, COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "max_abs", comparison->max_abs, COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "rmse", coffer__comparison_rmse(comparison), COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "snr_db", coffer__comparison_snr(comparison), COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "cosine", coffer__comparison_cosine(comparison), COFFER_UNIT_NONE);
    put_place(out, "max_at", tensor, comparison->max_at);
    put_place(out, "first", tensor, comparison->first);
}

static coffer_status keep_differing(diff_job *job, const coffer_tensor *tensor,
                                    const coffer__comparison *comparison, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&job->differing, &job->differing_capacity,
                                                     job->differing_count, sizeof *job->differing, err);
    if (!status)
        job->differing[job->differing_count++] = (differing){ tensor, *comparison };
    return status;
}

/* Infinities make the ratio NaN, which sorts as the worst. */
static double signal_of(const differing *tensor)
{
    double snr = coffer__comparison_snr(&tensor->comparison);
    return isnan(snr) ? -INFINITY : snr;
}

/* Lowest signal-to-noise ratio first, then by name. */
static int by_signal(const void *left, const void *right)
{
    const differing *a = left, *b = right;
    double x = signal_of(a), y = signal_of(b);
    int order = (x > y) - (x < y);
    return order ? order : strcmp(a->tensor->name, b->tensor->name);
}

static void put_worst(diff_job *job)
{
    if (job->differing_count)
        qsort(job->differing, job->differing_count, sizeof *job->differing, by_signal);
    for (size_t i = 0; i < job->differing_count; i++) {
        const differing *worst = &job->differing[i];
        coffer_node *out = add_to(&job->values, job, worst->tensor->name);
        put_comparison(out, worst->tensor, &worst->comparison);
    }
}

static bool same_type(const coffer_tensor *a, const coffer_tensor *b)
{
    return a->dtype == b->dtype && (a->dtype != COFFER_DTYPE_NONE || strcmp(a->type_name, b->type_name) == 0);
}

/* Payloads of one type are first held against each other byte by byte: most tensors of two versions of a
 * model are the same, and nothing has to be decoded then. */
static coffer_status compare_values(diff_job *job, size_t index_a, size_t index_b, coffer_error *err)
{
    const coffer__tensors_place places[2] = { { job->a, index_a }, { job->b, index_b } };
    const coffer_tensor *a = coffer_tensors_at(job->a, index_a), *b = coffer_tensors_at(job->b, index_b);
    coffer__comparison comparison;
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    bool same = false;
    job->compared++;
    if (same_type(a, b) && a->size == b->size)
        status = coffer__tensors_same_bytes(&same, job->workers, places, err);
    if (status || same) {
        job->identical += same;
        return status;
    }
    status = coffer__tensors_pass_run(&comparison, job->workers, &comparison_pass, &job->opts.tolerance,
                                      places, 2, &failure);
    if (status == COFFER_E_UNSUPPORTED) { /* the bytes differ; the values cannot be decoded */
        coffer_node_add_text(add_to(&job->undecoded, job, a->name), "text", failure.text);
        return COFFER_OK;
    }
    if (status) {
        if (err)
            *err = failure;
        return status;
    }
    if (comparison.max_abs > job->max_abs)
        job->max_abs = comparison.max_abs;
    job->identical += comparison.max_abs == 0;
    return comparison.differing ? keep_differing(job, a, &comparison, err) : COFFER_OK;
}

/* ---- Names, shapes, types ---- */

static void put_dims(coffer_node *out, const char *name, const coffer_tensor *tensor)
{
    coffer_node *list = coffer_node_add_list(out, name);
    for (uint32_t i = 0; i < tensor->rank; i++)
        coffer_node_add_u64(list, NULL, tensor->dims[i], COFFER_UNIT_NONE);
}

static bool same_shape(const coffer_tensor *a, const coffer_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static coffer_status compare_pair(diff_job *job, size_t index_a, size_t index_b, coffer_error *err)
{
    const coffer_tensor *a = coffer_tensors_at(job->a, index_a), *b = coffer_tensors_at(job->b, index_b);
    if (!same_type(a, b)) {
        coffer_node *out = add_to(&job->types, job, a->name);
        coffer_node_add_text(out, "a", coffer_tensor_dtype_name(a));
        coffer_node_add_text(out, "b", coffer_tensor_dtype_name(b));
    }
    if (same_shape(a, b))
        return compare_values(job, index_a, index_b, err);
    coffer_node *out = add_to(&job->shapes, job, a->name);
    put_dims(out, "a", a);
    put_dims(out, "b", b);
    return COFFER_OK;
}

static void put_only(diff_list *list, const diff_job *job, const coffer_tensor *tensor)
{
    coffer_node *out = add_to(list, job, tensor->name);
    coffer_node_add_text(out, "type", coffer_tensor_dtype_name(tensor));
    put_dims(out, "shape", tensor);
}

/* An array in a .npy file is named after the file, so its name does not count: it is compared with another
 * single array, or with the only tensor of the other file. */
static bool is_one_to_one(const diff_job *job)
{
    return job->a->count == 1 && job->b->count == 1 &&
           (job->a->reader == &coffer__tensors_npy || job->b->reader == &coffer__tensors_npy);
}

/* Both sets are sorted by name. */
static coffer_status compare_all(diff_job *job, coffer_error *err)
{
    size_t a = 0, b = 0;
    coffer_status status = COFFER_OK;
    if (is_one_to_one(job))
        return compare_pair(job, 0, 0, err);
    while (!status && (a < job->a->count || b < job->b->count)) {
        const coffer_tensor *in_a = coffer_tensors_at(job->a, a), *in_b = coffer_tensors_at(job->b, b);
        int order = !in_a ? 1 : !in_b ? -1 : strcmp(in_a->name, in_b->name);
        const coffer_tensor *tensor = order <= 0 ? in_a : in_b;
        if (coffer__tensors_is_wanted(tensor, job->opts.include, job->opts.exclude)) {
            if (order == 0)
                status = compare_pair(job, a, b, err);
            else
                put_only(order < 0 ? &job->only_a : &job->only_b, job, tensor);
        }
        a += order <= 0;
        b += order >= 0;
    }
    return status;
}

/* ---- Metadata ---- */

static bool same_kind(const diff_job *job)
{
    return strcmp(coffer_tensors_kind(job->a), coffer_tensors_kind(job->b)) == 0;
}

static bool compares_files(const diff_job *job)
{
    return coffer__tensors_has_files(job->a) && coffer__tensors_has_files(job->b);
}

static coffer_status describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    coffer_status status = set->reader->describe ? set->reader->describe(out, set, err) : COFFER_OK;
    return status ? status : coffer_node_status(out, err);
}

/* Files of different kinds have different keys, so comparing their metadata is pointless. */
static coffer_status compare_metadata(diff_job *job, coffer_error *err)
{
    coffer_node *a = NULL, *b = NULL;
    if (!same_kind(job))
        return compares_files(job) ? coffer__tensors_files_diff(&job->metadata, job->a, job->b, err)
                                   : COFFER_OK;
    coffer_status status = coffer_node_new(&a, err);
    if (!status)
        status = coffer_node_new(&b, err);
    if (!status)
        status = describe(a, job->a, err);
    if (!status)
        status = describe(b, job->b, err);
    if (!status)
        status = coffer__node_diff(&job->metadata, "", a, b, err);
    if (!status && compares_files(job))
        status = coffer__tensors_files_diff(&job->metadata, job->a, job->b, err);
    coffer_node_free(a);
    coffer_node_free(b);
    return status;
}

/* ---- The file ---- */

static void put_summary(coffer_node *out, const diff_job *job)
{
    coffer_node_add_u64(out, "a", job->a->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "b", job->b->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "compared", job->compared, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "identical", job->identical, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "differing", job->values.count + job->undecoded.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "other_type", job->types.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "other_shape", job->shapes.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "only_in_a", job->only_a.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "only_in_b", job->only_b.count, COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "max_abs", job->max_abs, COFFER_UNIT_NONE);
    if (same_kind(job) || compares_files(job))
        coffer_node_add_u64(out, "metadata_differences", job->metadata.count, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(out, "metadata_differences");
}

/* With a tolerance, a different type with the same values counts as equal: the caller compares a model with a
 * converted one. */
static bool is_equal(const diff_job *job)
{
    bool types = job->types.count == 0 || job->opts.tolerance > 0;
    return types && job->values.count == 0 && job->undecoded.count == 0 && job->shapes.count == 0 &&
           job->only_a.count == 0 && job->only_b.count == 0 && job->metadata.count == 0;
}

static uint64_t bytes_of(const coffer_tensors *set)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < set->count; i++)
        bytes += coffer_tensors_at(set, i)->size;
    return bytes;
}

COFFER__INIT_FUNCTION(coffer_tensors_diff_opts, COFFER_TENSORS_DIFF_OPTS_INIT)

coffer_status coffer_tensors_diff(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                                  const coffer_tensors_diff_opts *opts, coffer_error *err)
{
    diff_job job = { .a = a, .b = b, .opts = COFFER_TENSORS_DIFF_OPTS_INIT };
    coffer_status status = coffer__take_options(&job.opts, sizeof job.opts, opts, err);
    if (status)
        return status;
    coffer_node *equal = coffer__node_hold(out, "equal");
    coffer_node *summary = coffer_node_add_map(out, "tensors");
    job.metadata = coffer__node_changes_new(out, job.opts.max_shown);
    job.only_a.shown = coffer_node_add_list(out, "only_in_a");
    job.only_b.shown = coffer_node_add_list(out, "only_in_b");
    job.shapes.shown = coffer_node_add_list(out, "shapes");
    job.types.shown = coffer_node_add_list(out, "types");
    job.values.shown = coffer_node_add_list(out, "values");
    job.undecoded.shown = coffer_node_add_list(out, "not_decoded");
    status = coffer__tensors_workers_new(&job.workers, job.opts.threads, job.opts.progress,
                                         bytes_of(a) + bytes_of(b), err);
    if (!status)
        status = compare_metadata(&job, err);
    if (!status)
        status = compare_all(&job, err);
    coffer__tensors_workers_free(job.workers);
    if (!status)
        put_worst(&job);
    coffer__free(job.differing);
    if (status)
        return status;
    put_summary(summary, &job);
    coffer__node_set_bool(equal, is_equal(&job));
    return coffer_node_status(out, err);
}
