/* WebDataset shards: members of a tar file whose names are the same up to the first dot are one sample, the
 * rest of the name is the field. */
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_columns.h"
#include "convert/datasets/mldf_export.h"
#include "io/source_private.h"
#include "outside/archives/tar.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where the stem goes when the archive does not say. */
static const char key_name[] = "__key__";

typedef struct tar_input {
    coffer__dataset_input base;
    coffer_source *const *shards;
    size_t shard_count, shard;
    coffer_limits limits;
    coffer__tar_reader *reader;       /* of the current shard; NULL before it is opened */
    const coffer__tar_member *member; /* the next one, whose contents were not taken; NULL: none read */
    coffer__columns columns;
    bool has_schema; /* the archive says what its members are */
    size_t key;      /* field that the stem goes into; SIZE_MAX = none */
    coffer__buffer stem;
    uint64_t sample; /* the current one, counted from 1 */
    bool surveying;  /* members without a value are noted */
} tar_input;

/* ---- Members ---- */

typedef struct member_name {
    size_t stem_len;
    char extension[256]; /* in lower case */
    size_t extension_len;
} member_name;

/* Members that carry no value: without an extension, or in a folder for metadata ("__name__/…"). */
static bool split_name(member_name *out, const char *name, size_t len)
{
    size_t base = len, dot;
    if (len > 4 && name[0] == '_' && name[1] == '_') {
        const char *slash = memchr(name, '/', len);
        if (slash && slash - name > 4 && slash[-1] == '_' && slash[-2] == '_')
            return false;
    }
    while (base && name[base - 1] != '/')
        base--;
    const char *found = memchr(name + base, '.', len - base);
    dot = found ? (size_t)(found - name) : len;
    if (!found || dot == base || dot + 1 == len || len - dot - 1 >= sizeof out->extension)
        return false;
    out->stem_len = dot;
    out->extension_len = len - dot - 1;
    for (size_t i = 0; i < out->extension_len; i++) {
        char c = name[dot + 1 + i];
        out->extension[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out->extension[out->extension_len] = 0;
    return true;
}

static coffer_status leave_out(tar_input *input, const char *why, bool expected, coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&name, "%s: %s", coffer_source_name(input->shards[input->shard]),
                          input->member->name);
    coffer_status status = name.failed ? coffer__fail_no_memory(err, input->member->name_len)
                                       : coffer__dataset_leave_out(&input->base, coffer__buffer_text(&name),
                                                                   COFFER_E_UNSUPPORTED, why, expected, err);
    coffer__buffer_free(&name);
    return status;
}

/* The next member of the shard that carries a value; NULL after the last one of the shard. */
static coffer_status next_member(member_name *name, tar_input *input, coffer_error *err)
{
    coffer_status status;
    while (!(status = coffer__tar_next(&input->member, input->reader, err)) && input->member) {
        if (strcmp(input->member->name, COFFER__TAR_SCHEMA) == 0)
            continue; /* describes the others */
        input->base.found += input->surveying;
        if (split_name(name, input->member->name, input->member->name_len))
            break;
        bool metadata = strncmp(input->member->name, "__", 2) == 0;
        if (input->surveying)
            status = leave_out(input, metadata ? "metadata of the archive" : "a name without an extension",
                               metadata, err);
        if (status)
            break;
    }
    return status;
}

static coffer_status open_shard(tar_input *input, size_t shard, coffer_error *err)
{
    coffer__tar_close(input->reader);
    input->reader = NULL;
    input->member = NULL;
    input->shard = shard;
    return shard < input->shard_count
               ? coffer__tar_open(&input->reader, input->shards[shard], &input->limits, err)
               : COFFER_OK;
}

static bool is_of_sample(const tar_input *input, const member_name *name)
{
    return input->stem.len == name->stem_len &&
           memcmp(input->stem.data, input->member->name, name->stem_len) == 0;
}

static coffer_status begin_sample(tar_input *input, const member_name *name, coffer_error *err)
{
    input->sample++;
    input->stem.len = 0;
    return coffer__buffer_append(&input->stem, input->member->name, name->stem_len)
               ? COFFER_OK
               : coffer__fail_no_memory(err, name->stem_len);
}

static coffer_status fail_twice(const tar_input *input, coffer_error *err)
{
    return coffer__fail_other(err,
                              coffer__fail(err, COFFER_E_DUPLICATE, input->member->offset,
                                           "member \"%s\" occurs twice", input->member->name),
                              coffer__source_other_name(input->shards[input->shard]));
}

/* ---- Surveying the input ---- */

static bool is_canonical_number(const uint8_t *bytes, size_t size)
{
    coffer__number number;
    int64_t value;
    char text[32];
    while (size && bytes[size - 1] == '\n')
        size--;
    if (!coffer__number_parse(&number, (const char *)bytes, size) || !coffer__number_as_i64(&value, &number))
        return false;
    int len = snprintf(text, sizeof text, "%" PRId64, value);
    return (size_t)len == size && memcmp(text, bytes, size) == 0;
}

static uint32_t judge_json(const uint8_t *bytes, size_t size, const coffer_limits *limits)
{
    coffer__json *json = NULL;
    if (coffer__json_parse(&json, (const char *)bytes, size, 0, limits, NULL))
        return COFFER__CAN_BYTES;
    coffer__json_free(json);
    return COFFER__CAN_JSON | COFFER__CAN_BYTES;
}

static uint32_t judge_contents(coffer__column *column, coffer__tar_class kind, const uint8_t *bytes,
                               size_t size, const coffer_limits *limits)
{
    uint32_t text =
        coffer__utf8_valid(bytes, size) ? COFFER__CAN_TEXT | COFFER__CAN_BYTES : COFFER__CAN_BYTES;
    coffer__number number;
    switch (kind) {
    case COFFER__TAR_INT:
        return text | (is_canonical_number(bytes, size) ? COFFER__CAN_INT : 0);
    case COFFER__TAR_FLOAT:
        return text | (coffer__number_parse(&number, (const char *)bytes, size) ? COFFER__CAN_FLOAT : 0);
    case COFFER__TAR_JSON:
        return judge_json(bytes, size, limits);
    case COFFER__TAR_ARRAY:
        return coffer__column_sniff(column, bytes, size) & (COFFER__CAN_ARRAY | COFFER__CAN_BYTES);
    default:
        return text;
    }
}

/* The extension of pictures and sounds is trusted: only small members, and arrays, which must be alike, are
 * read. */
static coffer_status survey_member(tar_input *input, coffer__column *column, const member_name *name,
                                   coffer__buffer *own, coffer_error *err)
{
    const coffer__tar_extension *known = coffer__tar_extension_of(name->extension);
    coffer__tar_class kind = known ? known->kind : COFFER__TAR_BYTES;
    const uint8_t *bytes;
    uint64_t size = input->member->size;
    if (kind == COFFER__TAR_IMAGE || kind == COFFER__TAR_AUDIO || kind == COFFER__TAR_VIDEO) {
        column->firsts += known->is_first;
        coffer__column_see(column, input->sample,
                           kind == COFFER__TAR_IMAGE   ? COFFER__CAN_IMAGE
                           : kind == COFFER__TAR_AUDIO ? COFFER__CAN_AUDIO
                                                       : COFFER__CAN_VIDEO | COFFER__CAN_BYTES);
        return COFFER_OK;
    }
    if (kind == COFFER__TAR_BYTES) {
        coffer__column_see(column, input->sample, COFFER__CAN_BYTES);
        return COFFER_OK;
    }
    coffer_status status = coffer__tar_contents(&bytes, own, input->reader, err);
    if (!status)
        coffer__column_see(column, input->sample,
                           judge_contents(column, kind, bytes, (size_t)size, &input->limits));
    return status;
}

static coffer_status survey_shard(tar_input *input, coffer__buffer *own, coffer_error *err)
{
    member_name name;
    bool fresh = true;
    coffer_status status = next_member(&name, input, err);
    while (!status && input->member) {
        coffer__column *column = NULL;
        if (fresh || !is_of_sample(input, &name))
            status = begin_sample(input, &name, err);
        fresh = false;
        if (!status && input->has_schema)
            column = coffer__columns_find(&input->columns, name.extension, name.extension_len);
        else if (!status)
            status = coffer__columns_get(&column, &input->columns, name.extension, name.extension_len,
                                         &input->limits, err);
        if (!status && column && column->last_sample == input->sample)
            status = fail_twice(input, err);
        if (!status && !column)
            status = leave_out(input, "not in the schema of the archive", false, err);
        if (!status && column)
            status = input->has_schema ? (coffer__column_see(column, input->sample, UINT32_MAX), COFFER_OK)
                                       : survey_member(input, column, &name, own, err);
        if (!status)
            status = next_member(&name, input, err);
    }
    return status;
}

/* ---- The schema that our own archives bring along ---- */

static coffer_status take_column(tar_input *input, const char *extension, const coffer_mldf_field *field,
                                 coffer_error *err)
{
    coffer__column *column;
    coffer_status status =
        coffer__columns_get(&column, &input->columns, extension, strlen(extension), &input->limits, err);
    if (status)
        return status;
    if (column->given_type)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                               "the extension \"%s\" occurs twice in the schema", extension),
                                  coffer__source_other_name(input->shards[0]));
    column->given_type = field->type;
    column->field_name = coffer__arena_text(&input->columns.arena, field->name, strlen(field->name));
    column->arrays = (coffer__array_facts){ .seen = 1, .dtype = field->dtype, .ndim = field->ndim };
    memcpy(column->arrays.dims, field->dims, sizeof field->dims);
    return column->field_name ? COFFER_OK : coffer__fail_no_memory(err, strlen(field->name));
}

