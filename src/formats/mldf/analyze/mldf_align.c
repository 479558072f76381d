/* Which sample of one set is which of the other: by a field that names samples, or by their content. Samples
 * that were deleted, inserted or moved then do not make all later ones look different. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "formats/mldf/analyze/mldf_diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((uint64_t)1024) /* samples */

typedef struct mark {
    uint64_t hash[2];
    uint64_t sample;
} mark;

typedef struct marking {
    const coffer__mldf_comparison *comparison;
    int side;
    size_t key; /* pair whose value names a sample; SIZE_MAX = all values */
    mark *marks;
    coffer_bytes *bytes; /* one per thread */
    coffer__buffer *texts;
} marking;

/* ---- Marks ---- */

static coffer_status add_value(coffer__buffer *out, coffer_bytes *bytes, const coffer_mldf *set,
                               uint64_t sample, size_t field, coffer_error *err)
{
    const coffer_mldf_field *about = &set->schema.fields[field];
    bool sealed = (about->flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer__mldf_read_entry(&entry, set, sample, field, err);
    if (!status)
        status = sealed && !set->has_key ? coffer_mldf_read_stored(bytes, set, sample, field, err)
                                         : coffer_mldf_read(bytes, NULL, set, sample, field, err);
    if (status)
        return status;
    uint64_t head[2] = { entry.present, bytes->size };
    coffer__buffer_append(out, head, sizeof head);
    coffer__buffer_append(out, bytes->data, bytes->size);
    return out->failed ? coffer__fail_no_memory(err, bytes->size) : COFFER_OK;
}

static coffer_status mark_piece(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    marking *work = context;
    const coffer__mldf_comparison *comparison = work->comparison;
    const coffer_mldf *set = comparison->set[work->side];
    uint64_t first = piece * PIECE, left = set->header.samples - first;
    coffer__buffer *text = &work->texts[worker];
    coffer_status status = COFFER_OK;
    for (uint64_t i = first; !status && i < first + (left < PIECE ? left : PIECE); i++) {
        text->len = 0;
        for (size_t p = 0; !status && p < comparison->pair_count; p++)
            if (work->key == SIZE_MAX || work->key == p)
                status = add_value(text, &work->bytes[worker], set, i, comparison->pairs[p].field[work->side],
                                   err);
        if (!status) {
            coffer__hash_seeded(work->marks[i].hash, text->data, text->len, 0);
            work->marks[i].sample = i;
        }
    }
    return work->side == 1 ? coffer__fail_input(err, status, coffer_source_name(set->source)) : status;
}

static int by_hash(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->hash[i] != y->hash[i])
            return x->hash[i] < y->hash[i] ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static coffer_status mark_samples(mark **out, const coffer__mldf_comparison *comparison, int side, size_t key,
                                  coffer__pool *pool, coffer_error *err)
{
    uint64_t count = comparison->set[side]->header.samples;
    uint32_t threads = coffer__pool_threads(pool);
    marking work = { .comparison = comparison, .side = side, .key = key };
    work.marks = coffer__alloc_array((size_t)count + 1, sizeof *work.marks);
    work.bytes = coffer__calloc(threads, sizeof *work.bytes);
    work.texts = coffer__calloc(threads, sizeof *work.texts);
    coffer_status status = COFFER_OK;
    if (!work.marks || !work.bytes || !work.texts)
        status = coffer__fail_no_memory(err, count * sizeof *work.marks);
    for (uint32_t i = 0; !status && i < threads; i++)
        coffer__buffer_init(&work.texts[i], SIZE_MAX);
    if (!status)
        status = coffer__mldf_run_pieces(pool, coffer__divide_up(count, PIECE), mark_piece, &work,
                                         comparison->opts->progress, err);
    for (uint32_t i = 0; work.bytes && work.texts && i < threads; i++) {
        coffer_free(work.bytes[i].data);
        coffer__buffer_free(&work.texts[i]);
    }
    coffer__free(work.bytes);
    coffer__free(work.texts);
    if (status) {
        coffer__free(work.marks);
        return status;
    }
    if (count)
        qsort(work.marks, (size_t)count, sizeof *work.marks, by_hash);
    *out = work.marks;
    return COFFER_OK;
}

/* ---- Pairs ---- */

/* partner[i] : the sample of the second set that sample i of the first is, or UINT64_MAX. The n-th of equal
 * samples in one set is the n-th in the other. */
static void join(uint64_t *partner, const mark *a, uint64_t a_count, const mark *b, uint64_t b_count)
{
    for (uint64_t i = 0, k = 0; i < a_count;) {
        int order = k < b_count ? (a[i].hash[0] != b[k].hash[0]   ? (a[i].hash[0] < b[k].hash[0] ? -1 : 1)
                                   : a[i].hash[1] != b[k].hash[1] ? (a[i].hash[1] < b[k].hash[1] ? -1 : 1)
                                                                  : 0)
                                : -1;
        if (order > 0) {
            k++;
            continue;
        }
        partner[a[i].sample] = order == 0 ? b[k++].sample : UINT64_MAX;
        i++;
    }
}

/* Finds the longest run of samples that are in the same order in both. stays[i] is true for those of the
 * first set. Returns its length. */
static uint64_t find_unmoved(bool *stays, const uint64_t *partner, uint64_t count, uint64_t *ends,
                             uint64_t *before)
{
    uint64_t length = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (partner[i] == UINT64_MAX)
            continue;
        uint64_t low = 0, high = length;
        while (low < high) {
            uint64_t middle = (low + high) / 2;
            if (partner[ends[middle]] < partner[i])
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? ends[low - 1] : UINT64_MAX;
        ends[low] = i;
        length += low == length;
    }
    for (uint64_t i = length ? ends[length - 1] : UINT64_MAX; i != UINT64_MAX; i = before[i])
        stays[i] = true;
    return length;
}

/* Between two samples that are in both, the others are taken to be changed ones, in their order. */
static void pair_gaps(uint64_t *partner, const bool *stays, uint64_t a_count, const bool *taken,
                      uint64_t b_count)
{
    uint64_t k = 0, first = 0;
    for (uint64_t i = 0; i <= a_count; i++) {
        if (i < a_count && !stays[i])
            continue;
        uint64_t end = i < a_count ? partner[i] : b_count;
        for (; first < i; first++) {
            if (partner[first] != UINT64_MAX)
                continue;
            while (k < end && taken[k])
                k++;
            if (k < end)
                partner[first] = k++;
        }
        k = end + 1;
        first = i + 1;
    }
}

static coffer_status keep_pairs(coffer__mldf_comparison *comparison, const uint64_t *partner,
                                uint64_t a_count, coffer_error *err)
{
    uint64_t *matches = coffer__alloc_array(2 * (size_t)a_count + 1, sizeof *matches);
    if (!matches)
        return coffer__fail_no_memory(err, 2 * a_count * sizeof *matches);
    comparison->samples = 0;
    for (uint64_t i = 0; i < a_count; i++) {
        if (partner[i] == UINT64_MAX)
            continue;
        matches[2 * comparison->samples] = i;
        matches[2 * comparison->samples++ + 1] = partner[i];
    }
    comparison->matches = matches;
    return COFFER_OK;
}

static coffer_status settle(coffer__mldf_comparison *comparison, uint64_t *partner, bool by_content,
                            coffer_error *err)
{
    uint64_t a_count = comparison->set[0]->header.samples, b_count = comparison->set[1]->header.samples;
    uint64_t *ends = coffer__alloc_array((size_t)a_count + 1, sizeof *ends);
    uint64_t *before = coffer__alloc_array((size_t)a_count + 1, sizeof *before);
    bool *stays = coffer__calloc((size_t)a_count + 1, sizeof *stays);
    bool *taken = coffer__calloc((size_t)b_count + 1, sizeof *taken);
    coffer_status status = COFFER_OK;
    if (!ends || !before || !stays || !taken) {
        status = coffer__fail_no_memory(err, a_count * sizeof *ends);
        goto out;
    }
    uint64_t matched = 0;
    for (uint64_t i = 0; i < a_count; i++) {
        if (partner[i] == UINT64_MAX)
            continue;
        taken[partner[i]] = true;
        matched++;
    }
    comparison->moved = matched - find_unmoved(stays, partner, a_count, ends, before);
    if (by_content)
        pair_gaps(partner, stays, a_count, taken, b_count);
    status = keep_pairs(comparison, partner, a_count, err);
out:
    coffer__free(ends);
    coffer__free(before);
    coffer__free(stays);
    coffer__free(taken);
    return status;
}

/* ---- Alignment ---- */

coffer_status coffer__mldf_align_field(size_t *out, const coffer__mldf_comparison *comparison,
                                       coffer_error *err)
{
    static const char *const names[] = { "path", "__key__", "key", "id", "name", "file", "filename" };
    const char *wanted = comparison->opts->align_by;
    const coffer__mldf_schema *schema = &comparison->set[0]->schema;
    *out = SIZE_MAX;
    for (size_t n = 0; *out == SIZE_MAX && n < (wanted ? 1 : sizeof names / sizeof *names); n++) {
        for (size_t p = 0; p < comparison->pair_count; p++) {
            const coffer_mldf_field *field = &schema->fields[comparison->pairs[p].field[0]];
            bool can = field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_TEXT;
            if (can && strcmp(field->name, wanted ? wanted : names[n]) == 0)
                *out = p;
        }
    }
    if (wanted && *out == SIZE_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "no field \"%s\" with integers or texts in both sets", wanted);
    return COFFER_OK;
}

coffer_status coffer__mldf_align(coffer__mldf_comparison *comparison, size_t key, coffer_error *err)
{
    uint64_t a_count = comparison->set[0]->header.samples, b_count = comparison->set[1]->header.samples;
    coffer__pool *pool = NULL;
    mark *marks[2] = { NULL, NULL };
    uint64_t *partner = coffer__alloc_array((size_t)a_count + 1, sizeof *partner);
    coffer_status status = partner ? coffer__pool_new(&pool, comparison->opts->threads, err)
                                   : coffer__fail_no_memory(err, a_count * sizeof *partner);
    for (int i = 0; i < 2 && !status; i++)
        status = mark_samples(&marks[i], comparison, i, key, pool, err);
    if (!status) {
        join(partner, marks[0], a_count, marks[1], b_count);
        status = settle(comparison, partner, key == SIZE_MAX, err);
    }
    coffer__free(marks[0]);
    coffer__free(marks[1]);
    coffer__free(partner);
    coffer__pool_free(pool);
    return status;
}
