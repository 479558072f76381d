/* New sets from old ones: a selection of samples and fields, or several sets one after the other. Stored
 * payloads are copied unchanged, and each is compared with its checksum. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "formats/mldf/write/mldf_write.h"
#include "io/source_private.h"

#include <inttypes.h>

/* Samples between two calls of the progress. */
#define STEP 256

COFFER__INIT_FUNCTION(coffer_mldf_concat_opts, COFFER_MLDF_CONCAT_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_copy_opts, COFFER_MLDF_COPY_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_extract_opts, COFFER_MLDF_EXTRACT_OPTS_INIT)

coffer_status coffer__mldf_start_copy(coffer_mldf_writer **out, const char *path, const coffer_mldf *set,
                                      const size_t *fields, size_t count, const coffer_mldf_writer_opts *opts,
                                      coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status = coffer__mldf_writer_new(&writer, path, opts, err);
    if (status)
        return status;
    /* Payloads that samples of the old set share stay shared. */
    writer->dedup = true;
    status = coffer__mldf_take_fields(writer, set, fields, count, NULL, err);
    /* Without a key the payloads stay as they are, and so does what they are tied to. */
    if (!status && !writer->has_key && !set->has_key) {
        memcpy(writer->id, set->guard.id, sizeof writer->id);
        writer->keeps_id = true;
    }
    if (!status)
        coffer__mldf_guard_begin(writer);
    if (!status)
        status = coffer__mldf_open_sink(writer, err);
    if (!status)
        status = coffer__mldf_write_front(writer, err);
    if (status) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

static coffer_status finish(coffer_mldf_writer *writer, coffer_status status, coffer_error *err)
{
    if (!status)
        return coffer_mldf_writer_commit(writer, err);
    coffer_mldf_writer_discard(writer);
    return status;
}

static coffer_status check_choice(const coffer_mldf *set, const coffer_mldf_extract_opts *chosen,
                                  coffer_error *err)
{
    for (uint64_t i = 0; chosen->samples && i < chosen->sample_count; i++) {
        if (chosen->samples[i] >= set->header.samples)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "sample %" PRIu64 " requested, the set has %" PRIu64, chosen->samples[i],
                                set->header.samples);
    }
    for (size_t i = 0; chosen->fields && i < chosen->field_count; i++) {
        if (chosen->fields[i] >= set->schema.count)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "field %zu requested, the set has %zu", chosen->fields[i], set->schema.count);
    }
    return COFFER_OK;
}

typedef struct copying {
    coffer_mldf_writer *writer;
    uint64_t total, done; /* samples */
    const coffer_progress *progress;
} copying;

/* Copies the chosen samples and fields of a set. */
static coffer_status copy_samples(copying *job, const coffer_mldf *set,
                                  const coffer_mldf_extract_opts *chosen, coffer_error *err)
{
    uint64_t count = chosen->samples ? chosen->sample_count : set->header.samples;
    coffer__mldf_copier copier;
    coffer_status status = coffer__mldf_copier_init(&copier, job->writer, set, chosen->fields, err);
    if (status)
        return status;
    for (uint64_t i = 0; i < count && !status; i++) {
        status = coffer__mldf_copy_sample(&copier, chosen->samples ? chosen->samples[i] : i, err);
        job->done++;
        if (!status && (i + 1) % STEP == 0)
            status = coffer__progress_step(job->progress, job->done, job->total, err);
    }
    coffer__mldf_copier_free(&copier);
    return status;
}

/* Starts the new set with other names for its fields: the writer sees a set that has them. */
static coffer_status start_renamed(coffer_mldf_writer **out, const char *path, const coffer_mldf *set,
                                   const coffer_mldf_extract_opts *options, size_t count, coffer_error *err)
{
    coffer_mldf renamed = *set;
    if (!options->names)
        return coffer__mldf_start_copy(out, path, set, options->fields, count, options->write, err);
    renamed.schema.fields = coffer__alloc_array(set->schema.count + 1, sizeof *renamed.schema.fields);
    if (!renamed.schema.fields)
        return coffer__fail_no_memory(err, set->schema.count * sizeof *renamed.schema.fields);
    memcpy(renamed.schema.fields, set->schema.fields, set->schema.count * sizeof *renamed.schema.fields);
    for (size_t i = 0; i < count; i++)
        renamed.schema.fields[options->fields ? options->fields[i] : i].name = options->names[i];
    coffer_status status =
        coffer__mldf_start_copy(out, path, &renamed, options->fields, count, options->write, err);
    coffer__free(renamed.schema.fields);
    return status;
}

coffer_status coffer_mldf_extract(const char *out_path, const coffer_mldf *set,
                                  const coffer_mldf_extract_opts *opts, coffer_error *err)
{
    coffer_mldf_extract_opts options = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_choice(set, &options, err);
    if (!status)
        status = start_renamed(&writer, out_path, set, &options,
                               options.fields ? options.field_count : set->schema.count, err);
    if (status)
        return status;
    copying job = { writer, options.samples ? options.sample_count : set->header.samples, 0,
                    options.progress };
    status = copy_samples(&job, set, &options, err);
    return finish(writer, status, err);
}

