/* The page of a model: its tensors, their types, sizes and values. */
#include "page/page_model.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TENSORS = 50000, MOST_HISTOGRAMS = 2000, SHAPE_ROOM = 200 };

typedef struct model_page {
    coffer_tensors *own[2]; /* of a file of the library's; others have their tensors open already */
    const coffer_tensors *sets[2];
    coffer_tensors_stats *stats; /* NULL without */
    coffer__page_maps maps;
    coffer__page_pairs pairs; /* of a comparison */
    coffer_mcf *container;    /* NULL: another kind of file */
    char why_not[300];        /* the reason */
    size_t count;
} model_page;

static bool fits_model(const coffer_file *file)
{
    const coffer_format *format = coffer_file_format(file);
    return coffer_file_tensors(file) || (format && coffer_format_can(format, COFFER_CAN_OPEN_AS_TENSORS));
}

static void close_model(void *state)
{
    model_page *page = state;
    coffer__page_maps_free(&page->maps);
    coffer__page_pairs_free(&page->pairs);
    coffer_mcf_close(page->container);
    coffer_tensors_stats_free(page->stats);
    coffer_tensors_close(page->own[0]);
    coffer_tensors_close(page->own[1]);
    coffer__free(page);
}

/* False, and the reason, when the tensors are too large to be read. */
static bool may_read(model_page *page, const coffer_chunks *chunks)
{
    uint64_t size = coffer_tensors_size(page->sets[0]);
    if (page->count > 1)
        size += coffer_tensors_size(page->sets[1]);
    if (size <= chunks->opts.max_read_bytes)
        return true;
    coffer__size_text all, most;
    snprintf(page->why_not, sizeof page->why_not,
             "values were not read: the tensors have %s, more than %s (--max-read)",
             coffer__size_text_of(all, size), coffer__size_text_of(most, chunks->opts.max_read_bytes));
    return false;
}

/* Statistics that cannot be computed, of a damaged tensor or a type that cannot be decoded, are left out. */
static coffer_status compute(model_page *page, const coffer_chunks *chunks, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    opts.threads = chunks->opts.threads;
    opts.progress = chunks->opts.progress;
    if (!may_read(page, chunks))
        return COFFER_OK;
    coffer_status status = coffer_tensors_stats_new(&page->stats, page->sets[0], &opts, &found);
    if (status && !coffer__is_about_file(status) && status != COFFER_E_UNSUPPORTED)
        return coffer__fail_copy(err, &found);
    if (status)
        snprintf(page->why_not, sizeof page->why_not, "statistics are left out: %s", found.text);
    return coffer__page_maps_new(&page->maps, page->sets[0], err);
}

static coffer_status open_model(void **state, coffer_chunks *chunks, coffer_error *err)
{
    model_page *page = coffer__calloc(1, sizeof *page);
    if (!page)
        return coffer__fail_no_memory(err, sizeof *page);
    coffer_status status = COFFER_OK;
    page->count = chunks->file_count;
    for (size_t i = 0; i < page->count && !status; i++) {
        page->sets[i] = coffer_file_tensors(chunks->files[i]);
        if (page->sets[i])
            continue;
        status = coffer_tensors_open(&page->own[i], coffer_file_source(chunks->files[i]), NULL, err);
        page->sets[i] = page->own[i];
    }
    if (!status && page->count == 1)
        status = coffer__page_open_container(&page->container, chunks->files[0], err);
    if (!status && page->count == 1)
        status = compute(page, chunks, err);
    else if (!status && may_read(page, chunks))
        status = coffer__page_pairs_new(&page->pairs, page->sets[0], page->sets[1], err);
    if (status) {
        close_model(page);
        return status;
    }
    *state = page;
    return COFFER_OK;
}

/* ---- Tensors ---- */

static uint32_t put_shape(coffer_chunks *chunks, const coffer_tensor *tensor)
{
    char text[SHAPE_ROOM] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < tensor->rank && len + 24 < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu64, i ? " × " : "", tensor->dims[i]);
    return coffer__chunks_text(chunks, tensor->rank ? text : "scalar");
}

