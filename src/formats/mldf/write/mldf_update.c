/* Changing samples that are there: all rows are written anew behind the old end, and what is new among the
 * payloads before them. */
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"

#include <stdlib.h>

#define STEP 4096 /* progress is told once for this many samples */

/* ---- What all changes share ---- */

typedef struct change {
    coffer_mldf_writer *writer;
    const coffer_mldf *set; /* as it was */
    coffer__mldf_row_reader rows;
} change;

static void change_end(change *of)
{
    coffer__mldf_row_reader_free(&of->rows);
    coffer_mldf_writer_discard(of->writer);
}

static coffer_status change_begin(change *of, const char *path, const coffer_mldf_field *added,
                                  const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_status status;
    memset(of, 0, sizeof *of);
    if ((status = coffer__mldf_writer_new(&of->writer, path, opts, err)))
        return status;
    if ((status = coffer__mldf_base_open(of->writer, err)) ||
        (status = coffer__mldf_base_fields(of->writer, added, err)) ||
        (status = coffer__mldf_row_reader_init(&of->rows, of->writer->base->set, err))) {
        change_end(of);
        return status;
    }
    of->set = of->writer->base->set;
    of->writer->base->keeps_rows = false;
    of->writer->sample = 0;
    return COFFER_OK;
}

static coffer_status change_commit(change *of, coffer_status status, coffer_error *err)
{
    if (status == COFFER_OK) {
        of->writer->only_field = SIZE_MAX;
        status = coffer_mldf_writer_commit(of->writer, err);
        of->writer = NULL;
    }
    change_end(of);
    return status;
}

/* Bytes of a row that its fields take. */
static size_t used_of_row(const coffer_mldf *set)
{
    const coffer_mldf_field *last = &set->schema.fields[set->schema.count - 1];
    return (size_t)last->row_offset + last->row_size;
}

static coffer_status carry_row(change *of, uint64_t sample, coffer_error *err)
{
    const uint8_t *row = NULL;
    coffer_status status = coffer__mldf_row_of(&row, &of->rows, sample, err);
    if (status == COFFER_OK)
        coffer__mldf_put_row(of->writer, row, used_of_row(of->set));
    return status;
}

static coffer_status call_fill(change *of, coffer_mldf_fill fill, void *context, uint64_t sample,
                               size_t field, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status;
    of->writer->only_field = field;
    status = fill(context, of->writer, sample, field, &failure);
    if (status == COFFER_OK)
        return COFFER_OK;
    if (err)
        *err = failure;
    return status;
}

/* ---- A field more ---- */

coffer_status coffer_mldf_update_add_field(const char *path, const coffer_mldf_field *field,
                                           coffer_mldf_fill fill, void *context,
                                           const coffer_mldf_writer_opts *opts,
                                           const coffer_progress *progress, coffer_error *err)
{
    change of;
    uint64_t samples;
    size_t added;
    coffer_status status = change_begin(&of, path, field, opts, err);
    if (status)
        return status;
    samples = of.set->header.samples;
    added = of.set->schema.count;
    if (!(status = coffer__mldf_base_begin(of.writer, err)))
        status = coffer__mldf_write_dictionary(of.writer, added, err);
    for (uint64_t i = 0; i < samples && status == COFFER_OK; i++) {
        if ((status = carry_row(&of, i, err)) || (status = call_fill(&of, fill, context, i, added, err)) ||
            (status = coffer__mldf_end_row(of.writer, err)))
            break;
        if ((i + 1) % STEP == 0)
            status = coffer__mldf_step(progress, i + 1, samples, err);
    }
    return change_commit(&of, status, err);
}

/* ---- Other values ---- */

typedef struct place {
    uint64_t sample;
    size_t field;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->sample != y->sample)
        return x->sample < y->sample ? -1 : 1;
    return (x->field > y->field) - (x->field < y->field);
}

