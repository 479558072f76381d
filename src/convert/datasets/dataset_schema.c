/* Shared by all inputs of samples: schema, values, the files of a sample, dictionaries. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_input.h"
#include "io/os.h"

#include <errno.h>
#include <string.h>
#include <zdict.h>

/* Shared by all inputs of samples: schema, values, digests. */

#define NAME_MAX_LEN 63
#define FIELDS_MAX 65535

bool coffer__dataset_is_array(uint16_t type)
{
    return type == COFFER_MLDF_NDARRAY || type == COFFER_MLDF_SPECTROGRAM ||
           type == COFFER_MLDF_CODEC_TOKENS || type == COFFER_MLDF_VIDEO_FRAMES ||
           type == COFFER_MLDF_OPTICAL_FLOW || type == COFFER_MLDF_TEXT_PACKED;
}

coffer_status coffer__dataset_add_field(coffer_mldf_field **out, coffer__dataset_schema *schema,
                                        const char *name, size_t name_len, uint16_t type, coffer_error *err)
{
    if (name_len == 0 || name_len > NAME_MAX_LEN)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a field \"%.*s\" of %zu bytes: a name has 1 to %d",
                            (int)(name_len < 80 ? name_len : 80), name, name_len, NAME_MAX_LEN);
    if (!coffer__utf8_valid(name, name_len) || memchr(name, 0, name_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "the field \"%.*s\" is not UTF-8",
                            (int)name_len, name);
    if (schema->count == FIELDS_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d fields", FIELDS_MAX);
    coffer_status status = coffer__array_reserve_one(&schema->fields, &schema->capacity, schema->count,
                                                     sizeof *schema->fields, err);
    if (status)
        return status;
    char *copy = coffer__arena_text(&schema->names, name, name_len);
    if (!copy)
        return coffer__fail_no_memory(err, name_len);
    coffer_mldf_field *field = &schema->fields[schema->count++];
    *field = (coffer_mldf_field)COFFER_MLDF_FIELD_INIT;
    field->name = copy;
    field->type = type;
    *out = field;
    return COFFER_OK;
}

static void dataset_schema_free(coffer__dataset_schema *schema)
{
    coffer__arena_free(&schema->names);
    coffer__free(schema->fields);
}

coffer_status coffer__dataset_input_new(void *out, size_t size, coffer_error *err)
{
    coffer__dataset_input *input = coffer__calloc(1, size);
    coffer__digest *seen = coffer__digest_new();
    if (!input || !seen) {
        coffer__free(input);
        coffer__digest_free(seen);
        return coffer__fail_no_memory(err, size);
    }
    input->seen = seen;
    memcpy(out, &input, sizeof input);
    return COFFER_OK;
}

coffer_status coffer__dataset_leave_out(coffer__dataset_input *input, const char *name, coffer_status code,
                                        const char *text, bool expected, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&input->left_out, &input->left_out_capacity,
                                                     input->left_out_count, sizeof *input->left_out, err);
    if (status)
        return status;
    char *copy = coffer__arena_text(&input->left_out_names, name, strlen(name));
    if (!copy)
        return coffer__fail_no_memory(err, strlen(name));
    input->left_out[input->left_out_count++] = (coffer__left_out){ copy, text, code, expected };
    return COFFER_OK;
}

void coffer__dataset_input_free(coffer__dataset_input *input)
{
    coffer__free(input->left_out);
    coffer__arena_free(&input->left_out_names);
    dataset_schema_free(&input->schema);
    coffer__digest_free(input->seen);
    coffer__free(input);
}

coffer_status coffer__dataset_value_copy(coffer__dataset_value *value, const void *bytes, size_t size,
                                         coffer_error *err)
{
    value->own.len = 0;
    if (!coffer__buffer_append(&value->own, bytes, size))
        return coffer__fail_no_memory(err, size);
    value->bytes = value->own.data;
    value->size = size;
    return COFFER_OK;
}

/* The files of a sample: an interrupted pack is not resumed over files that have changed since. */