static void add_tensors(coffer_chunks *chunks, const coffer_tensors *set, size_t count)
{
    bool sharded = coffer_tensors_is_sharded(set);
    uint32_t *name = coffer__chunks_u32(chunks, "tensors.name", count);
    uint32_t *dtype = coffer__chunks_u32(chunks, "tensors.dtype", count);
    uint32_t *shape = coffer__chunks_u32(chunks, "tensors.shape", count);
    uint32_t *file = coffer__chunks_u32(chunks, "tensors.file", sharded ? count : 0);
    double *elements = coffer__chunks_f64(chunks, "tensors.elements", count);
    double *size = coffer__chunks_f64(chunks, "tensors.size", count);
    for (size_t i = 0; size && i < count; i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        name[i] = coffer__chunks_text(chunks, tensor->name);
        dtype[i] = coffer__chunks_text(chunks, coffer_tensor_dtype_name(tensor));
        shape[i] = put_shape(chunks, tensor);
        elements[i] = (double)tensor->elements;
        size[i] = (double)tensor->size;
        if (sharded)
            file[i] = coffer__chunks_text(chunks, tensor->file);
    }
}

static void add_histograms(coffer_chunks *chunks, const coffer_tensors_stats *stats, size_t count,
                           size_t most)
{
    if (count > most) {
        coffer__chunks_note(chunks, "histograms of the first %zu of %zu tensors are in the page", most,
                            count);
        count = most;
    }
    float *bins = coffer__chunks_f32(chunks, "values.histogram", count * COFFER_TENSOR_HISTOGRAM_BINS);
    for (size_t i = 0; bins && i < count; i++)
        for (size_t j = 0; j < COFFER_TENSOR_HISTOGRAM_BINS; j++)
            bins[i * COFFER_TENSOR_HISTOGRAM_BINS + j] =
                (float)coffer_tensors_stats_at(stats, i)->histogram[j];
}

/* Rows of statistics; "values.tensor" says which tensor each is of. */
static void add_values(coffer_chunks *chunks, const coffer_tensors_stats *stats, size_t tensors,
                       uint32_t detail)
{
    size_t count = 0;
    while (count < coffer_tensors_stats_count(stats) &&
           coffer_tensors_stats_at(stats, count)->tensor < tensors)
        count++;
    uint32_t *tensor = coffer__chunks_u32(chunks, "values.tensor", count);
    double *min = coffer__chunks_f64(chunks, "values.min", count);
    double *max = coffer__chunks_f64(chunks, "values.max", count);
    double *mean = coffer__chunks_f64(chunks, "values.mean", count);
    double *std = coffer__chunks_f64(chunks, "values.std", count);
    double *zeros = coffer__chunks_f64(chunks, "values.zeros", count);
    double *not_finite = coffer__chunks_f64(chunks, "values.not_finite", count);
    double *outliers = coffer__chunks_f64(chunks, "values.outliers", count);
    for (size_t i = 0; outliers && i < count; i++) {
        const coffer_tensor_stats *from = coffer_tensors_stats_at(stats, i);
        tensor[i] = (uint32_t)from->tensor;
        min[i] = from->min;
        max[i] = from->max;
        mean[i] = from->mean;
        std[i] = from->std;
        zeros[i] = (double)from->zeros;
        not_finite[i] = (double)(from->nans + from->infinities);
        outliers[i] = (double)from->outliers;
    }
    add_histograms(chunks, stats, count, MOST_HISTOGRAMS / detail);
}

static void add_model_totals(coffer_node *map, const coffer_tensors *set)
{
    uint64_t elements = 0;
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        elements += coffer_tensors_at(set, i)->elements;
    coffer_node_add_u64(map, "tensors", coffer_tensors_count(set), COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "elements", elements, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "bytes", coffer_tensors_size(set), COFFER_UNIT_BYTES);
}

static coffer_status emit_model(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    const model_page *page = state;
    coffer_node *list = coffer_node_add_list(chunks->view, "models");
    for (size_t i = 0; i < page->count; i++)
        add_model_totals(coffer_node_add_map(list, NULL), page->sets[i]);
    if (page->why_not[0])
        coffer__chunks_note(chunks, "%s", page->why_not);
    if (page->count > 1) {
        coffer__page_add_pairs(chunks, &page->pairs, page->sets[0], page->sets[1], detail);
        return COFFER_OK;
    }
    size_t total = coffer_tensors_count(page->sets[0]), count = total;
    if (count > MOST_TENSORS / detail) {
        count = MOST_TENSORS / detail;
        coffer__chunks_note(chunks, "the first %zu of %zu tensors are shown", count, total);
    }
    add_tensors(chunks, page->sets[0], count);
    if (page->stats)
        add_values(chunks, page->stats, count, detail);
    coffer__page_add_maps(chunks, &page->maps, count, detail);
    return coffer__page_add_parts(chunks, page->container, page->sets[0], count, detail, err);
}

const coffer__page_kind coffer__page_model = {
    .page = "model",
    .fits = fits_model,
    .open = open_model,
    .emit = emit_model,
    .close = close_model,
};
