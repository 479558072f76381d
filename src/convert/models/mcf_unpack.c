/* Restores the folder that a model was packed from. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"
#include "coffer/convert.h"
#include "coffer/mcf.h"
#include "convert/tensors/tensors.h"
#include "io/os.h"
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_mcf_unpack_opts, COFFER_MCF_UNPACK_OPTS_INIT)

#define PIECE ((size_t)1 << 20)
#define HEAD_PREFIX 8
static const char weights_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

/* A tensor in a safetensors file. */
typedef struct placed {
    uint64_t begin, end;
    size_t tensor; /* in the set */
} placed;

/* A safetensors file that can be restored from its header. */
typedef struct weights {
    const char *name;
    uint8_t *head;
    size_t head_len;
    placed *tensors; /* in the order of the file, without gaps */
    size_t count;
} weights;

typedef struct unpack {
    coffer_mcf_unpack_opts opts;
    coffer_limits limits;
    const char *folder, *path;
    coffer_tensors *set;
    const coffer_mcf *model;
    coffer_node *list; /* NULL = no report */
    uint64_t exact;
    weights *files;
    size_t file_count, file_capacity;
    char reason[200]; /* why the weights cannot be restored exactly; "" = they can */
    uint64_t done, total;
} unpack;

static void report(unpack *job, const char *name, uint64_t size, bool exact, const char *reason)
{
    job->exact += exact;
    coffer_node *entry = coffer_node_add_map(job->list, NULL);
    coffer_node_add_text(entry, "name", name);
    coffer_node_add_u64(entry, "size", size, COFFER_UNIT_BYTES);
    coffer_node_add_bool(entry, "exact", exact);
    coffer_node_add_text(entry, "reason", reason);
}

/* ---- Files ---- */

static coffer_status make_folder(const char *path, coffer_error *err)
{
    struct stat st;
    if (coffer__os_make_folder(path, 0777) == 0 || errno == EEXIST) {
        if (coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return COFFER_OK;
        errno = ENOTDIR;
    }
    return coffer__fail_output(err, coffer__fail_errno(err, "cannot create the folder", errno));
}

/* Names come from the file: nothing is written through a symbolic link in the folder. */
static coffer_status create(coffer__sink **out, const unpack *job, const char *name, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !job->opts.overwrite };
    coffer_error cause = COFFER_ERROR_INIT;
    if (coffer__sink_create_in(out, job->folder, name, &options, &cause))
        return coffer__fail_other(err, coffer__fail_copy(err, &cause), name);
    return COFFER_OK;
}

static coffer_status write_file(unpack *job, const char *name, const uint8_t *bytes, size_t len,
                                coffer_error *err)
{
    coffer__sink *sink = NULL;
    coffer_status status = create(&sink, job, name, err);
    if (!status)
        status = coffer__sink_write(sink, bytes, len, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    status = coffer__sink_commit(sink, err);
    if (!status)
        report(job, name, len, true, NULL);
    return status;
}

static bool has_file(const coffer_mcf_file *files, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A section whose file is stored as well was changed while packing: the file is what is restored. */
static coffer_status write_sections(unpack *job, const coffer_mcf_file *files, size_t count,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint32_t type = COFFER_MCF_CONFIG; !status && type <= COFFER_MCF_MERGES; type++) {
        const char *name = coffer_mcf_section_name(type);
        uint8_t *bytes = NULL;
        size_t len = 0;
        if (!coffer_mcf_find_section(job->model, type) || has_file(files, count, name))
            continue;
        status = coffer_mcf_read_section(&bytes, &len, job->model, type, err);
        if (!status)
            status = write_file(job, name, bytes, len, err);
        coffer_free(bytes);
    }
    return status;
}

static coffer_status write_files(unpack *job, const coffer_mcf_file *files, size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        if (files[i].kind != COFFER_MCF_FILE_WHOLE)
            continue;
        if (job->reason[0] && strcmp(files[i].name, index_name) == 0) {
            report(job, index_name, 0, false, "not restored: the weights are written to one file");
            continue;
        }
        status = coffer_mcf_read_file(&bytes, &len, job->model, files[i].name, err);
        if (!status)
            status = write_file(job, files[i].name, bytes, len, err);
        coffer_free(bytes);
    }
    return status;
}

/* ---- Weights: can they be restored exactly? ---- */

