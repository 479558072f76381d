/* Changing existing samples: new payloads and then all rows are written after the old end of the file. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"
#include "formats/mldf/write/mldf_write.h"
#include "io/inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP 4096 /* samples between two calls of the progress */

/* ---- Beginning and committing a change ---- */

COFFER__INIT_FUNCTION(coffer_mldf_update_opts, COFFER_MLDF_UPDATE_OPTS_INIT)

typedef struct set_change {
    coffer_mldf_writer *writer;
    const coffer_mldf *set; /* as it was */
    coffer__mldf_row_reader rows;
    const coffer_progress *progress;
} set_change;

static void change_end(set_change *change)
{
    coffer__mldf_row_reader_free(&change->rows);
    coffer_mldf_writer_discard(change->writer);
}

static coffer_status change_begin(set_change *change, const char *path, const coffer_mldf_field *added,
                                  const coffer_mldf_update_opts *opts, coffer_error *err)
{
    coffer_mldf_update_opts options = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    memset(change, 0, sizeof *change);
    write.dedup = options.dedup;
    write.zstd_level = options.zstd_level;
    write.key = options.key;
    write.threads = options.threads;
    write.limits = options.limits;
    change->progress = options.progress;
    status = coffer__mldf_writer_new(&change->writer, path, &write, err);
    if (status)
        return status;
    status = coffer__mldf_base_open(change->writer, err);
    if (!status)
        status = coffer__mldf_base_fields(change->writer, added, err);
    if (!status)
        status = coffer__mldf_row_reader_init(&change->rows, change->writer->base->set, err);
    if (status) {
        change_end(change);
        return status;
    }
    change->set = change->writer->base->set;
    change->writer->base->keeps_rows = false;
    change->writer->sample = 0;
    return COFFER_OK;
}

static coffer_status change_commit(set_change *change, coffer_status status, coffer_error *err)
{
    if (!status) {
        change->writer->only_field = SIZE_MAX;
        status = coffer_mldf_writer_commit(change->writer, err);
        change->writer = NULL;
    }
    change_end(change);
    return status;
}

/* Bytes of a row that its fields take. */
static size_t used_of_row(const coffer_mldf *set)
{
    const coffer_mldf_field *last = &set->schema.fields[set->schema.count - 1];
    return (size_t)last->row_offset + last->row_size;
}

static coffer_status carry_row(set_change *change, uint64_t sample, coffer_error *err)
{
    const uint8_t *row = NULL;
    coffer_status status = coffer__mldf_row_of(&row, &change->rows, sample, err);
    if (!status)
        coffer__mldf_put_row(change->writer, row, used_of_row(change->set));
    return status;
}

static coffer_status carry_marks(set_change *change, uint64_t sample, coffer_error *err)
{
    const coffer__mldf_base *base = change->writer->base;
    return coffer__mldf_carry_marks(change->writer, base->marks, base->mark_count, sample, NULL, err);
}

static coffer_status report_progress(const set_change *change, uint64_t done, coffer_error *err)
{
    return done % STEP == 0 ? coffer__progress_step(change->progress, done, change->set->header.samples, err)
                            : COFFER_OK;
}

static coffer_status call_fill(set_change *change, coffer_mldf_fill fill, void *context, uint64_t sample,
                               size_t field, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status;
    change->writer->only_field = field;
    status = fill(context, change->writer, sample, field, &failure);
    if (!status)
        return COFFER_OK;
    if (err)
        *err = failure;
    return status;
}

/* ---- Adding a field ---- */

coffer_status coffer_mldf_update_add_field(const char *path, const coffer_mldf_field *field,
                                           coffer_mldf_fill fill, void *context,
                                           const coffer_mldf_update_opts *opts, coffer_error *err)
{
    set_change change;
    uint64_t samples;
    size_t added;
    coffer_status status = change_begin(&change, path, field, opts, err);
    if (status)
        return status;
    samples = change.set->header.samples;
    added = change.set->schema.count;
    status = coffer__mldf_base_begin(change.writer, err);
    if (!status)
        status = coffer__mldf_write_dictionary(change.writer, added, err);
    for (uint64_t i = 0; i < samples && !status; i++) {
        status = carry_row(&change, i, err);
        if (!status)
            status = carry_marks(&change, i, err);
        if (!status)
            status = call_fill(&change, fill, context, i, added, err);
        if (!status)
            status = coffer__mldf_end_row(change.writer, err);
        if (status)
            break;
        status = report_progress(&change, i + 1, err);
    }
    return change_commit(&change, status, err);
}

