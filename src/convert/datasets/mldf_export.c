#include "convert/datasets/mldf_export.h"
#include "coffer/mldf_analyze.h"
#include "io/source_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"
#include "io/key_file.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

const coffer_convert_option coffer__mldf_export_options[] = {
    COFFER__MLDF_EXPORT_OPTIONS,
    { NULL, NULL, NULL },
};

coffer_status coffer__mldf_job_key(const uint8_t **key, uint8_t room[COFFER_MLDF_KEY_SIZE],
                                   const coffer__convert_job *job, coffer_error *err)
{
    const char *path = coffer__job_setting(job, "key-file");
    *key = NULL;
    if (!path)
        return COFFER_OK;
    coffer_status status = coffer__key_file_read(room, path, err);
    if (!status)
        *key = room;
    return status;
}

static coffer_status open_set(coffer__mldf_export *export, coffer_error *err)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    uint8_t room[COFFER_MLDF_KEY_SIZE];
    coffer_status status = coffer__mldf_job_key(&opts.key, room, export->job, err);
    if (!opts.key)
        opts.key = export->job->key;
    opts.verify = true;
    opts.limits = &export->job->limits;
    if (!status)
        status = coffer_mldf_open(&export->set, export->job->in, &opts, err);
    sodium_memzero(room, sizeof room);
    /* Other formats have no place for the marks. */
    if (!status && coffer_mldf_mark_count(export->set) > 0) {
        coffer_error marked = COFFER_ERROR_INIT;
        coffer__fail(&marked, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                     "a repair could not verify some samples; set their values again or delete them first");
        status = coffer__source_accept_damage(export->job->in, &marked, err);
    }
    return status;
}

/* True when a value of "field" is the name, or a comma-separated list that contains it. */
static bool is_listed(const char *list, const char *name)
{
    if (strcmp(list, name) == 0)
        return true;
    size_t len = strlen(name);
    for (const char *at = list; *at;) {
        size_t part = strcspn(at, ",");
        if (part == len && memcmp(at, name, len) == 0)
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

static coffer_status check_listed(const coffer__mldf_export *export, const char *list, coffer_error *err)
{
    if (coffer_mldf_find_field(export->set, list) != COFFER_INDEX_NONE)
        return COFFER_OK;
    for (const char *at = list; *at;) {
        size_t part = strcspn(at, ",");
        char *name = coffer__strndup(at, part);
        if (!name)
            return coffer__fail_no_memory(err, part);
        bool found = coffer_mldf_find_field(export->set, name) != SIZE_MAX;
        coffer__free(name);
        if (!found)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no field \"%.*s\"",
                                (int)(part < 80 ? part : 80), at);
        at += part + (at[part] == ',');
    }
    return COFFER_OK;
}

static bool is_field_setting(const coffer_setting *setting)
{
    return strcmp(setting->name, "field") == 0;
}

static bool is_chosen(const coffer__convert_job *job, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (!is_field_setting(&job->settings[i]))
            continue;
        any = true;
        if (is_listed(job->settings[i].value, name))
            return true;
    }
    return !any;
}

static coffer_status choose_fields(coffer__mldf_export *export, coffer_error *err)
{
    const coffer__convert_job *job = export->job;
    size_t count = coffer_mldf_field_count(export->set);
    for (size_t i = 0; i < job->setting_count; i++) {
        coffer_status status = COFFER_OK;
        if (is_field_setting(&job->settings[i]))
            status = check_listed(export, job->settings[i].value, err);
        if (status)
            return status;
    }
    export->fields = coffer__alloc_array(count ? count : 1, sizeof *export->fields);
    if (!export->fields)
        return coffer__fail_no_memory(err, count * sizeof *export->fields);
    for (size_t i = 0; i < count; i++) {
        if (is_chosen(job, coffer_mldf_field_at(export->set, i)->name))
            export->fields[export->field_count++] = i;
    }
    return COFFER_OK;
}

static coffer_status choose_samples(coffer__mldf_export *export, coffer_error *err)
{
    uint64_t count = coffer_mldf_sample_count(export->set);
    /* Nothing in the file bounds their number. */
    if (count > 0 && coffer_mldf_row_size(export->set) == 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " samples whose rows have no bytes", count);
    export->end = UINT64_MAX;
    coffer_status status = coffer__job_range(&export->begin, &export->end, export->job, "samples", err);
    if (status)
        return status;
    if (export->end == UINT64_MAX)
        export->end = count;
    if (export->begin > export->end || export->end > count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "samples %" PRIu64 "..%" PRIu64 ": the set has %" PRIu64, export->begin,
                            export->end, count);
    return COFFER_OK;
}

