/* Sets of tensors as safetensors: one file, or shards with their index. */
#include "convert/tensors/tensors.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/convert.h"
#include "convert/models/gguf_names.h"
#include "convert/models/mcf_stand_in.h"
#include "convert/tensors/tensor_selection.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/source_private.h"
#include "outside/models/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_OPTION                                                                            \
    {                                                                                           \
        "shard-size", "SIZE", "files of at most SIZE (5GB, 500MiB), with an index next to them" \
    }

const coffer_convert_option coffer__to_safetensors_options[] = {
    COFFER__TENSOR_OPTIONS,
    SHARD_OPTION,
    { NULL, NULL, NULL },
};
const coffer_convert_option coffer__gguf_to_safetensors_options[] = {
    COFFER__TENSOR_OPTIONS,
    SHARD_OPTION,
    COFFER__GGUF_NAMES_OPTION,
    { NULL, NULL, NULL },
};

typedef struct output_shard {
    size_t first, count; /* of the selection, by name */
    char *path;
    coffer__sink *sink;
    bool is_new; /* the file did not exist before */
    bool committed;
} output_shard;

typedef struct tensor_export {
    const coffer__convert_job *job;
    coffer_tensors *set;
    coffer__tensors_settings settings;
    coffer__selection selection;
    const coffer__safetensors_metadata *metadata;
    coffer__safetensors_metadata restored; /* from ModelInfo */
    coffer__tensors_stream *stream;
    output_shard *shards;
    size_t shard_count;
    char *index_path; /* NULL until there is one to write */
} tensor_export;

/* ---- Metadata ---- */

static coffer_status restore_kept(tensor_export *export, const coffer_mcf_model_info *info, bool *none,
                                  coffer_error *err)
{
    static const size_t prefix = sizeof COFFER__MCF_METADATA_KEY - 1;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < info->kv_count; i++) {
        const coffer_mcf_kv *kv = &info->kvs[i];
        if (strcmp(kv->key, COFFER__MCF_NO_METADATA_KEY) == 0)
            *none = true;
        else if (kv->type == COFFER_MCF_KV_STRING && strncmp(kv->key, COFFER__MCF_METADATA_KEY, prefix) == 0)
            status = coffer__safetensors_metadata_add(&export->restored, kv->key + prefix, kv->text,
                                                      kv->text_len, err);
    }
    return status;
}

static coffer_status put_names(tensor_export *export, const char *key, const coffer__tensors_names *names,
                               coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__tensors_names_put_json(&text, names);
    coffer_status status = text.failed ? coffer__fail_no_memory(err, text.len) : COFFER_OK;
    if (!status && names->count)
        status =
            coffer__safetensors_metadata_add(&export->restored, key, (const char *)text.data, text.len, err);
    coffer__buffer_free(&text);
    return status;
}

/* Losses, and damage that the caller accepts, stay recorded, so that a check of the new file reports them. */
static coffer_status record_damage(tensor_export *export, coffer_error *err)
{
    coffer__tensors_names damaged = { 0 }, lost = { 0 };
    coffer_status status = coffer__tensors_damaged_names(&damaged, export->set, &export->selection, err);
    if (!status)
        status = coffer__tensors_lost_names(&lost, export->set, err);
    if (!status)
        status = put_names(export, COFFER__TENSORS_DAMAGED_KEY, &damaged, err);
    if (!status)
        status = put_names(export, COFFER__TENSORS_LOST_KEY, &lost, err);
    if (!status)
        coffer__tensors_note_lost(export->job->notes, &lost);
    coffer__tensors_names_free(&damaged);
    coffer__tensors_names_free(&lost);
    return status;
}

static coffer_status restore_metadata(tensor_export *export, coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(export->set);
    const coffer_mcf_model_info *info = NULL;
    bool none = false;
    export->metadata = coffer__safetensors_metadata_of(export->set);
    if (export->metadata)
        return COFFER_OK;
    export->metadata = &export->restored;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = model ? coffer_mcf_get_model_info(&info, model, &cause) : COFFER_E_MISSING;
    if (!status)
        status = restore_kept(export, info, &none, err);
    else if (status == COFFER_E_MISSING)
        status = COFFER_OK;
    else /* ModelInfo that is damaged and accepted, but cannot be understood, gives no metadata */
        status = coffer__source_accept_damage(export->job->in, &cause, err);
    if (!status)
        status = record_damage(export, err);
    if (status || none || export->restored.count)
        return status;
    return coffer__safetensors_metadata_add(&export->restored, COFFER__MCF_USUAL_KEY, COFFER__MCF_USUAL_TEXT,
                                            sizeof COFFER__MCF_USUAL_TEXT - 1, err);
}