/* ---- Replacing values ---- */

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
            coffer_status status = coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                                "sample %" PRIu64 " is named twice", places[i].sample);
            coffer__free(places);
            return status;
        }
    }
    *out = places;
    return COFFER_OK;
}

static coffer_status check_places(const set_change *change, const place *places, size_t count,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = coffer__mldf_check_index(change->set, places[i].sample, places[i].field, err);
    return status;
}

static coffer_status replace_one(set_change *change, const place *where, coffer_mldf_fill fill, void *context,
                                 coffer_error *err)
{
    const coffer_mldf_field *field = &change->writer->columns[where->field].field;
    memset(coffer__mldf_current_row(change->writer) + field->row_offset, 0, field->row_size);
    return call_fill(change, fill, context, where->sample, where->field, err);
}

/* A value that is replaced needs no mark, and a row none when all of its values are. */
static coffer_status carry_other_marks(set_change *change, uint64_t sample, const place *places, size_t count,
                                       coffer_error *err)
{
    const coffer__mldf_base *base = change->writer->base;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < base->mark_count && !status; i++) {
        bool replaced = base->marks[i].field == COFFER__MLDF_MARK_ROW && count == change->set->schema.count;
        for (size_t j = 0; j < count && !replaced; j++)
            replaced = places[j].field == base->marks[i].field;
        if (!replaced)
            status = coffer__mldf_carry_marks(change->writer, &base->marks[i], 1, sample, NULL, err);
    }
    return status;
}

static coffer_status replace_all(set_change *change, const place *places, size_t count, coffer_mldf_fill fill,
                                 void *context, coffer_error *err)
{
    size_t next = 0;
    coffer_status status = check_places(change, places, count, err);
    for (uint64_t i = 0; i < change->set->header.samples && !status; i++) {
        size_t first = next;
        status = carry_row(change, i, err);
        for (; next < count && places[next].sample == i && !status; next++)
            status = replace_one(change, &places[next], fill, context, err);
        if (!status)
            status = carry_other_marks(change, i, places + first, next - first, err);
        if (!status)
            status = coffer__mldf_end_row(change->writer, err);
        if (!status)
            status = report_progress(change, i + 1, err);
    }
    return status;
}

coffer_status coffer_mldf_update_replace(const char *path, const uint64_t *samples, const size_t *fields,
                                         size_t count, coffer_mldf_fill fill, void *context,
                                         const coffer_mldf_update_opts *opts, coffer_error *err)
{
    set_change change;
    place *places = NULL;
    coffer_status status;
    if (count == 0)
        return COFFER_OK;
    status = sort_places(&places, samples, fields, count, err);
    if (!status)
        status = change_begin(&change, path, NULL, opts, err);
    if (!status) {
        status = replace_all(&change, places, count, fill, context, err);
        status = change_commit(&change, status, err);
    }
    coffer__free(places);
    return status;
}

/* ---- Deleting samples ---- */

/* Encrypts again what was encrypted for the old index of the sample. */
static coffer_status seal_for_new_index(coffer__mldf_copier *copier, uint64_t sample, coffer_error *err)
{
    coffer_mldf_writer *writer = copier->writer;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < writer->column_count && !status; i++) {
        const coffer_mldf_field *field = &writer->columns[i].field;
        if (field->flags & COFFER_MLDF_FIELD_ENCRYPTED &&
            coffer__load_u32(coffer__mldf_current_row(writer) + field->row_offset +
                             COFFER__MLDF_PAYLOAD_SIZE_AT) > 0)
            status = coffer__mldf_copy_payload(copier, sample, i, i, err);
    }
    return status;
}

static coffer_status delete_all(set_change *change, const place *places, size_t count, coffer_error *err)
{
    size_t next = 0;
    coffer__mldf_copier copier;
    coffer_status status = check_places(change, places, count, err);
    if (!status)
        status = coffer__mldf_copier_init(&copier, change->writer, change->set, NULL, err);
    if (status)
        return status;
    for (uint64_t i = 0; i < change->set->header.samples && !status; i++) {
        if (next < count && places[next].sample == i) {
            next++;
            continue;
        }
        status = carry_row(change, i, err);
        if (!status)
            status = carry_marks(change, i, err);
        if (!status && next > 0)
            status = seal_for_new_index(&copier, i, err);
        if (!status)
            status = coffer__mldf_end_row(change->writer, err);
        if (!status)
            status = report_progress(change, i + 1, err);
    }
    coffer__mldf_copier_free(&copier);
    return status;
}