static coffer_status take_columns(tar_input *input, const coffer__json_value *root,
                                  const coffer_mldf_field *fields, size_t count, coffer_error *err)
{
    const coffer__json_value *list = coffer__json_find(root, "extensions");
    const coffer__json_value *value = coffer__json_first(list);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++, value = coffer__json_next(list, value)) {
        if (!value || value->kind != COFFER__JSON_STRING || strlen(value->as.string) != value->string_len)
            return coffer__fail_other(err,
                                      coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                                   "no extension for field \"%s\" in the schema",
                                                   fields[i].name),
                                      coffer__source_other_name(input->shards[0]));
        /* The stem is a field of its own when its extension is empty. */
        if (value->string_len == 0 && fields[i].type == COFFER_MLDF_TEXT)
            input->key = i;
        else
            status = take_column(input, value->as.string, &fields[i], err);
    }
    return status;
}

/* The fields as the schema has them; columns point at them. */
static coffer_status settle_schema(tar_input *input, const coffer__json_value *root,
                                   const coffer_mldf_field *fields, size_t count, coffer_error *err)
{
    coffer_status status = take_columns(input, root, fields, count, err);
    coffer_mldf_field *field;
    for (size_t i = 0, c = 0; !status && i < count; i++) {
        status = coffer__dataset_add_field(&field, &input->base.schema, fields[i].name,
                                           strlen(fields[i].name), fields[i].type, err);
        if (status)
            break;
        const char *name = field->name;
        *field = fields[i];
        field->name = name;
        if (i != input->key)
            input->columns.items[c++].field = i;
    }
    return status;
}

