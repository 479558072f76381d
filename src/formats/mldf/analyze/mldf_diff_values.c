/* The values of two sets, sample by sample. Pieces of samples are compared on all threads; pieces with
 * differences are compared again in order until enough are listed. */
#include "formats/mldf/analyze/mldf_diff.h"

#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/utf8.h"

#include <math.h>

#define PIECE ((uint64_t)1024) /* samples */
#define SHOWN 60               /* bytes of a text in the list */

/* State of one thread. */
typedef struct comparer {
    coffer_bytes bytes[2];
    coffer__mldf_pair *pairs; /* what it has found */
} comparer;

typedef struct values_job {
    coffer__mldf_comparison *comparison;
    comparer *comparers;
    uint8_t *differs; /* by piece */
    coffer_node *listed;
} values_job;

/* One value of both. */
typedef struct two_values {
    coffer_mldf_entry entry[2];
    const uint8_t *bytes[2];
    size_t size[2];
    uint64_t at; /* the first byte or element that differs */
    double difference;
} two_values;

static coffer_status name_second(const coffer__mldf_comparison *comparison, coffer_status status,
                                 coffer_error *err)
{
    return coffer__fail_input(err, status, coffer_source_name(comparison->set[1]->source));
}

/* ---- One value ---- */

static bool numbers_differ(two_values *values, double a, double b, double tolerance)
{
    if (isnan(a) && isnan(b))
        return false;
    values->difference = isnan(a) || isnan(b) ? (double)INFINITY : a == b ? 0 : fabs(a - b);
    return values->difference > tolerance;
}

static bool same_facts(const coffer_mldf_entry *a, const coffer_mldf_entry *b)
{
    return a->present == b->present && a->height == b->height && a->width == b->width && a->mode == b->mode &&
           a->channels == b->channels && a->num_samples == b->num_samples &&
           a->sample_rate == b->sample_rate && a->bit_depth == b->bit_depth && a->codec == b->codec &&
           a->num_tokens == b->num_tokens && a->encoding == b->encoding;
}