/* The samples of the range that meet all conditions. */
static coffer_status choose_matching(coffer__mldf_export *export, coffer_error *err)
{
    const coffer__convert_job *job = export->job;
    coffer_mldf_select_opts opts = COFFER_MLDF_SELECT_OPTS_INIT;
    uint64_t found = 0, kept = 0;
    size_t count = 0;
    if (!coffer__job_has(job, "where"))
        return COFFER_OK;
    const char **conditions = coffer__alloc_array(job->setting_count, sizeof *conditions);
    if (!conditions)
        return coffer__fail_no_memory(err, job->setting_count * sizeof *conditions);
    for (size_t i = 0; i < job->setting_count; i++) {
        if (strcmp(job->settings[i].name, "where") == 0)
            conditions[count++] = job->settings[i].value;
    }
    coffer_status status =
        coffer_mldf_select(&export->chosen, &found, export->set, conditions, count, &opts, err);
    coffer__free(conditions);
    if (status)
        return status;
    for (uint64_t i = 0; i < found; i++) {
        if (export->chosen[i] >= export->begin && export->chosen[i] < export->end)
            export->chosen[kept++] = export->chosen[i];
    }
    export->begin = 0;
    export->end = kept;
    return COFFER_OK;
}

uint64_t coffer__mldf_export_sample(const coffer__mldf_export *export, uint64_t position)
{
    return export->chosen ? export->chosen[position] : position;
}

coffer_status coffer__mldf_export_open(coffer__mldf_export *out, const coffer__convert_job *job,
                                       coffer_error *err)
{
    *out = (coffer__mldf_export){ .job = job, .entry = COFFER_MLDF_ENTRY_INIT };
    coffer_status status = open_set(out, err);
    if (!status)
        status = choose_fields(out, err);
    if (!status)
        status = choose_samples(out, err);
    return status ? status : choose_matching(out, err);
}

void coffer__mldf_export_close(coffer__mldf_export *export)
{
    coffer__sink_discard(export->sink);
    coffer_free(export->bytes.data);
    coffer__free(export->fields);
    coffer_free(export->chosen);
    coffer_mldf_close(export->set);
}

coffer_status coffer__mldf_export_create(coffer__mldf_export *export, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    return coffer__sink_create(&export->sink, export->job->out_path, &opts, err);
}

coffer_status coffer__mldf_export_commit(coffer__mldf_export *export, coffer_error *err)
{
    coffer_status status = coffer_source_intact(export->job->in, err);
    if (status)
        return status;
    coffer__sink *sink = export->sink;
    export->sink = NULL;
    return coffer__sink_commit(sink, err);
}

const coffer_mldf_field *coffer__mldf_export_field(const coffer__mldf_export *export, size_t index)
{
    return coffer_mldf_field_at(export->set, export->fields[index]);
}

static void set_dims(coffer__mldf_export *export, coffer_dtype dtype, uint32_t ndim)
{
    export->has_dims = true;
    export->dtype = dtype;
    export->ndim = ndim;
}

/* Values that are arrays although their type does not say so. */
static void see_array(coffer__mldf_export *export, const coffer_mldf_field *field)
{
    const coffer_mldf_entry *entry = &export->entry;
    size_t pixels = (size_t)entry->height * entry->width * entry->channels;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->mode == 0 && pixels == export->bytes.size) {
        set_dims(export, COFFER_DTYPE_U8, 3);
        export->dims[0] = entry->height;
        export->dims[1] = entry->width;
        export->dims[2] = entry->channels;
    } else if (field->kind == COFFER_MLDF_ENTRY_TEXT && (entry->encoding == 1 || entry->encoding == 2)) {
        size_t width = entry->encoding == 1 ? 4 : 2;
        if (export->bytes.size % width)
            return;
        set_dims(export, width == 4 ? COFFER_DTYPE_I32 : COFFER_DTYPE_I16, 1);
        export->dims[0] = export->bytes.size / width;
    }
}

coffer_status coffer__mldf_export_read(coffer__mldf_export *export, uint64_t sample, size_t index,
                                       coffer_error *err)
{
    size_t field = export->fields[index];
    const coffer_mldf_field *facts = coffer_mldf_field_at(export->set, field);
    export->has_dims = false;
    if (!coffer__dataset_is_array(facts->type) || facts->kind == COFFER_MLDF_ENTRY_OPAQUE) {
        coffer_status status =
            coffer_mldf_read(&export->bytes, &export->entry, export->set, sample, field, err);
        if (!status && export->entry.present)
            see_array(export, facts);
        return status;
    }
    coffer_status status = coffer_mldf_entry_at(&export->entry, export->set, sample, field, err);
    if (status || !export->entry.present)
        return status;
    set_dims(export, facts->dtype, facts->ndim);
    return coffer_mldf_get_array(&export->bytes, export->dims, export->set, sample, field, err);
}