static coffer_status read_schema(tar_input *input, coffer_error *err)
{
    coffer__buffer own = COFFER__BUFFER_INIT;
    coffer__json *json = NULL;
    coffer_mldf_schema_opts opts = COFFER_MLDF_SCHEMA_OPTS_INIT;
    coffer_mldf_schema *schema = NULL;
    const uint8_t *bytes;
    uint64_t size = input->member->size;
    opts.limits = &input->limits;
    coffer_status status = coffer__tar_contents(&bytes, &own, input->reader, err);
    if (!status)
        status = coffer__json_parse(&json, (const char *)bytes, (size_t)size, 0, &input->limits, err);
    if (!status)
        status = coffer_mldf_schema_parse(&schema, (const char *)bytes, (size_t)size, &opts, err);
    if (!status)
        status = settle_schema(input, coffer__json_root(json), coffer_mldf_schema_fields(schema),
                               coffer_mldf_schema_count(schema), err);
    input->has_schema = true;
    coffer_mldf_schema_free(schema);
    coffer__json_free(json);
    coffer__buffer_free(&own);
    return status;
}

static coffer_status look_for_schema(tar_input *input, coffer_error *err)
{
    coffer_status status = open_shard(input, 0, err);
    if (!status)
        status = coffer__tar_next(&input->member, input->reader, err);
    if (status || !input->member || strcmp(input->member->name, COFFER__TAR_SCHEMA) != 0)
        return status;
    return read_schema(input, err);
}