/* ---- Concatenating ---- */

static const char *type_label(uint16_t type)
{
    const char *name = coffer_mldf_type_name(type);
    return name ? name : "of an unknown type";
}

static const char *difference(const coffer_mldf_field *a, const coffer_mldf_field *b)
{
    const unsigned stored = COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED;
    if (a->row_size != b->row_size)
        return "the entries in the rows differ in size";
    if ((a->flags & stored) != (b->flags & stored))
        return "one is compressed or encrypted, the other is not";
    if (a->dtype != b->dtype)
        return "the elements are of different types";
    if (a->ndim != b->ndim || memcmp(a->dims, b->dims, a->ndim * sizeof a->dims[0]) != 0)
        return "the shapes differ";
    if (a->flags & COFFER_MLDF_FIELD_ZSTD && a->dictionary_size != b->dictionary_size)
        return "the dictionaries differ";
    return NULL;
}

static coffer_status compare_dictionaries(bool *same, const coffer_mldf *set, const coffer_mldf_field *field,
                                          const coffer__mldf_column *column, coffer_error *err)
{
    uint32_t size = field->dictionary_size;
    uint8_t *bytes;
    coffer_status status;
    *same = true;
    if (size == 0 || !column->dictionary)
        return COFFER_OK;
    bytes = coffer__malloc(size);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    status = coffer_source_read_at(bytes, set->source, field->dictionary_offset, size, err);
    *same = !status && memcmp(bytes, column->dictionary, size) == 0;
    coffer__free(bytes);
    return status;
}

static coffer_status compare_fields(const coffer_mldf_writer *writer, const coffer_mldf *first,
                                    const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_schema *a = &first->schema, *b = &set->schema;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const char *what = difference(&a->fields[i], &b->fields[i]);
        bool same = true;
        coffer_status status = COFFER_OK;
        if (a->fields[i].type != b->fields[i].type || strcmp(a->fields[i].name, b->fields[i].name) != 0)
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "field %zu is \"%s\" (%s), in the first set it is \"%s\" (%s)", i,
                                b->fields[i].name, type_label(b->fields[i].type), a->fields[i].name,
                                type_label(a->fields[i].type));
        if (!what)
            status = compare_dictionaries(&same, set, &b->fields[i], &writer->columns[i], err);
        if (status)
            return status;
        if (what || !same)
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "field \"%s\" differs from the first set: %s", a->fields[i].name,
                                what ? what : "the dictionaries differ");
    }
    if (a->count != b->count)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%zu fields, the first set has %zu", b->count, a->count);
    return COFFER_OK;
}

coffer_status coffer__mldf_compare_fields(const coffer_mldf_writer *writer, const coffer_mldf *first,
                                          const coffer_mldf *set, coffer_error *err)
{
    return coffer__fail_other(err, compare_fields(writer, first, set, err), coffer_source_name(set->source));
}

coffer_status coffer_mldf_concat(const char *out_path, coffer_mldf *const *sets, size_t count,
                                 const coffer_mldf_concat_opts *opts, coffer_error *err)
{
    static const coffer_mldf_extract_opts everything = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_concat_opts options = COFFER_MLDF_CONCAT_OPTS_INIT;
    copying job = { 0 };
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no sets to concatenate");
    status = coffer__mldf_start_copy(&job.writer, out_path, sets[0], NULL, sets[0]->schema.count,
                                     options.write, err);
    if (status)
        return status;
    job.progress = options.progress;
    for (size_t i = 0; i < count && !status; i++) {
        status = coffer__mldf_compare_fields(job.writer, sets[0], sets[i], err);
        job.total += sets[i]->header.samples;
    }
    for (size_t i = 0; i < count && !status; i++) {
        status = copy_samples(&job, sets[i], &everything, err);
        if (i > 0)
            coffer__fail_input(err, status, coffer_source_name(sets[i]->source));
    }
    return finish(job.writer, status, err);
}

/* ---- Into a writer ---- */

/* The writer's fields, as a set that has them. *out : coffer__free the fields of its schema. */
static coffer_status fields_of(coffer_mldf *out, const coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_mldf_field *fields = coffer__alloc_array(writer->column_count + 1, sizeof *fields);
    if (!fields)
        return coffer__fail_no_memory(err, writer->column_count * sizeof *fields);
    for (size_t i = 0; i < writer->column_count; i++)
        fields[i] = writer->columns[i].field;
    out->schema.fields = fields;
    out->schema.count = writer->column_count;
    return COFFER_OK;
}