/* safetensors has room for tensors and texts only. */
static coffer_status note_left_out(const tensor_export *export, coffer_error *err)
{
    coffer__tensors_files files = { 0 };
    coffer__buffer names = COFFER__BUFFER_INIT;
    const coffer__gguf *gguf = coffer__gguf_of(export->set);
    coffer_report *notes = export->job->notes;
    if (!notes)
        return COFFER_OK;
    coffer_status status = coffer__tensors_files_list(&files, export->set, err);
    for (size_t i = 0; !status && i < files.count && names.len < 120; i++)
        coffer__buffer_printf(&names, "%s%s", i ? ", " : "", files.names[i]);
    if (!status && files.count)
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "files of the model that safetensors cannot contain: %zu (%s)", files.count,
                           coffer__buffer_text(&names));
    if (!status && gguf && gguf->key_count)
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "keys of the GGUF file that are left out: %zu; a conversion to mcf keeps them",
                           gguf->key_count);
    coffer__buffer_free(&names);
    coffer__tensors_files_free(&files);
    return status;
}

/* ---- The plan ---- */

/* The largest elements first, so that every tensor is aligned to its own. */
static unsigned item_size(const coffer__chosen_tensor *chosen)
{
    size_t size = coffer_dtype_size(chosen->dtype);
    return size ? (unsigned)size : 1;
}

static int by_item_size(const void *left, const void *right)
{
    const coffer__chosen_tensor *a = left, *b = right;
    unsigned a_size = item_size(a), b_size = item_size(b);
    return a_size != b_size ? (a_size < b_size) - (a_size > b_size)
                            : strcmp(a->tensor->name, b->tensor->name);
}

/* How many tensors from `first` on go into one file. */
static size_t take_shard(const coffer__selection *selection, size_t first, uint64_t max)
{
    uint64_t bytes = 0;
    size_t at = first;
    do
        bytes += selection->items[at++].size;
    while (at < selection->count && selection->items[at].size <= max &&
           bytes <= max - selection->items[at].size);
    return at - first;
}

static coffer_status plan_shards(tensor_export *export, coffer_error *err)
{
    const coffer__selection *selection = &export->selection;
    uint64_t max = export->settings.shard_size ? export->settings.shard_size : UINT64_MAX;
    size_t count = 0;
    for (size_t first = 0; first < selection->count; first += take_shard(selection, first, max))
        count++;
    if (count == 0)
        count = 1;
    export->shards = coffer__calloc(count, sizeof *export->shards);
    if (!export->shards)
        return coffer__fail_no_memory(err, count * sizeof *export->shards);
    export->shard_count = count;
    for (size_t i = 0, first = 0; i < count; i++) {
        coffer__buffer path = COFFER__BUFFER_INIT;
        output_shard *shard = &export->shards[i];
        shard->first = first;
        shard->count = selection->count ? take_shard(selection, first, max) : 0;
        first += shard->count;
        if (count == 1)
            coffer__buffer_printf(&path, "%s", export->job->out_path);
        else
            coffer__safetensors_put_shard_name(&path, export->job->out_path, i, count);
        coffer__buffer_append(&path, "", 1);
        if (path.failed) {
            coffer__buffer_free(&path);
            return coffer__fail_no_memory(err, strlen(export->job->out_path));
        }
        shard->path = (char *)coffer__buffer_release(&path, NULL);
        if (shard->count)
            qsort(selection->items + shard->first, shard->count, sizeof *selection->items, by_item_size);
    }
    return COFFER_OK;
}

static coffer_status check_outputs(tensor_export *export, coffer_error *err)
{
    const char *in = coffer_source_name(export->job->in);
    struct stat in_st, out_st;
    bool in_is_file = coffer__os_stat(in, &in_st) == 0;
    if (export->shard_count > 1 && strcmp(export->job->out_path, "-") == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "cannot write %zu shards to one stream", export->shard_count);
    for (size_t i = 0; i < export->shard_count; i++) {
        bool is_there = coffer__os_stat(export->shards[i].path, &out_st) == 0;
        export->shards[i].is_new = !is_there;
        if (is_there && in_is_file && out_st.st_dev == in_st.st_dev && out_st.st_ino == in_st.st_ino)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "input and output are the same file: %s", in);
    }
    return COFFER_OK;
}

