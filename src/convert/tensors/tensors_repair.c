/* Saves the complete tensors of a damaged safetensors or GGUF file, or of a model in several files. The new
 * file lists the lost ones under COFFER__TENSORS_LOST_KEY, so that a check still reports them. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink.h"
#include "outside/models/safetensors.h"

#include <stdlib.h>
#include <string.h>

typedef struct repair_job {
    coffer_repair_opts opts;
    coffer__tensors_salvage salvage;
    coffer_source *src;
    const coffer__tensors_reader *reader;
    coffer_tensors *set;
    const coffer__tensors_entry **order; /* of the set, as the bytes are in the files */
    coffer__sink *sink;
    uint64_t done, total; /* bytes, for the progress */
} repair_job;

/* ---- Losses ---- */

coffer_status coffer__tensors_lose(void *context, const char *name, const coffer_error *why,
                                   coffer_error *err)
{
    coffer_tensors *set = context;
    coffer__tensors_salvage *salvage = set->salvage;
    /* Of several files, the message names the one at fault. */
    bool several = set->reader == &coffer__tensors_safetensors_index ||
                   set->reader == &coffer__tensors_safetensors_shards;
    coffer_error named = *why;
    if (several && set->part_count)
        coffer__fail_input(&named, named.status, coffer_source_name(set->parts[set->part_count - 1].src));
    if (name)
        coffer__report_add(salvage->report, named.status, COFFER_ERROR, named.offset,
                           "lost tensor \"%s\": %s", name, named.text);
    else
        coffer__report_add(salvage->report, named.status, COFFER_WARNING, named.offset, "%s", named.text);
    if (!name)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&salvage->names, &salvage->capacity, salvage->count,
                                                     sizeof *salvage->names, err);
    if (status)
        return status;
    salvage->names[salvage->count] = coffer__strdup(name);
    if (!salvage->names[salvage->count])
        return coffer__fail_no_memory(err, strlen(name));
    salvage->count++;
    return COFFER_OK;
}

static void free_losses(coffer__tensors_salvage *salvage)
{
    for (size_t i = 0; i < salvage->count; i++)
        coffer__free(salvage->names[i]);
    coffer__free(salvage->names);
}

/* ---- Payloads ---- */

static int by_place(const void *left, const void *right)
{
    const coffer__tensors_entry *a = *(const coffer__tensors_entry *const *)left;
    const coffer__tensors_entry *b = *(const coffer__tensors_entry *const *)right;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    if (a->tensor.offset != b->tensor.offset)
        return a->tensor.offset < b->tensor.offset ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static coffer_status order_tensors(repair_job *job, coffer_error *err)
{
    size_t count = job->set->count;
    job->order = coffer__alloc_array(count + 1, sizeof *job->order);
    if (!job->order)
        return coffer__fail_no_memory(err, count * sizeof *job->order);
    for (size_t i = 0; i < count; i++) {
        job->order[i] = &job->set->entries[i];
        job->total += job->set->entries[i].tensor.size;
    }
    if (count)
        qsort(job->order, count, sizeof *job->order, by_place);
    return COFFER_OK;
}

/* In parts, so that progress is reported. */
static coffer_status copy_tensor(repair_job *job, const coffer__tensors_entry *entry, coffer_error *err)
{
    static const uint64_t part_size = (uint64_t)16 << 20;
    const coffer_tensor *tensor = &entry->tensor;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < tensor->size;) {
        uint64_t part = tensor->size - done < part_size ? tensor->size - done : part_size;
        status = coffer__sink_copy_source(job->sink, job->set->parts[entry->part].src, tensor->offset + done,
                                          part, NULL, err);
        done += part;
        job->done += part;
        if (!status)
            status = coffer__progress_step(job->opts.progress, job->done, job->total, err);
    }
    return status;
}

/* ---- safetensors ---- */

static coffer_status collect_metadata(coffer__safetensors_metadata *out, const repair_job *job,
                                      coffer_error *err)
{
    const coffer__safetensors_metadata *from = coffer__safetensors_metadata_of(job->set);
    coffer__buffer lost = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < from->count; i++) {
        if (strcmp(from->items[i].key, COFFER__TENSORS_LOST_KEY) != 0)
            status = coffer__safetensors_metadata_add(out, from->items[i].key, from->items[i].text,
                                                      from->items[i].text_len, err);
    }
    const coffer__tensors_names names = { .items = job->salvage.names, .count = job->salvage.count };
    coffer__tensors_names_put_json(&lost, &names);
    if (!status && lost.failed)
        status = coffer__fail_no_memory(err, lost.len);
    if (!status && job->salvage.count)
        status = coffer__safetensors_metadata_add(out, COFFER__TENSORS_LOST_KEY, (const char *)lost.data,
                                                  lost.len, err);
    coffer__buffer_free(&lost);
    return status;
}