/* A view if there is one, otherwise read and decoded. Without a key encrypted values are what is stored. */
static coffer_status fetch(two_values *values, int side, const coffer_mldf *set, uint64_t sample,
                           size_t field, comparer *with, coffer_error *err)
{
    bool sealed = (set->schema.fields[field].flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0;
    coffer_status status;
    values->bytes[side] = coffer_mldf_view(&values->size[side], set, sample, field);
    if (values->bytes[side])
        return COFFER_OK;
    status = sealed && !set->has_key ? coffer_mldf_read_stored(&with->bytes[side], set, sample, field, err)
                                     : coffer_mldf_read(&with->bytes[side], NULL, set, sample, field, err);
    values->bytes[side] = with->bytes[side].data;
    values->size[side] = with->bytes[side].size;
    return status;
}

static bool bytes_differ(two_values *values)
{
    size_t shorter = values->size[0] < values->size[1] ? values->size[0] : values->size[1];
    if (values->size[0] == values->size[1] &&
        (shorter == 0 || memcmp(values->bytes[0], values->bytes[1], shorter) == 0))
        return false;
    for (values->at = 0; values->at < shorter; values->at++) {
        if (values->bytes[0][values->at] != values->bytes[1][values->at])
            break;
    }
    return true;
}

/* Arrays of numbers: element by element when a tolerance forgives something. */
static bool arrays_differ(two_values *values, const coffer_mldf_field *field, double tolerance)
{
    uint64_t dims[2][COFFER_MLDF_MAX_DIMS] = { { 0 } };
    size_t head[2], width = coffer_dtype_size(field->dtype);
    coffer__comparison comparison;
    if (!bytes_differ(values))
        return false;
    for (int i = 0; i < 2; i++) {
        if (width == 0 || coffer__mldf_array_shape(dims[i], &head[i], field, values->bytes[i],
                                                   values->size[i], NULL) != COFFER_OK)
            return true;
    }
    if (memcmp(dims[0], dims[1], sizeof dims[0]) != 0)
        return true;
    coffer__comparison_init(&comparison);
    coffer__comparison_add(&comparison, 0, values->bytes[0] + head[0], field->dtype,
                           values->bytes[1] + head[1], field->dtype, (values->size[0] - head[0]) / width,
                           tolerance);
    values->difference = comparison.max_abs;
    if (comparison.differing > 0)
        values->at = comparison.first;
    return comparison.differing > 0;
}

static coffer_status compare_one(bool *differs, two_values *values, const coffer__mldf_comparison *comparison,
                                 const coffer__mldf_pair *pair, uint64_t sample, comparer *with,
                                 coffer_error *err)
{
    const coffer_mldf_field *field = &comparison->set[0]->schema.fields[pair->field[0]];
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    coffer_status status;
    *values = (two_values){ .difference = 0 };
    for (int i = 0; i < 2; i++) {
        status = coffer__mldf_read_entry(&values->entry[i], comparison->set[i],
                                         coffer__mldf_sample_of(comparison, sample, i), pair->field[i], err);
        if (status)
            return i == 1 ? name_second(comparison, status, err) : status;
    }
    if (field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT) {
        bool whole = field->kind == COFFER_MLDF_ENTRY_INT;
        const coffer_mldf_entry *a = &values->entry[0], *b = &values->entry[1];
        *differs = whole && a->i64 == b->i64
                       ? false
                       : numbers_differ(values, whole ? (double)a->i64 : a->f64,
                                        whole ? (double)b->i64 : b->f64, comparison->opts->tolerance) ||
                             (whole && comparison->opts->tolerance == 0);
        return COFFER_OK;
    }
    *differs = !same_facts(&values->entry[0], &values->entry[1]);
    if (*differs || !values->entry[0].present)
        return COFFER_OK;
    for (int i = 0; i < 2; i++) {
        status = fetch(values, i, comparison->set[i], coffer__mldf_sample_of(comparison, sample, i),
                       pair->field[i], with, err);
        if (status)
            return i == 1 ? name_second(comparison, status, err) : status;
    }
    bool array =
        info && info->has_array && comparison->set[1]->schema.fields[pair->field[1]].dtype == field->dtype;
    *differs = array ? arrays_differ(values, field, comparison->opts->tolerance) : bytes_differ(values);
    return COFFER_OK;
}

/* ---- The list ---- */

static void put_side(coffer_node *entry, const char *name, const two_values *values, int side,
                     const coffer_mldf_field *field)
{
    const coffer_mldf_entry *value = &values->entry[side];
    const uint8_t *bytes = values->bytes[side];
    size_t size = values->size[side];
    bool text = (field->kind == COFFER_MLDF_ENTRY_TEXT && value->encoding == COFFER_MLDF_ENCODING_UTF8) ||
                field->type == COFFER_MLDF_JSON;
    if (field->kind == COFFER_MLDF_ENTRY_INT)
        coffer_node_add_i64(entry, name, value->i64, COFFER_UNIT_NONE);
    else if (field->kind == COFFER_MLDF_ENTRY_FLOAT)
        coffer_node_add_f64(entry, name, value->f64, COFFER_UNIT_NONE);
    else if (!value->present)
        coffer_node_add_null(entry, name);
    else if (text && bytes && size <= SHOWN && coffer__utf8_valid(bytes, size))
        coffer_node_add_text_len(entry, name, (const char *)bytes, size);
    else if (field->kind == COFFER_MLDF_ENTRY_IMAGE)
        coffer_node_add_printf(entry, name, "%u×%u×%u, %lu bytes", value->width, value->height,
                               value->channels, (unsigned long)value->size);
    else
        coffer_node_add_printf(entry, name, "%lu bytes", (unsigned long)(bytes ? size : value->size));
}

static void list_difference(coffer_node *listed, const coffer__mldf_comparison *comparison,
                            const coffer__mldf_pair *pair, uint64_t sample, const two_values *values)
{
    const coffer_mldf_field *field = &comparison->set[0]->schema.fields[pair->field[0]];
    coffer_node *entry = coffer_node_add_map(listed, NULL);
    coffer_node_add_u64(entry, "sample", coffer__mldf_sample_of(comparison, sample, 0), COFFER_UNIT_NONE);
    if (comparison->matches)
        coffer_node_add_u64(entry, "sample_b", coffer__mldf_sample_of(comparison, sample, 1),
                            COFFER_UNIT_NONE);
    coffer_node_add_text(entry, "field", field->name);
    put_side(entry, "a", values, 0, field);
    put_side(entry, "b", values, 1, field);
    if (values->bytes[0] && values->bytes[1])
        coffer_node_add_u64(entry, "at", values->at, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(entry, "at");
}

/* ---- A piece of samples ---- */

/* listed : NULL when differences are only counted. */
static coffer_status compare_piece(values_job *job, uint64_t piece, comparer *with, coffer_node *listed,
                                   coffer_error *err)
{
    const coffer__mldf_comparison *comparison = job->comparison;
    uint64_t first = piece * PIECE, left = comparison->samples - first;
    uint64_t end = first + (left < PIECE ? left : PIECE);
    for (uint64_t sample = first; sample < end; sample++) {
        for (size_t i = 0; i < comparison->pair_count; i++) {
            coffer__mldf_pair *found = &with->pairs[i];
            two_values values;
            bool differs = false;
            coffer_status status =
                compare_one(&differs, &values, comparison, &comparison->pairs[i], sample, with, err);
            if (status)
                return status;
            if (listed && differs && coffer_node_count(listed) < comparison->opts->max_shown)
                list_difference(listed, comparison, &comparison->pairs[i], sample, &values);
            if (listed || (!differs && values.difference == 0))
                continue;
            job->differs[piece] |= differs;
            found->differing += differs;
            if (differs && sample < found->first)
                found->first = sample;
            if (values.difference > found->largest)
                found->largest = values.difference;
        }
    }
    return COFFER_OK;
}

static coffer_status count_piece(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    values_job *job = context;
    return compare_piece(job, piece, &job->comparers[worker], NULL, err);
}

static void merge(values_job *job, uint32_t threads)
{
    for (size_t i = 0; i < job->comparison->pair_count; i++) {
        coffer__mldf_pair *into = &job->comparison->pairs[i];
        for (uint32_t w = 0; w < threads; w++) {
            const coffer__mldf_pair *from = &job->comparers[w].pairs[i];
            into->differing += from->differing;
            into->first = from->first < into->first ? from->first : into->first;
            into->largest = from->largest > into->largest ? from->largest : into->largest;
        }
    }
}

static coffer_status run(values_job *job, coffer__pool *pool, coffer_error *err)
{
    const coffer__mldf_comparison *comparison = job->comparison;
    uint64_t pieces = coffer__divide_up(comparison->samples, PIECE);
    coffer_status status =
        coffer__mldf_run_pieces(pool, pieces, count_piece, job, comparison->opts->progress, err);
    for (uint64_t i = 0; !status && job->listed && i < pieces; i++) {
        if (coffer_node_count(job->listed) >= comparison->opts->max_shown)
            break;
        if (job->differs[i])
            status = compare_piece(job, i, &job->comparers[0], job->listed, err);
    }
    if (!status)
        status = coffer_source_intact(comparison->set[0]->source, err);
    if (!status)
        status = name_second(comparison, coffer_source_intact(comparison->set[1]->source, err), err);
    if (!status)
        merge(job, coffer__pool_threads(pool));
    return status;
}

static coffer_status prepare(values_job *job, uint32_t threads, coffer_error *err)
{
    size_t pairs = job->comparison->pair_count;
    job->comparers = coffer__calloc(threads, sizeof *job->comparers);
    job->differs = coffer__calloc((size_t)coffer__divide_up(job->comparison->samples, PIECE), 1);
    if (!job->comparers || !job->differs)
        return coffer__fail_no_memory(err, job->comparison->samples / PIECE);
    for (uint32_t w = 0; w < threads; w++) {
        job->comparers[w].pairs = coffer__calloc(pairs, sizeof *job->comparers[w].pairs);
        if (!job->comparers[w].pairs)
            return coffer__fail_no_memory(err, pairs * sizeof *job->comparers[w].pairs);
        for (size_t i = 0; i < pairs; i++)
            job->comparers[w].pairs[i].first = UINT64_MAX;
    }
    return COFFER_OK;
}

coffer_status coffer__mldf_compare_values(coffer__mldf_comparison *comparison, coffer_node *differences,
                                          coffer_error *err)
{
    values_job job = { .comparison = comparison, .listed = differences };
    coffer__pool *pool = NULL;
    coffer_status status;
    if (comparison->pair_count == 0)
        return COFFER_OK;
    status = coffer__pool_new(&pool, comparison->opts->threads, err);
    if (status)
        return status;
    status = prepare(&job, coffer__pool_threads(pool), err);
    if (!status)
        status = run(&job, pool, err);
    for (uint32_t w = 0; job.comparers && w < coffer__pool_threads(pool); w++) {
        coffer_free(job.comparers[w].bytes[0].data);
        coffer_free(job.comparers[w].bytes[1].data);
        coffer__free(job.comparers[w].pairs);
    }
    coffer__free(job.comparers);
    coffer__free(job.differs);
    coffer__pool_free(pool);
    return status;
}