/* ---- Writing ---- */

static coffer_status describe_entry(coffer__safetensors_entry *out, const coffer__chosen_tensor *chosen,
                                    coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    const coffer__safetensors_type *type =
        chosen->dtype == COFFER_DTYPE_NONE
            ? coffer__safetensors_type_by_name(tensor->type_name, strlen(tensor->type_name))
            : coffer__safetensors_type_of(chosen->dtype);
    if (!type)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "\"%s\" is %s, which safetensors does not support", tensor->name,
                            tensor->type_name);
    if (strcmp(tensor->name, COFFER__SAFETENSORS_METADATA) == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "a tensor cannot be called \"%s\" in safetensors", tensor->name);
    *out = (coffer__safetensors_entry){ tensor->name, type->name, tensor->rank, tensor->dims, chosen->size };
    return COFFER_OK;
}

static coffer_status make_header(coffer__buffer *out, const tensor_export *export, const output_shard *shard,
                                 coffer_error *err)
{
    coffer__safetensors_entry *entries = coffer__alloc_array(shard->count, sizeof *entries);
    coffer_status status = entries ? COFFER_OK : coffer__fail_no_memory(err, shard->count * sizeof *entries);
    for (size_t i = 0; !status && i < shard->count; i++)
        status = describe_entry(&entries[i], &export->selection.items[shard->first + i], err);
    if (!status)
        coffer__safetensors_put_header(out, entries, shard->count, export->metadata);
    if (!status && out->failed)
        status = coffer__fail_no_memory(err, out->len);
    if (!status && out->len - 8 > COFFER__SAFETENSORS_MAX_HEADER)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "a header of %zu bytes exceeds the limit of safetensors: --shard-size writes "
                              "several files",
                              out->len);
    coffer__free(entries);
    return status;
}

static coffer_status put(void *context, const void *bytes, size_t len, coffer_error *err)
{
    return coffer__sink_write(context, bytes, len, err);
}

/* In parts, so that progress is reported. */
static coffer_status copy_payload(tensor_export *export, coffer__sink *sink, const coffer_tensor *tensor,
                                  int fd, coffer_error *err)
{
    static const uint64_t part_size = (uint64_t)64 << 20;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < tensor->size;) {
        uint64_t part = tensor->size - done < part_size ? tensor->size - done : part_size;
        status = coffer__sink_copy_file(sink, fd, tensor->offset + done, part, tensor->file, err);
        if (!status)
            status = coffer__tensors_stream_count(export->stream, part, err);
        done += part;
    }
    return status;
}

/* The kernel can copy the bytes of a plain file, but not the old state of an interrupted update. */
static coffer_status write_payload(tensor_export *export, coffer__sink *sink,
                                   const coffer__chosen_tensor *chosen, coffer_error *err)
{
    coffer_source *src = chosen->as_is ? coffer__tensors_source_at(chosen->set, chosen->index) : NULL;
    int fd = src ? coffer__source_descriptor(src) : -1;
    if (fd < 0)
        return coffer__tensors_stream_run(export->stream, chosen, put, sink, err);
    coffer_status status = coffer__tensors_verify(chosen->set, chosen->index, 0, chosen->tensor->size, err);
    if (status)
        return status;
    return copy_payload(export, sink, chosen->tensor, fd, err);
}

static coffer_status write_shard(tensor_export *export, output_shard *shard, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    coffer__buffer header = COFFER__BUFFER_INIT;
    coffer_status status = make_header(&header, export, shard, err);
    if (!status)
        status = coffer__sink_create(&shard->sink, shard->path, &opts, err);
    if (!status)
        status = coffer__sink_write(shard->sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    for (size_t i = 0; !status && i < shard->count; i++)
        status = write_payload(export, shard->sink, &export->selection.items[shard->first + i], err);
    return status ? status : coffer__sink_rest(shard->sink, err);
}

static void put_index(coffer__buffer *out, const tensor_export *export)
{
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, out, 2);
    coffer__json_open_object(&writer);
    coffer__json_key(&writer, "metadata");
    coffer__json_open_object(&writer);
    coffer__json_key(&writer, "total_size");
    coffer__json_write_u64(&writer, export->selection.bytes);
    coffer__json_close_object(&writer);
    coffer__json_key(&writer, "weight_map");
    coffer__json_open_object(&writer);
    for (size_t i = 0; i < export->shard_count; i++) {
        const output_shard *shard = &export->shards[i];
        for (size_t j = 0; j < shard->count; j++) {
            coffer__json_key(&writer, export->selection.items[shard->first + j].tensor->name);
            coffer__json_string(&writer, shard->path + coffer__file_folder_len(shard->path));
        }
    }
    coffer__json_close_object(&writer);
    coffer__json_close_object(&writer);
    coffer__buffer_append(out, "\n", 1);
}

