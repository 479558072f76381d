/* How far the tensors of one model are from those of another, and in which rows: the quality of quantization.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_model.h"

#include <math.h>
#include <string.h>

enum { MOST_PAIRS = 20000, MOST_ROWS = 2000 };
#define BATCH ((uint64_t)1 << 18)
/* A row of more elements than this is not read at once. */
#define LONGEST_ROW ((uint64_t)1 << 22)

typedef struct comparison {
    const coffer_tensors *sets[2];
    float *values[2];  /* in one piece of memory */
    uint64_t capacity; /* of each */
} comparison;

static coffer_status reserve(comparison *work, uint64_t count, coffer_error *err)
{
    if (work->values[0] && count <= work->capacity)
        return COFFER_OK;
    coffer__free(work->values[0]);
    work->values[0] = coffer__alloc_array(2 * (size_t)count, sizeof **work->values);
    if (!work->values[0])
        return coffer__fail_no_memory(err, 2 * count * sizeof **work->values);
    work->values[1] = work->values[0] + count;
    work->capacity = count;
    return COFFER_OK;
}

/* Adds the elements of a row to its group. */
static void add_row(coffer__page_pair *pair, double sums[][2], uint32_t group, const float *a, const float *b,
                    uint64_t columns)
{
    for (uint64_t i = 0; i < columns; i++) {
        double difference = (double)b[i] - (double)a[i];
        sums[group][0] += (double)a[i] * (double)a[i];
        sums[group][1] += difference * difference;
        pair->max_abs = fmax(pair->max_abs, fabs(difference));
    }
}

static double ratio(double noise, double signal)
{
    return noise == 0 ? 0 : signal > 0 ? sqrt(noise / signal) : INFINITY;
}

/* The first dimension gives the rows; a tensor of one dimension is one row. */
static coffer_status compare_pair(coffer__page_pair *pair, comparison *work, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(work->sets[0], pair->tensors[0]);
    uint64_t rows = tensor->rank > 1 ? tensor->dims[0] : 1, columns = tensor->elements / rows;
    uint64_t step = columns < BATCH ? BATCH / columns : 1;
    double sums[COFFER__PAGE_ROW_GROUPS][2] = { { 0 } }, signal = 0, noise = 0;
    pair->groups = rows < COFFER__PAGE_ROW_GROUPS ? (uint32_t)rows : COFFER__PAGE_ROW_GROUPS;
    coffer_status status = columns > LONGEST_ROW ? coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                                                "a row is too long")
                                                 : reserve(work, step * columns, err);
    for (uint64_t row = 0; row < rows && !status; row += step) {
        uint64_t count = rows - row < step ? rows - row : step;
        for (size_t i = 0; i < 2 && !status; i++)
            status = coffer_tensors_read_as(work->values[i], COFFER_DTYPE_F32, work->sets[i],
                                            pair->tensors[i], row * columns, count * columns, err);
        for (uint64_t i = 0; i < count && !status; i++)
            add_row(pair, sums, (uint32_t)((row + i) * pair->groups / rows), work->values[0] + i * columns,
                    work->values[1] + i * columns, columns);
    }
    for (uint32_t i = 0; i < pair->groups; i++) {
        signal += sums[i][0];
        noise += sums[i][1];
        pair->rows[i] = (float)ratio(sums[i][1], sums[i][0]);
    }
    pair->relative = ratio(noise, signal);
    return status;
}

/* The same shape: where the file stores the dimensions differently, the rows would be others. */
static bool can_compare(const coffer_tensor *a, const coffer_tensor *b)
{
    return a->rank == b->rank && a->rank > 0 && a->elements > 0 &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

coffer_status coffer__page_pairs_new(coffer__page_pairs *out, const coffer_tensors *a,
                                     const coffer_tensors *b, coffer_error *err)
{
    comparison work = { .sets = { a, b } };
    size_t total = coffer_tensors_count(a);
    coffer_status status = COFFER_OK;
    out->list = coffer__calloc(total ? total : 1, sizeof *out->list);
    if (!out->list)
        return coffer__fail_no_memory(err, (uint64_t)total * sizeof *out->list);
    for (size_t i = 0; i < total && !status; i++) {
        coffer_error found = COFFER_ERROR_INIT;
        size_t other = coffer_tensors_find(b, coffer_tensors_at(a, i)->name);
        if (other == COFFER_INDEX_NONE || !can_compare(coffer_tensors_at(a, i), coffer_tensors_at(b, other)))
            continue;
        coffer__page_pair *pair = &out->list[out->count];
        *pair = (coffer__page_pair){ .tensors = { i, other } };
        coffer_status compared = compare_pair(pair, &work, &found);
        if (!compared)
            out->count++;
        else if (coffer__is_about_file(compared) || compared == COFFER_E_UNSUPPORTED)
            out->skipped++;
        else
            status = coffer__fail_copy(err, &found);
    }
    coffer__free(work.values[0]);
    return status;
}

void coffer__page_pairs_free(coffer__page_pairs *pairs)
{
    coffer__free(pairs->list);
    *pairs = (coffer__page_pairs){ 0 };
}

/* ---- Chunks ---- */

static void add_rows(coffer_chunks *chunks, const coffer__page_pairs *pairs, size_t count)
{
    size_t cells = 0, place = 0;
    for (size_t i = 0; i < count; i++)
        cells += pairs->list[i].groups;
    uint32_t *groups = coffer__chunks_u32(chunks, "quality.groups", count);
    float *rows = coffer__chunks_f32(chunks, "quality.rows", cells);
    for (size_t i = 0; rows && i < count; i++) {
        const coffer__page_pair *pair = &pairs->list[i];
        groups[i] = pair->groups;
        memcpy(rows + place, pair->rows, pair->groups * sizeof *rows);
        place += pair->groups;
    }
}

void coffer__page_add_pairs(coffer_chunks *chunks, const coffer__page_pairs *pairs, const coffer_tensors *a,
                            const coffer_tensors *b, uint32_t detail)
{
    size_t most = MOST_PAIRS / detail, count = pairs->count < most ? pairs->count : most;
    size_t with_rows = count < MOST_ROWS / detail ? count : MOST_ROWS / detail;
    uint32_t *name = coffer__chunks_u32(chunks, "quality.name", count);
    uint32_t *before = coffer__chunks_u32(chunks, "quality.before", count);
    uint32_t *after = coffer__chunks_u32(chunks, "quality.after", count);
    double *elements = coffer__chunks_f64(chunks, "quality.elements", count);
    double *relative = coffer__chunks_f64(chunks, "quality.relative", count);
    double *max_abs = coffer__chunks_f64(chunks, "quality.max_abs", count);
    for (size_t i = 0; max_abs && i < count; i++) {
        const coffer__page_pair *pair = &pairs->list[i];
        const coffer_tensor *from = coffer_tensors_at(a, pair->tensors[0]);
        name[i] = coffer__chunks_text(chunks, from->name);
        before[i] = coffer__chunks_text(chunks, coffer_tensor_dtype_name(from));
        after[i] =
            coffer__chunks_text(chunks, coffer_tensor_dtype_name(coffer_tensors_at(b, pair->tensors[1])));
        elements[i] = (double)from->elements;
        relative[i] = pair->relative;
        max_abs[i] = pair->max_abs;
    }
    add_rows(chunks, pairs, with_rows);
    if (count < pairs->count)
        coffer__chunks_note(chunks, "the first %zu of %zu compared tensors are listed", count, pairs->count);
    if (pairs->skipped)
        coffer__chunks_note(chunks, "tensors that cannot be decoded and are not compared: %zu",
                            pairs->skipped);
}