coffer_status coffer__dataset_read_file(coffer__buffer *out, coffer__dataset_sample *sample, int fd,
                                        uint64_t limit, const char *path, coffer_error *err)
{
    coffer_mldf_origin *origin = &sample->origin;
    struct stat st;
    if (coffer__os_fstat(fd, &st) != 0)
        return coffer__fail_errno(err, "cannot examine", errno);
    int64_t time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (time > origin->time)
        origin->time = time;
    origin->size += (uint64_t)st.st_size;
    if (sample->only_examine)
        return COFFER_OK;
    coffer_status status = coffer__folder_read_file(out, fd, limit, path, err);
    /* The hash of several files is that of the chain. */
    if (!status)
        coffer__hash_seeded(origin->hash, out->data ? out->data : (const uint8_t *)"", out->len,
                            origin->hash[0]);
    return status;
}

/* ---- Resuming ---- */

/* The sample that got this mark; *found is false when the input ends before it. */
static coffer_status advance(bool *found, coffer__dataset_resume *resume, uint64_t mark, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool more = true;
    while (!status && more && resume->index < mark) {
        coffer__dataset_clear_sample(resume->sample, resume->input->schema.count);
        resume->sample->index = resume->index;
        status = resume->input->next(&more, resume->sample, resume->input, err);
        resume->index++;
    }
    *found = more;
    return status;
}

static bool load(coffer__dataset_resume *resume, bool only_examine)
{
    coffer__dataset_sample *sample = resume->sample;
    sample->only_examine = only_examine;
    sample->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
    coffer_status status = resume->input->load(sample, resume->input, NULL);
    sample->only_examine = false;
    return status == COFFER_OK;
}

/* Loading replaces the paths of a manifest by what they name: they are put back to load again. */
static bool load_again(coffer__dataset_resume *resume, const coffer__dataset_value *before)
{
    for (size_t f = 0; f < resume->input->schema.count; f++) {
        coffer__dataset_value *value = &resume->sample->values[f];
        value->is_path = before[f].is_path;
        if (!value->is_path)
            continue;
        value->bytes = before[f].bytes;
        value->size = before[f].size;
        value->own.len = 0;
    }
    return load(resume, false);
}

coffer_status coffer__dataset_unchanged(bool *same, void *context, uint64_t mark,
                                        const coffer_mldf_origin *origin, coffer_error *err)
{
    coffer__dataset_resume *resume = context;
    const coffer_mldf_origin *now = &resume->sample->origin;
    coffer__dataset_value before[COFFER__DATASET_EXAMINED_MAX] = { 0 };
    size_t fields = resume->input->schema.count;
    coffer_status status = advance(same, resume, mark, err);
    if (status || !*same || !resume->input->load || (origin->size == 0 && origin->time == 0))
        return status;
    bool can_repeat = fields <= COFFER__DATASET_EXAMINED_MAX;
    if (can_repeat)
        memcpy(before, resume->sample->values, fields * sizeof *before);
    *same = load(resume, can_repeat);
    if (*same && can_repeat && now->size == origin->size && now->time == origin->time)
        return COFFER_OK;
    if (*same && can_repeat)
        *same = load_again(resume, before);
    *same = *same && now->size == origin->size && memcmp(now->hash, origin->hash, sizeof now->hash) == 0;
    resume->changed = resume->changed || !*same;
    return COFFER_OK;
}

/* Dictionaries for the text of a set, trained on samples from all over it. */

/* As much as the zstd command reads: a hundred times the size of the dictionary. */
#define TRAINING_FACTOR 100
#define TRAINING_SAMPLES 4096
#define VALUE_MAX ((size_t)128 << 10)
/* zstd refuses to train on fewer. */
#define SAMPLES_MIN 8

typedef struct trainer {
    coffer__buffer texts;
    size_t sizes[TRAINING_SAMPLES];
    unsigned count;
} trainer;