static coffer_status write_safetensors(repair_job *job, coffer_error *err)
{
    coffer__safetensors_metadata metadata = { 0 };
    coffer__buffer header = COFFER__BUFFER_INIT;
    size_t count = job->set->count;
    coffer__safetensors_entry *entries = coffer__alloc_array(count + 1, sizeof *entries);
    coffer_status status = entries ? collect_metadata(&metadata, job, err)
                                   : coffer__fail_no_memory(err, count * sizeof *entries);
    for (size_t i = 0; !status && i < count; i++) {
        const coffer_tensor *tensor = &job->order[i]->tensor;
        entries[i] = (coffer__safetensors_entry){ tensor->name, tensor->type_name, tensor->rank, tensor->dims,
                                                  tensor->size };
    }
    if (!status)
        coffer__safetensors_put_header(&header, entries, count, &metadata);
    if (!status && header.failed)
        status = coffer__fail_no_memory(err, header.len);
    if (!status)
        status = coffer__sink_write(job->sink, header.data, header.len, err);
    for (size_t i = 0; !status && i < count; i++)
        status = copy_tensor(job, job->order[i], err);
    coffer__free(entries);
    coffer__buffer_free(&header);
    coffer__safetensors_metadata_free(&metadata);
    return status;
}

/* ---- GGUF ---- */

static coffer_status put_key(coffer__buffer *out, const coffer__gguf *gguf, const coffer__gguf_key *key,
                             coffer_error *err)
{
    coffer__gguf_put_key(out, key->name, strlen(key->name), key->type);
    uint8_t *bytes =
        key->size <= gguf->limits.memory_bytes ? coffer__buffer_extend(out, (size_t)key->size) : NULL;
    return bytes ? coffer_source_read_at(bytes, gguf->src, key->offset, (size_t)key->size, err)
                 : coffer__fail_no_memory(err, key->size);
}

static void put_lost_key(coffer__buffer *out, const coffer__tensors_salvage *salvage)
{
    coffer__gguf_put_key(out, COFFER__TENSORS_LOST_KEY, strlen(COFFER__TENSORS_LOST_KEY), COFFER__GGUF_ARRAY);
    const coffer__tensors_names names = { .items = salvage->names, .count = salvage->count };
    coffer__tensors_names_put_gguf(out, &names);
}

/* The offset of the payload after one that ends at `end`. */
static bool next_place(uint64_t *end, uint64_t size, uint32_t alignment)
{
    return coffer__add_u64(end, *end, size) && coffer__align_up(end, *end, alignment);
}

static coffer_status put_gguf_header(coffer__buffer *header, const repair_job *job, const coffer__gguf *gguf,
                                     coffer_error *err)
{
    const coffer__gguf_key *old = coffer__gguf_find(gguf, COFFER__TENSORS_LOST_KEY);
    coffer_status status = COFFER_OK;
    uint64_t end = 0;
    coffer__gguf_put_header(header, job->set->count,
                            gguf->key_count - (old != NULL) + (job->salvage.count != 0));
    for (size_t i = 0; !status && i < gguf->key_count; i++) {
        if (&gguf->keys[i] != old)
            status = put_key(header, gguf, &gguf->keys[i], err);
    }
    if (!status && job->salvage.count)
        put_lost_key(header, &job->salvage);
    for (size_t i = 0; !status && i < job->set->count; i++) {
        const coffer__gguf_tensor *tensor = &gguf->tensors[job->order[i]->index];
        coffer__gguf_put_tensor(header, tensor->name, tensor->name_len, tensor->rank, tensor->dims,
                                tensor->type, end);
        if (!next_place(&end, tensor->size, gguf->alignment))
            status = coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                  "the size of the tensors does not fit into 64 bits");
    }
    coffer__buffer_fill(header, 0, (0 - header->len) % gguf->alignment);
    return !status && header->failed ? coffer__fail_no_memory(err, header->len) : status;
}