coffer_status coffer_mldf_update_delete(const char *path, const uint64_t *samples, size_t count,
                                        const coffer_mldf_update_opts *opts, coffer_error *err)
{
    set_change change;
    place *places = NULL;
    coffer_status status;
    if (count == 0)
        return COFFER_OK;
    status = sort_places(&places, samples, NULL, count, err);
    if (!status)
        status = change_begin(&change, path, NULL, opts, err);
    if (!status) {
        status = delete_all(&change, places, count, err);
        status = change_commit(&change, status, err);
    }
    coffer__free(places);
    return status;
}

/* Dropping and renaming fields: the set is written again and takes the name of the old one. */

typedef struct field_change {
    const size_t *dropped;
    size_t dropped_count;
    size_t renamed; /* SIZE_MAX = none */
    const char *name;
} field_change;

static bool is_dropped(const field_change *change, size_t field)
{
    for (size_t i = 0; i < change->dropped_count; i++)
        if (change->dropped[i] == field)
            return true;
    return false;
}

static coffer_status check_change(const field_change *change, const coffer_mldf *set, coffer_error *err)
{
    for (size_t i = 0; i < change->dropped_count; i++)
        if (change->dropped[i] >= set->schema.count)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "field %zu requested, the set has %zu", change->dropped[i],
                                set->schema.count);
    if (change->renamed != SIZE_MAX && change->renamed >= set->schema.count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu requested, the set has %zu", change->renamed, set->schema.count);
    return COFFER_OK;
}

static coffer_status rewrite(const char *path, const coffer_mldf *set, const field_change *change,
                             const coffer_mldf_update_opts *options, coffer_error *err)
{
    coffer_mldf_extract_opts extract = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_writer_opts write = coffer__mldf_settings_of(set);
    size_t kept = 0, count = set->schema.count;
    size_t *fields = coffer__alloc_array(count + 1, sizeof *fields);
    const char **names = coffer__alloc_array(count + 1, sizeof *names);
    coffer_status status = COFFER_OK;
    if (!fields || !names) {
        status = coffer__fail_no_memory(err, count * sizeof *fields);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_dropped(change, i))
            continue;
        fields[kept] = i;
        names[kept++] = i == change->renamed ? change->name : set->schema.fields[i].name;
    }
    if (kept == 0 && set->header.samples > 0) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "no field would be left; a sample needs at least one");
        goto out;
    }
    write.overwrite = true;
    write.key = options->key;
    write.threads = options->threads;
    write.limits = options->limits;
    extract.fields = fields;
    extract.field_count = kept;
    extract.names = names;
    extract.write = &write;
    extract.progress = options->progress;
    status = coffer_mldf_extract(path, set, &extract, err);
out:
    coffer__free(fields);
    coffer__free(names);
    return status;
}

static coffer_status apply(const char *path, const field_change *change, const coffer_mldf_update_opts *opts,
                           coffer_error *err)
{
    coffer_mldf_update_opts options = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_mldf_open_opts open = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mldf *set = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    open.key = options.key;
    open.limits = options.limits;
    open.verify = true;
    /* The lock keeps writers out until the new file has the name. */
    if (!status)
        status = coffer__update_open(&update, path, NULL, err);
    if (!status)
        status = coffer__mldf_open_strict(&set, coffer__update_source(update), &open, err);
    if (!status)
        status = check_change(change, set, err);
    if (!status) {
        coffer__inputs_allow(path); /* it is rewritten in place */
        status = rewrite(path, set, change, &options, err);
    }
    coffer_mldf_close(set);
    coffer__update_close(update);
    return status;
}

coffer_status coffer_mldf_update_drop_fields(const char *path, const size_t *fields, size_t count,
                                             const coffer_mldf_update_opts *opts, coffer_error *err)
{
    const field_change change = { fields, count, SIZE_MAX, NULL };
    return count ? apply(path, &change, opts, err) : COFFER_OK;
}

coffer_status coffer_mldf_update_rename_field(const char *path, size_t field, const char *name,
                                              const coffer_mldf_update_opts *opts, coffer_error *err)
{
    const field_change change = { NULL, 0, field, name };
    return apply(path, &change, opts, err);
}