static coffer_status sort_places(place **out, const uint64_t *samples, const size_t *fields, size_t count,
                                 coffer_error *err)
{
    place *places = coffer__alloc_array(count ? count : 1, sizeof *places);
    if (!places)
        return coffer__fail_no_memory(err, count * sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[i] = (place){ samples[i], fields ? fields[i] : 0 };
    qsort(places, count, sizeof *places, by_place);
    for (size_t i = 1; i < count; i++) {
        if (by_place(&places[i - 1], &places[i]) == 0) {
            coffer_status status =
                coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "sample %llu is named twice",
                             (unsigned long long)places[i].sample);
            coffer__free(places);
            return status;
        }
    }
    *out = places;
    return COFFER_OK;
}

static coffer_status check_places(const change *of, const place *places, size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && status == COFFER_OK; i++)
        status = coffer__mldf_check_index(of->set, places[i].sample, places[i].field, err);
    return status;
}

static coffer_status replace_one(change *of, const place *at, coffer_mldf_fill fill, void *context,
                                 coffer_error *err)
{
    const coffer_mldf_field *field = &of->writer->columns[at->field].field;
    memset(coffer__mldf_current_row(of->writer) + field->row_offset, 0, field->row_size);
    return call_fill(of, fill, context, at->sample, at->field, err);
}

static coffer_status replace_all(change *of, const place *places, size_t count, coffer_mldf_fill fill,
                                 void *context, coffer_error *err)
{
    size_t next = 0;
    coffer_status status = check_places(of, places, count, err);
    for (uint64_t i = 0; i < of->set->header.samples && status == COFFER_OK; i++) {
        status = carry_row(of, i, err);
        for (; next < count && places[next].sample == i && status == COFFER_OK; next++)
            status = replace_one(of, &places[next], fill, context, err);
        if (status == COFFER_OK)
            status = coffer__mldf_end_row(of->writer, err);
    }
    return status;
}

coffer_status coffer_mldf_update_replace(const char *path, const uint64_t *samples, const size_t *fields,
                                         size_t count, coffer_mldf_fill fill, void *context,
                                         const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    change of;
    place *places = NULL;
    coffer_status status;
    if (count == 0)
        return COFFER_OK;
    if (!(status = sort_places(&places, samples, fields, count, err)) &&
        !(status = change_begin(&of, path, NULL, opts, err))) {
        status = replace_all(&of, places, count, fill, context, err);
        status = change_commit(&of, status, err);
    }
    coffer__free(places);
    return status;
}

/* ---- Fewer samples ---- */

/* Payloads that are encrypted for the old number of the sample. */
static coffer_status seal_for_new_number(coffer__mldf_copier *copier, uint64_t sample, coffer_error *err)
{
    coffer_mldf_writer *writer = copier->writer;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < writer->column_count && status == COFFER_OK; i++) {
        const coffer_mldf_field *field = &writer->columns[i].field;
        if (field->flags & COFFER_MLDF_FIELD_ENCRYPTED &&
            coffer__load_u32(coffer__mldf_current_row(writer) + field->row_offset + 8) > 0)
            status = coffer__mldf_copy_payload(copier, sample, i, i, err);
    }
    return status;
}

static coffer_status delete_all(change *of, const place *places, size_t count, coffer_error *err)
{
    size_t next = 0;
    coffer__mldf_copier copier;
    coffer_status status;
    if ((status = check_places(of, places, count, err)) ||
        (status = coffer__mldf_copier_init(&copier, of->writer, of->set, NULL, err)))
        return status;
    for (uint64_t i = 0; i < of->set->header.samples && status == COFFER_OK; i++) {
        if (next < count && places[next].sample == i) {
            next++;
            continue;
        }
        if (!(status = carry_row(of, i, err)) && next > 0)
            status = seal_for_new_number(&copier, i, err);
        if (status == COFFER_OK)
            status = coffer__mldf_end_row(of->writer, err);
    }
    coffer__mldf_copier_free(&copier);
    return status;
}

coffer_status coffer_mldf_update_delete(const char *path, const uint64_t *samples, size_t count,
                                        const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    change of;
    place *places = NULL;
    coffer_status status;
    if (count == 0)
        return COFFER_OK;
    if (!(status = sort_places(&places, samples, NULL, count, err)) &&
        !(status = change_begin(&of, path, NULL, opts, err))) {
        status = delete_all(&of, places, count, err);
        status = change_commit(&of, status, err);
    }
    coffer__free(places);
    return status;
}