static int by_begin(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool same_shape(const coffer_tensor *tensor, const coffer__json_value *shape)
{
    uint32_t rank = 0;
    for (const coffer__json_value *dim = coffer__json_first(shape); dim;
         dim = coffer__json_next(shape, dim), rank++) {
        uint64_t value;
        if (!coffer__json_u64(&value, dim) || rank >= tensor->rank || tensor->dims[rank] != value)
            return false;
    }
    return rank == tensor->rank;
}

/* False, with the reason, when the model does not have the tensor as the header describes it. */
static bool place_tensor(placed *out, unpack *job, const coffer__json_value *member)
{
    const coffer__json_value *dtype = coffer__json_find(member, "dtype");
    const coffer__json_value *offsets = coffer__json_find(member, "data_offsets");
    const coffer__json_value *first = coffer__json_first(offsets);
    out->tensor = coffer_tensors_find(job->set, member->key);
    const coffer_tensor *tensor = coffer_tensors_at(job->set, out->tensor);
    if (!tensor) {
        snprintf(job->reason, sizeof job->reason, "tensor %.64s is not in the model", member->key);
        return false;
    }
    if (!dtype || dtype->kind != COFFER__JSON_STRING || strcmp(dtype->as.string, tensor->type_name) != 0) {
        snprintf(job->reason, sizeof job->reason, "tensor %.64s was %.16s and is now %s", member->key,
                 dtype && dtype->kind == COFFER__JSON_STRING ? dtype->as.string : "?",
                 coffer_tensor_dtype_name(tensor));
        return false;
    }
    if (!coffer__json_u64(&out->begin, first) ||
        !coffer__json_u64(&out->end, first ? coffer__json_next(offsets, first) : NULL) ||
        out->end < out->begin || out->end - out->begin != tensor->size ||
        !same_shape(tensor, coffer__json_find(member, "shape"))) {
        snprintf(job->reason, sizeof job->reason, "tensor %.64s does not fit its safetensors header",
                 member->key);
        return false;
    }
    return true;
}

static coffer_status place_tensors(weights *file, unpack *job, bool *used, const coffer__json_value *root,
                                   coffer_error *err)
{
    uint64_t end = 0;
    file->tensors = coffer__alloc_array((size_t)root->as.count, sizeof *file->tensors);
    if (!file->tensors)
        return coffer__fail_no_memory(err, root->as.count * sizeof *file->tensors);
    for (const coffer__json_value *member = coffer__json_first(root); member;
         member = coffer__json_next(root, member)) {
        if (strcmp(member->key, "__metadata__") == 0)
            continue;
        if (!place_tensor(&file->tensors[file->count], job, member))
            return COFFER_OK;
        used[file->tensors[file->count++].tensor] = true;
    }
    if (file->count > 0)
        qsort(file->tensors, file->count, sizeof *file->tensors, by_begin);
    for (size_t i = 0; i < file->count; i++) {
        if (file->tensors[i].begin != end) {
            snprintf(job->reason, sizeof job->reason, "%.64s has bytes that belong to no tensor", file->name);
            return COFFER_OK;
        }
        end = file->tensors[i].end;
    }
    return COFFER_OK;
}

static coffer_status plan_file(unpack *job, bool *used, const coffer_mcf_file *from, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_status status =
        coffer__array_reserve_one(&job->files, &job->file_capacity, job->file_count, sizeof *job->files, err);
    if (status)
        return status;
    weights *file = &job->files[job->file_count++];
    *file = (weights){ .name = from->name };
    status = coffer_mcf_read_file(&file->head, &file->head_len, job->model, from->name, err);
    if (!status && file->head_len < HEAD_PREFIX)
        status = coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE, "the header of %.64s is too short",
                              from->name);
    if (!status)
        status = coffer__json_parse(&json, (const char *)file->head + HEAD_PREFIX,
                                    file->head_len - HEAD_PREFIX, 0, &job->limits, err);
    if (!status && coffer__json_root(json)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail(err, COFFER_E_BAD_JSON, COFFER_OFFSET_NONE,
                              "the header of %.64s is not a JSON object", from->name);
    if (!status)
        status = place_tensors(file, job, used, coffer__json_root(json), err);
    coffer__json_free(json);
    return status;
}

static coffer_status plan_weights(unpack *job, const coffer_mcf_file *files, size_t count, coffer_error *err)
{
    size_t tensors = coffer_tensors_count(job->set);
    bool *used = coffer__calloc(tensors ? tensors : 1, sizeof *used);
    coffer_status status = used ? COFFER_OK : coffer__fail_no_memory(err, tensors);
    for (size_t i = 0; !status && !job->reason[0] && i < count; i++) {
        if (files[i].kind == COFFER_MCF_FILE_SAFETENSORS_HEAD)
            status = plan_file(job, used, &files[i], err);
    }
    if (!status && !job->reason[0] && job->file_count == 0 && tensors > 0)
        snprintf(job->reason, sizeof job->reason, "the model has no safetensors header");
    for (size_t i = 0; !status && !job->reason[0] && i < tensors; i++) {
        if (!used[i])
            snprintf(job->reason, sizeof job->reason, "tensor %.64s is in no safetensors header",
                     coffer_tensors_at(job->set, i)->name);
        job->total += coffer_tensors_at(job->set, i)->size;
    }
    coffer__free(used);
    return status;
}

/* ---- Weights ---- */

static coffer_status copy_tensor(unpack *job, coffer__sink *sink, size_t tensor, uint8_t *piece,
                                 coffer_error *err)
{
    uint64_t size = coffer_tensors_at(job->set, tensor)->size;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < size;) {
        size_t n = size - done < PIECE ? (size_t)(size - done) : PIECE;
        status = coffer_tensors_read(piece, job->set, tensor, done, n, err);
        if (!status)
            status = coffer__sink_write(sink, piece, n, err);
        done += n;
        job->done += n;
        if (!status)
            status = coffer__progress_step(job->opts.progress, job->done, job->total, err);
    }
    return status;
}

