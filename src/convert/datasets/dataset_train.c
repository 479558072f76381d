/* Dictionaries for the text of a set, trained on samples from all over it. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"

#include <string.h>
#include <zdict.h>

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

static void clear(coffer__dataset_sample *sample, size_t fields)
{
    for (size_t f = 0; f < fields; f++)
        sample->values[f].form = COFFER__DATASET_ABSENT;
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
        clear(&sample, input->schema.count);
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