static coffer_status create_index(coffer__sink **out, tensor_export *export, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    coffer__buffer path = COFFER__BUFFER_INIT, text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&path, "%s.index.json%c", export->job->out_path, 0);
    put_index(&text, export);
    export->index_path = path.failed ? NULL : (char *)coffer__buffer_release(&path, NULL);
    coffer_status status = !export->index_path || text.failed
                               ? coffer__fail_no_memory(err, text.len)
                               : coffer__sink_create(out, export->index_path, &opts, err);
    if (!status)
        status = coffer__sink_write(*out, text.data, text.len, err);
    if (!status)
        status = coffer__sink_rest(*out, err);
    coffer__buffer_free(&path);
    coffer__buffer_free(&text);
    return status;
}

/* The index is committed last: without it, readers ignore the shards. */
static coffer_status commit_all(tensor_export *export, coffer_error *err)
{
    coffer__sink *index = NULL;
    coffer_status status = export->shard_count > 1 ? create_index(&index, export, err) : COFFER_OK;
    for (size_t i = 0; !status && i < export->shard_count; i++) {
        output_shard *shard = &export->shards[i];
        status = coffer__sink_commit(shard->sink, err);
        shard->sink = NULL;
        /* It may have its name also when the folder could not be synced. */
        shard->committed = status != COFFER_E_EXISTS;
    }
    if (!status && index)
        return coffer__sink_commit(index, err);
    coffer__sink_discard(index);
    return status;
}

/* An index that took its name needs its shards. */
static bool has_index(const tensor_export *export)
{
    struct stat st;
    return export->index_path && coffer__os_stat(export->index_path, &st) == 0;
}

static void take_back_shards(const tensor_export *export)
{
    if (export->shard_count < 2 || has_index(export))
        return;
    for (size_t i = 0; i < export->shard_count; i++) {
        if (export->shards[i].committed && export->shards[i].is_new)
            coffer__os_unlink(export->shards[i].path);
    }
}

static void close_export(tensor_export *export)
{
    for (size_t i = 0; i < export->shard_count; i++) {
        coffer__sink_discard(export->shards[i].sink);
        coffer__free(export->shards[i].path);
    }
    coffer__free(export->index_path);
    coffer__free(export->shards);
    coffer__tensors_stream_free(export->stream);
    coffer__selection_free(&export->selection);
    coffer__tensors_settings_free(&export->settings);
    coffer__safetensors_metadata_free(&export->restored);
    coffer_tensors_close(export->set);
}

coffer_status coffer__to_safetensors(const coffer__convert_job *job, coffer_error *err)
{
    tensor_export export = { .job = job };
    coffer_status status = coffer__tensors_settings_read(&export.settings, job, err);
    if (!status)
        status = coffer__tensors_settings_open(&export.set, job, err);
    if (!status && coffer__gguf_of(export.set))
        status = coffer__gguf_restore_names(export.set, coffer__gguf_wants_hf_names(job), job->notes, err);
    if (!status)
        status = coffer__selection_add(&export.selection, export.set, &export.settings.selection, err);
    if (!status)
        status = coffer__selection_finish(&export.selection, (const coffer_tensors *const *)&export.set, 1,
                                          &export.settings.selection, err);
    if (!status)
        coffer__selection_note(job->notes, &export.selection);
    if (!status)
        status = note_left_out(&export, err);
    if (!status)
        status = restore_metadata(&export, err);
    if (!status)
        status = plan_shards(&export, err);
    if (!status)
        status = check_outputs(&export, err);
    if (!status)
        status = coffer__tensors_stream_new(&export.stream, 0, &job->limits, job->progress,
                                            export.selection.bytes, err);
    for (size_t i = 0; !status && i < export.shard_count; i++)
        status = write_shard(&export, &export.shards[i], err);
    if (!status)
        status = commit_all(&export, err);
    if (status)
        take_back_shards(&export);
    close_export(&export);
    return status;
}
