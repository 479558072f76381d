#include "support/dataset_write.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

const uint8_t dataset_key[COFFER_MLDF_KEY_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

coffer_mldf_field dataset_field_of(const char *name, uint16_t type, uint16_t flags)
{
    coffer_mldf_field field = COFFER_MLDF_FIELD_INIT;
    field.name = name;
    field.type = type;
    field.flags = flags;
    return field;
}

void dataset_usual_fields(coffer_mldf_field fields[SMALL_FIELDS], uint16_t flags)
{
    fields[SMALL_IMAGE] = dataset_field_of("image", COFFER_MLDF_IMAGE_RAW, 0);
    fields[SMALL_LABEL] = dataset_field_of("label", COFFER_MLDF_INT, 0);
    fields[SMALL_SCORE] = dataset_field_of("score", COFFER_MLDF_FLOAT, 0);
    fields[SMALL_CAPTION] = dataset_field_of("caption", COFFER_MLDF_TEXT, flags);
    fields[SMALL_BLOB] = dataset_field_of("blob", COFFER_MLDF_BYTES, flags);
}

coffer_mldf_writer_opts dataset_small_pages(void)
{
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    opts.page_size = 4096;
    opts.key = dataset_key;
    opts.threads = 1;
    opts.overwrite = true;
    return opts;
}

coffer_mldf_update_opts dataset_update_opts(void)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    opts.key = dataset_key;
    opts.threads = 1;
    return opts;
}

coffer_status dataset_extract(const char *path, const coffer_mldf *set, const uint64_t *samples,
                              uint64_t sample_count, const size_t *fields, size_t field_count,
                              const coffer_mldf_writer_opts *write, coffer_error *err)
{
    coffer_mldf_extract_opts opts = COFFER_MLDF_EXTRACT_OPTS_INIT;
    opts.samples = samples;
    opts.sample_count = sample_count;
    opts.fields = fields;
    opts.field_count = field_count;
    opts.write = write;
    return coffer_mldf_extract(path, set, &opts, err);
}

static coffer_status set_value(coffer_mldf_writer *writer, size_t field, const uint8_t *value, size_t len,
                               coffer_error *err)
{
    coffer_mldf_entry image = {
        .struct_size = sizeof(coffer_mldf_entry), .height = 2, .width = 3, .channels = 3
    };
    int64_t number;
    double real;
    if (field == SMALL_LABEL) {
        number = (int64_t)coffer__load_u64(value);
        return coffer_mldf_writer_set_int(writer, field, number, err);
    }
    if (field == SMALL_SCORE) {
        memcpy(&real, value, sizeof real);
        coffer__swap_numbers(&real, sizeof real, 1);
        return coffer_mldf_writer_set_float(writer, field, real, err);
    }
    return coffer_mldf_writer_set_bytes(writer, field, value, len, field == SMALL_IMAGE ? &image : NULL, err);
}

coffer_status dataset_set_sample(coffer_mldf_writer *writer, uint64_t as, coffer_error *err)
{
    static const size_t order[] = { SMALL_CAPTION, SMALL_SCORE, SMALL_IMAGE, SMALL_BLOB, SMALL_LABEL };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < SMALL_FIELDS && status == COFFER_OK; i++) {
        uint8_t value[256];
        size_t len = dataset_small_value(value, as, order[i]);
        if (len != SIZE_MAX)
            status = set_value(writer, order[i], value, len, err);
    }
    return status;
}

coffer_status dataset_write_samples(coffer_mldf_writer *writer, uint64_t first, uint64_t count,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = first; i < first + count && status == COFFER_OK; i++) {
        status = dataset_set_sample(writer, i, err);
        if (status == COFFER_OK)
            status = coffer_mldf_writer_end_sample(writer, err);
    }
    return status;
}

static coffer_status finish(coffer_mldf_writer *writer, uint64_t first, uint64_t count, coffer_error *err)
{
    coffer_status status = dataset_write_samples(writer, first, count, err);
    if (status == COFFER_OK)
        return coffer_mldf_writer_commit(writer, err);
    coffer_mldf_writer_discard(writer);
    return status;
}

coffer_status dataset_create(const char *path, uint64_t samples, uint16_t flags,
                             const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer_opts usual = dataset_small_pages();
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    dataset_usual_fields(fields, flags);
    status = coffer_mldf_writer_create(&writer, path, fields, SMALL_FIELDS, opts ? opts : &usual, err);
    return status ? status : finish(writer, 0, samples, err);
}

coffer_status dataset_append(const char *path, uint64_t first, uint64_t count, coffer_error *err)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    coffer_status status = coffer_mldf_writer_append_to(&writer, path, &opts, err);
    return status ? status : finish(writer, first, count, err);
}

static void expect_one(coffer_bytes *bytes, const coffer_mldf *set, uint64_t sample, size_t field,
                       uint64_t as)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t expected[256];
    size_t len = dataset_small_value(expected, as, field);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    if (coffer_mldf_read(bytes, &entry, set, sample, field, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(entry.present, len != SIZE_MAX);
    if (len == SIZE_MAX)
        return;
    assert_int_equal(bytes->size, len);
    assert_memory_equal(bytes->data, expected, len);
}

void dataset_expect(const char *path, const uint64_t *which, uint64_t count)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    opts.verify = true;
    opts.key = dataset_key;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_mldf_open(&set, src, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(coffer_mldf_sample_count(set), count);
    for (uint64_t i = 0; i < count; i++) {
        for (size_t f = 0; f < SMALL_FIELDS; f++)
            expect_one(&bytes, set, i, f, which ? which[i] : i);
    }
    coffer_free(bytes.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

void dataset_expect_clean(const char *path)
{
    size_t len = 0;
    uint8_t *bytes = temp_read(path, &len);
    assert_non_null(bytes);
    dataset_assert_clean(bytes, len);
    free(bytes);
}