static coffer_status check_copy(coffer_mldf_copy_opts *options, const coffer_mldf_writer *writer,
                                const coffer_mldf *set, coffer_error *err)
{
    uint64_t samples = set->header.samples;
    coffer_mldf own = { 0 };
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (writer->only_field != SIZE_MAX || !coffer__mldf_between_samples(writer))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "sample %" PRIu64 " has not been ended: copy between samples", writer->sample);
    if (options->first > samples || options->count > samples - options->first)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "%" PRIu64 " samples from %" PRIu64 " on requested, the set has %" PRIu64,
                            options->count, options->first, samples);
    if (options->count == 0)
        options->count = samples - options->first;
    status = fields_of(&own, writer, err);
    if (!status)
        status = compare_fields(writer, &own, set, err);
    coffer__free(own.schema.fields);
    return status;
}

coffer_status coffer_mldf_writer_copy(coffer_mldf_writer *writer, const coffer_mldf *set,
                                      const coffer_mldf_copy_opts *opts, coffer_error *err)
{
    coffer_mldf_copy_opts options = COFFER_MLDF_COPY_OPTS_INIT;
    coffer__mldf_copier copier;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_copy(&options, writer, set, err);
    if (!status)
        status = coffer__mldf_copier_init(&copier, writer, set, NULL, err);
    if (status)
        return status;
    bool borrows = writer->opts.borrow;
    writer->opts.borrow = false; /* payloads are read into the same memory one after the other */
    for (uint64_t i = 0; i < options.count && !status; i++) {
        status = coffer__mldf_copy_sample(&copier, options.first + i, err);
        if (!status && (i + 1) % STEP == 0)
            status = coffer__progress_step(options.progress, i + 1, options.count, err);
    }
    writer->opts.borrow = borrows;
    coffer__mldf_copier_free(&copier);
    if (status)
        coffer_mldf_writer_cancel_sample(writer);
    return status;
}

/* ---- Rewriting ---- */

coffer_mldf_writer_opts coffer__mldf_settings_of(const coffer_mldf *set)
{
    coffer_mldf_writer_opts options = COFFER_MLDF_WRITER_OPTS_INIT;
    uint32_t page = set->header.page_size;
    uint64_t data = set->header.data;
    /* Keep the page size only when it is valid and the data is aligned to it: a bad number alone must not
     * make a small file large. */
    if (page >= COFFER__MLDF_PAGE_SIZE_MIN && (page & (page - 1)) == 0 && data > 0 && data % page == 0 &&
        data <= set->file_size)
        options.page_size = page;
    options.descriptor_stride = set->schema.stride;
    options.no_checksums = !(set->header.flags & COFFER_MLDF_CHECKSUMMED);
    return options;
}

coffer_status coffer__mldf_rewrite(const char *out_path, const coffer_mldf *set, bool overwrite,
                                   const coffer_limits *limits, const coffer_progress *progress,
                                   coffer_error *err)
{
    coffer_mldf_writer_opts write = coffer__mldf_settings_of(set);
    coffer_mldf_extract_opts everything = COFFER_MLDF_EXTRACT_OPTS_INIT;
    write.overwrite = overwrite;
    write.limits = limits;
    everything.write = &write;
    everything.progress = progress;
    return coffer_mldf_extract(out_path, set, &everything, err);
}

/* ---- Compacting ---- */

static coffer_status describe_sizes(coffer_node *out, const coffer_mldf *set, const char *out_path,
                                    coffer_error *err)
{
    uint64_t before = set->file_size, after;
    coffer_source *written = NULL;
    coffer_status status = coffer_source_open(&written, out_path, NULL, err);
    if (status)
        return status;
    after = coffer_source_size(written);
    coffer_node_add_u64(out, "size_before", before, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "size_after", after, COFFER_UNIT_BYTES);
    coffer_node_add_i64(out, "dropped", (int64_t)before - (int64_t)after, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "samples", set->header.samples, COFFER_UNIT_NONE);
    coffer_source_close(written);
    return coffer_node_status(out, err);
}

coffer_status coffer__mldf_compact(coffer_node *out, const char *path, const char *out_path,
                                   const coffer_compact_opts *opts, coffer_error *err)
{
    const char *target = out_path ? out_path : path;
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_report *damage = NULL;
    coffer_mldf *set = NULL;
    open_options.limits = opts->limits;
    coffer_status status = opts->allow_damaged ? coffer_report_new(&damage, 0, err) : COFFER_OK;
    /* The lock keeps writers out until the new file has the name. */
    if (!status)
        status = coffer__update_open(&update, path, NULL, err);
    if (!status && damage)
        coffer_source_keep_damaged(coffer__update_source(update), damage);
    if (!status)
        status = coffer__mldf_open_strict(&set, coffer__update_source(update), &open_options, err);
    if (!status)
        status = coffer__mldf_rewrite(target, set, opts->overwrite, opts->limits, opts->progress, err);
    if (status)
        goto out;
    status = describe_sizes(out, set, target, err);
    if (!status && damage)
        status = coffer__source_describe_damage(out, damage, err);
out:
    coffer_mldf_close(set);
    coffer__update_close(update);
    coffer_report_free(damage);
    return status;
}