static coffer_status write_weights(unpack *job, const weights *file, uint8_t *piece, coffer_error *err)
{
    coffer__sink *sink = NULL;
    coffer_status status = create(&sink, job, file->name, err);
    if (!status)
        status = coffer__sink_write(sink, file->head, file->head_len, err);
    for (size_t i = 0; !status && i < file->count; i++)
        status = copy_tensor(job, sink, file->tensors[i].tensor, piece, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    uint64_t size = coffer__sink_position(sink);
    status = coffer__sink_commit(sink, err);
    if (!status)
        report(job, file->name, size, true, NULL);
    return status;
}

static coffer_status write_exactly(unpack *job, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(PIECE);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, PIECE);
    for (size_t i = 0; !status && i < job->file_count; i++)
        status = write_weights(job, &job->files[i], piece, err);
    coffer__free(piece);
    return status;
}

static bool is_link(const char *path)
{
    struct stat st;
    int fd = coffer__os_open(path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return false;
    bool link = coffer__os_fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
    coffer__os_close(fd);
    return link;
}

static coffer_status write_converted(unpack *job, coffer_error *err)
{
    coffer_convert_opts options = COFFER_CONVERT_OPTS_INIT;
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_source *written = NULL;
    coffer__sink *place = NULL;
    coffer_status status = create(&place, job, weights_name, err); /* is the name free, or may it be taken? */
    coffer__sink_discard(place);
    if (!status && !coffer__buffer_printf(&path, "%s/%s", job->folder, weights_name))
        status = coffer__fail_no_memory(err, sizeof weights_name);
    if (!status && is_link(coffer__buffer_text(&path)))
        coffer__os_unlink(coffer__buffer_text(&path));
    options.overwrite = job->opts.overwrite;
    options.limits = job->opts.limits;
    options.progress = job->opts.progress;
    options.to = "safetensors";
    if (!status)
        status = coffer_convert(job->set->parts[0].src, coffer__buffer_text(&path), &options, err);
    if (!status)
        status = coffer_source_open(&written, coffer__buffer_text(&path), NULL, err);
    if (!status)
        report(job, weights_name, coffer_source_size(written), false, job->reason);
    coffer_source_close(written);
    coffer__buffer_free(&path);
    return status;
}

/* ---- Everything ---- */

static coffer_status run(unpack *job, coffer_error *err)
{
    const coffer_mcf_file *files = NULL;
    size_t count = 0;
    coffer_status status = coffer_mcf_get_files(&files, &count, job->model, err);
    if (!status)
        status = plan_weights(job, files, count, err);
    if (!status)
        status = make_folder(job->folder, err);
    if (!status)
        status = write_sections(job, files, count, err);
    if (!status)
        status = write_files(job, files, count, err);
    if (status || coffer_tensors_count(job->set) == 0)
        return status;
    return job->reason[0] ? write_converted(job, err) : write_exactly(job, err);
}

coffer_status coffer_mcf_unpack(coffer_node *out, const char *folder, const char *path,
                                const coffer_mcf_unpack_opts *opts, coffer_error *err)
{
    unpack job = { .opts = COFFER_MCF_UNPACK_OPTS_INIT, .folder = folder, .path = path };
    coffer_tensors_open_opts open_options = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_node *own = NULL;
    coffer_source *src = NULL;
    coffer_status status = coffer__take_options(&job.opts, sizeof job.opts, opts, err);
    if (!status && !out) {
        status = coffer_node_new(&own, err);
        out = own;
    }
    if (status)
        return status;
    job.limits = coffer__limits(job.opts.limits);
    job.list = coffer_node_add_list(out, "files");
    open_options.limits = job.opts.limits;
    status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer__tensors_open_with(&job.set, &coffer__tensors_mcf, src, false, &open_options, err);
    if (!status) {
        job.model = job.set->state;
        status = run(&job, err);
    }
    coffer_node_add_u64(out, "exact", job.exact, COFFER_UNIT_NONE);
    for (size_t i = 0; i < job.file_count; i++) {
        coffer_free(job.files[i].head);
        coffer__free(job.files[i].tensors);
    }
    coffer__free(job.files);
    coffer_tensors_close(job.set);
    coffer_source_close(src);
    if (!status)
        status = coffer_node_status(out, err);
    coffer_node_free(own);
    return status;
}
