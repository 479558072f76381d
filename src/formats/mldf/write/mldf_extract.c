/* New sets out of old ones: some samples, some fields, several sets one behind the other. Stored payloads are
 * copied as they are, and each is compared with its checksum. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mldf/write/mldf_write.h"

/* Progress is told once for this many samples. */
#define STEP 256

coffer_status coffer__mldf_start_copy(coffer_mldf_writer **out, const char *path, const coffer_mldf *set,
                                      const size_t *fields, size_t count, const coffer_mldf_writer_opts *opts,
                                      coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    if ((status = coffer__mldf_writer_new(&writer, path, opts, err)))
        return status;
    /* What the old set shares between samples stays shared. */
    writer->dedup = true;
    if ((status = coffer__mldf_take_fields(writer, set, fields, count, NULL, err)) ||
        (status = coffer__mldf_open_sink(writer, err)) || (status = coffer__mldf_write_front(writer, err))) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

static coffer_status finish(coffer_mldf_writer *writer, coffer_status status, coffer_error *err)
{
    if (status == COFFER_OK)
        return coffer_mldf_writer_commit(writer, err);
    coffer_mldf_writer_discard(writer);
    return status;
}

static coffer_status check_choice(const coffer_mldf *set, const uint64_t *samples, uint64_t count,
                                  const size_t *fields, size_t field_count, coffer_error *err)
{
    for (uint64_t i = 0; samples && i < count; i++) {
        if (samples[i] >= set->header.samples)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "sample %llu is not there: the set has %llu", (unsigned long long)samples[i],
                                (unsigned long long)set->header.samples);
    }
    for (size_t i = 0; fields && i < field_count; i++) {
        if (fields[i] >= set->schema.count)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "field %zu is not there: the set has %zu", fields[i], set->schema.count);
    }
    return COFFER_OK;
}

static coffer_status copy_samples(coffer_mldf_writer *writer, const coffer_mldf *set, const uint64_t *samples,
                                  uint64_t count, const size_t *fields, uint64_t done, uint64_t total,
                                  const coffer_progress *progress, coffer_error *err)
{
    coffer__mldf_copier copier;
    coffer_status status = coffer__mldf_copier_init(&copier, writer, set, fields, err);
    if (status)
        return status;
    for (uint64_t i = 0; i < count && status == COFFER_OK; i++) {
        status = coffer__mldf_copy_sample(&copier, samples ? samples[i] : i, err);
        if (status == COFFER_OK && (i + 1) % STEP == 0)
            status = coffer__mldf_step(progress, done + i + 1, total, err);
    }
    coffer__mldf_copier_free(&copier);
    return status;
}

coffer_status coffer_mldf_extract(const char *out_path, const coffer_mldf *set, const uint64_t *samples,
                                  uint64_t count, const size_t *fields, size_t field_count,
                                  const coffer_mldf_writer_opts *opts, const coffer_progress *progress,
                                  coffer_error *err)
{
    uint64_t wanted = samples ? count : set->header.samples;
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    if ((status = check_choice(set, samples, count, fields, field_count, err)) ||
        (status = coffer__mldf_start_copy(&writer, out_path, set, fields,
                                          fields ? field_count : set->schema.count, opts, err)))
        return status;
    status = copy_samples(writer, set, samples, wanted, fields, 0, wanted, progress, err);
    return finish(writer, status, err);
}

/* ---- Several sets ---- */

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
    *same = status == COFFER_OK && memcmp(bytes, column->dictionary, size) == 0;
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
                                 const coffer_mldf_writer_opts *opts, const coffer_progress *progress,
                                 coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    uint64_t total = 0, done = 0;
    coffer_status status;
    if (count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no set to begin with");
    if ((status =
             coffer__mldf_start_copy(&writer, out_path, sets[0], NULL, sets[0]->schema.count, opts, err)))
        return status;
    for (size_t i = 0; i < count && status == COFFER_OK; i++) {
        status = coffer__mldf_compare_fields(writer, sets[0], sets[i], err);
        total += sets[i]->header.samples;
    }
    for (size_t i = 0; i < count && status == COFFER_OK; i++) {
        status =
            copy_samples(writer, sets[i], NULL, sets[i]->header.samples, NULL, done, total, progress, err);
        done += sets[i]->header.samples;
    }
    return finish(writer, status, err);
}

/* ---- Without dead bytes ---- */

coffer_mldf_writer_opts coffer__mldf_settings_of(const coffer_mldf *set)
{
    coffer_mldf_writer_opts options = COFFER_MLDF_WRITER_OPTS_INIT;
    uint32_t page = set->header.page_size;
    uint64_t data = set->header.data;
    /* Pages that we would not write, or that the data does not keep to, are not taken over: a number alone
     * must not make a small file large. */
    if (page >= COFFER__MLDF_PAGE_SIZE_MIN && (page & (page - 1)) == 0 && data > 0 && data % page == 0 &&
        data <= set->file_size)
        options.page_size = page;
    options.descriptor_stride = set->schema.stride;
    options.no_checksums = !(set->header.flags & COFFER_MLDF_CHECKSUMMED);
    return options;
}

coffer_status coffer__mldf_rewrite(const char *out_path, const coffer_mldf *set, bool exclusive,
                                   const coffer_limits *limits, const coffer_progress *progress,
                                   coffer_error *err)
{
    coffer_mldf_writer_opts options = coffer__mldf_settings_of(set);
    options.exclusive = exclusive;
    options.limits = limits;
    return coffer_mldf_extract(out_path, set, NULL, 0, NULL, 0, &options, progress, err);
}