static coffer_status write_gguf(repair_job *job, coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(job->set);
    coffer__buffer header = COFFER__BUFFER_INIT;
    coffer_status status = put_gguf_header(&header, job, gguf, err);
    if (!status)
        status = coffer__sink_write(job->sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    for (size_t i = 0; !status && i < job->set->count; i++) {
        status = copy_tensor(job, job->order[i], err);
        if (!status)
            status = coffer__sink_fill(job->sink, 0, (0 - coffer__sink_position(job->sink)) % gguf->alignment,
                                       err);
    }
    return status;
}

/* ---- Everything ---- */

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Losses that an earlier repair recorded stay recorded. */
static coffer_status take_earlier_losses(repair_job *job, coffer_error *err)
{
    coffer__tensors_names names = { 0 };
    size_t before = job->salvage.count;
    coffer_status status = coffer__tensors_recorded_names(&names, job->set, COFFER__TENSORS_LOST_KEY, err);
    if (names.count && before)
        qsort(job->salvage.names, before, sizeof *job->salvage.names, by_text);
    for (size_t i = 0; !status && i < names.count; i++) {
        coffer_error why = COFFER_ERROR_INIT;
        bool known = coffer_tensors_find(job->set, names.items[i]) != COFFER_INDEX_NONE;
        known = known || (before &&
                          bsearch(&names.items[i], job->salvage.names, before, sizeof *names.items, by_text));
        coffer__fail(&why, COFFER_E_MISSING, COFFER_OFFSET_NONE, "in an earlier repair");
        if (!known)
            status = coffer__tensors_lose(job->set, names.items[i], &why, err);
    }
    coffer__tensors_names_free(&names);
    return status;
}

static coffer_status open_damaged(repair_job *job, const char *path, coffer_error *err)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    opts.limits = job->opts.limits;
    opts.access = COFFER_ACCESS_READ;
    coffer_status status = coffer__tensors_open_source(&job->src, &job->reader, path, opts.access, err);
    /* The length of a header of safetensors is its only magic: the name decides when it is damaged. */
    if (status == COFFER_E_NOT_RECOGNISED && coffer__file_has_extension(path, ".safetensors")) {
        job->reader = &coffer__tensors_safetensors;
        status = coffer_source_open(&job->src, path, NULL, err);
    }
    if (status)
        return status;
    if (!job->reader->repairs)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "a %s cannot be repaired",
                            job->reader->title);
    status = coffer__tensors_open_damaged(&job->set, job->reader, job->src, &job->salvage, &opts, err);
    if (!status)
        status = take_earlier_losses(job, err);
    return status ? status : order_tensors(job, err);
}

static bool is_input(const repair_job *job, const char *out_path)
{
    struct stat in, out;
    if (coffer__os_stat(out_path, &out) != 0)
        return false;
    for (size_t i = 0; i < job->set->part_count; i++) {
        if (coffer__os_stat(coffer_source_name(job->set->parts[i].src), &in) == 0 &&
            in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    }
    return false;
}

coffer_status coffer_tensors_repair(coffer_report *out, const char *path, const char *out_path,
                                    const coffer_repair_opts *opts, coffer_error *err)
{
    repair_job job = { .opts = COFFER_REPAIR_OPTS_INIT, .salvage = { .report = out } };
    coffer_status status = coffer__take_options(&job.opts, sizeof job.opts, opts, err);
    coffer__sink_opts sink_opts = { .exclusive = !job.opts.overwrite };
    if (!status)
        status = open_damaged(&job, path, err);
    if (!status && is_input(&job, out_path))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "input and output are the same file: %s", out_path);
    if (!status && !job.set->count && job.salvage.count)
        status = coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE,
                              "none of the %zu tensors is complete", job.salvage.count);
    if (!status)
        status = coffer__sink_create(&job.sink, out_path, &sink_opts, err);
    if (!status)
        status = job.reader == &coffer__tensors_gguf ? write_gguf(&job, err) : write_safetensors(&job, err);
    if (status)
        coffer__sink_discard(job.sink);
    else
        status = coffer__sink_commit(job.sink, err);
    if (!status)
        status = coffer__report_status(out, err);
    coffer__free((void *)job.order);
    coffer_tensors_close(job.set);
    coffer_source_close(job.src);
    free_losses(&job.salvage);
    return status;
}