static bool can_use_one(const coffer_mldf_field *field)
{
    return (field->type == COFFER_MLDF_TEXT || field->type == COFFER_MLDF_JSON) &&
           field->flags & COFFER_MLDF_FIELD_ZSTD;
}

static coffer_status collect(trainer *trainers, coffer__dataset_sample *sample, coffer__dataset_input *input,
                             size_t budget, coffer_error *err)
{
    coffer_status status = input->load ? input->load(sample, input, err) : COFFER_OK;
    for (size_t f = 0; !status && f < input->schema.count; f++) {
        const coffer__dataset_value *value = &sample->values[f];
        trainer *one = &trainers[f];
        size_t size = value->size < VALUE_MAX ? value->size : VALUE_MAX;
        if (!can_use_one(&input->schema.fields[f]) || value->form < COFFER__DATASET_READY || size == 0 ||
            one->count == TRAINING_SAMPLES || one->texts.len + size > budget)
            continue;
        if (!coffer__buffer_append(&one->texts, value->bytes, size))
            return coffer__fail_no_memory(err, size);
        one->sizes[one->count++] = size;
    }
    return status;
}

static coffer_status collect_all(trainer *trainers, coffer__dataset_input *input, size_t budget,
                                 coffer_error *err)
{
    uint64_t step = input->count / TRAINING_SAMPLES + 1;
    coffer__dataset_sample sample = { .name = COFFER__BUFFER_INIT };
    coffer_status status = COFFER_OK;
    bool more = true;
    sample.values = coffer__calloc(input->schema.count, sizeof *sample.values);
    if (!sample.values)
        return coffer__fail_no_memory(err, input->schema.count * sizeof *sample.values);
    for (size_t f = 0; f < input->schema.count; f++)
        coffer__buffer_init(&sample.values[f].own, SIZE_MAX);
    for (uint64_t i = 0; !status && more; i++) {
        coffer__dataset_clear_sample(&sample, input->schema.count);
        status = input->next(&more, &sample, input, err);
        if (!status && more && i % step == 0 && collect(trainers, &sample, input, budget, NULL))
            continue; /* what cannot be read is reported when it is packed */
    }
    for (size_t f = 0; f < input->schema.count; f++)
        coffer__buffer_free(&sample.values[f].own);
    coffer__buffer_free(&sample.name);
    coffer__free(sample.values);
    return status;
}

static coffer_status train_one(coffer__dataset_schema *schema, coffer_mldf_field *field, const trainer *from,
                               size_t size, coffer_error *err)
{
    if (from->count < SAMPLES_MIN)
        return COFFER_OK;
    void *dictionary = coffer__arena_take(&schema->names, size);
    if (!dictionary)
        return coffer__fail_no_memory(err, size);
    size_t got = ZDICT_trainFromBuffer(dictionary, size, from->texts.data, from->sizes, from->count);
    /* Texts that have nothing in common cannot train a dictionary. */
    if (ZDICT_isError(got))
        return COFFER_OK;
    field->dictionary = dictionary;
    field->dictionary_size = (uint32_t)got;
    return COFFER_OK;
}

coffer_status coffer__dataset_train(coffer__dataset_input *input, const coffer_mldf_pack_opts *opts,
                                    coffer_error *err)
{
    size_t fields = input->schema.count;
    size_t budget = (size_t)opts->dictionary * TRAINING_FACTOR;
    trainer *trainers = coffer__calloc(fields, sizeof *trainers);
    if (!trainers)
        return coffer__fail_no_memory(err, fields * sizeof *trainers);
    for (size_t f = 0; f < fields; f++)
        coffer__buffer_init(&trainers[f].texts, SIZE_MAX);
    coffer_status status = collect_all(trainers, input, budget, err);
    for (size_t f = 0; !status && f < fields; f++)
        status = train_one(&input->schema, &input->schema.fields[f], &trainers[f], opts->dictionary, err);
    if (!status)
        status = input->rewind(input, err);
    for (size_t f = 0; f < fields; f++)
        coffer__buffer_free(&trainers[f].texts);
    coffer__free(trainers);
    return status;
}