static coffer_status survey(tar_input *input, coffer_error *err)
{
    coffer__buffer own = COFFER__BUFFER_INIT;
    coffer_mldf_field *field;
    coffer_status status = look_for_schema(input, err);
    if (!status && !input->has_schema) {
        input->key = 0;
        status = coffer__dataset_add_field(&field, &input->base.schema, key_name, sizeof key_name - 1,
                                           COFFER_MLDF_TEXT, err);
    }
    input->surveying = true;
    for (size_t i = 0; !status && i < input->shard_count; i++) {
        status = open_shard(input, i, err);
        if (!status)
            status = survey_shard(input, &own, err);
    }
    input->surveying = false;
    coffer__buffer_free(&own);
    input->base.count = input->sample;
    if (!status && !input->has_schema)
        status = coffer__columns_settle(&input->base.schema, &input->columns, input->sample, err);
    return status;
}

/* ---- Samples ---- */

static coffer_status tar_rewind(coffer__dataset_input *base, coffer_error *err)
{
    tar_input *input = (tar_input *)base;
    input->sample = 0;
    return open_shard(input, 0, err);
}

static coffer_status take_member(tar_input *input, coffer__dataset_sample *sample, const member_name *name,
                                 coffer_error *err)
{
    const coffer__column *column =
        coffer__columns_find(&input->columns, name->extension, name->extension_len);
    if (!column)
        return COFFER_OK;
    sample->units++;
    coffer__dataset_value *value = &sample->values[column->field];
    value->form = COFFER__DATASET_FILE;
    value->size = (size_t)input->member->size;
    return coffer__tar_contents(&value->bytes, &value->own, input->reader, err);
}

/* The first member of the next sample. */
static coffer_status find_sample(member_name *name, tar_input *input, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (input->member && split_name(name, input->member->name, input->member->name_len))
        return COFFER_OK;
    while (!status && input->reader) {
        status = next_member(name, input, err);
        if (status || input->member)
            return status;
        status = open_shard(input, input->shard + 1, err);
    }
    return status;
}

static coffer_status tar_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                              coffer_error *err)
{
    tar_input *input = (tar_input *)base;
    member_name name;
    coffer_status status = find_sample(&name, input, err);
    *more = !status && input->member;
    if (!*more)
        return status;
    status = begin_sample(input, &name, err);
    sample->units = 0;
    coffer__buffer_printf(&sample->name, "%s: %s", coffer_source_name(input->shards[input->shard]),
                          coffer__buffer_text(&input->stem));
    if (!status && input->key != SIZE_MAX) {
        sample->values[input->key].form = COFFER__DATASET_FILE;
        status =
            coffer__dataset_value_copy(&sample->values[input->key], input->stem.data, input->stem.len, err);
    }
    while (!status && input->member && is_of_sample(input, &name)) {
        status = take_member(input, sample, &name, err);
        if (!status)
            status = next_member(&name, input, err);
    }
    return status;
}

static void tar_close(coffer__dataset_input *base)
{
    tar_input *input = (tar_input *)base;
    coffer__tar_close(input->reader);
    coffer__columns_free(&input->columns);
    coffer__buffer_free(&input->stem);
    coffer__dataset_input_free(base);
}

coffer_status coffer__dataset_open_tar(coffer__dataset_input **out, coffer_source *const *shards,
                                       size_t count, const coffer_limits *limits, coffer_error *err)
{
    tar_input *input = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->base.next = tar_next;
    input->base.rewind = tar_rewind;
    input->base.close = tar_close;
    input->base.unit = "members";
    input->shards = shards;
    input->shard_count = count;
    input->limits = coffer__limits(limits);
    input->key = SIZE_MAX;
    coffer__buffer_init(&input->stem, SIZE_MAX);
    status = survey(input, err);
    if (!status && input->base.count == 0)
        status =
            coffer__fail_other(err,
                               coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "no samples in it"),
                               coffer__source_other_name(shards[0]));
    if (!status)
        status = tar_rewind(&input->base, err);
    if (status) {
        tar_close(&input->base);
        return status;
    }
    *out = &input->base;
    return COFFER_OK;
}
