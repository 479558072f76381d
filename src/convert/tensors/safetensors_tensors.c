/* safetensors as sets of tensors: one file, or the shards that an index names. */
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"
#include "outside/models/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static coffer_status new_state(coffer_tensors *set, coffer_error *err)
{
    set->state = coffer__calloc(1, sizeof(coffer__safetensors_metadata));
    return set->state ? COFFER_OK : coffer__fail_no_memory(err, sizeof(coffer__safetensors_metadata));
}

static coffer_status take_tensor(void *context, const coffer__safetensors_tensor *from, coffer_error *err)
{
    coffer_tensors *set = context;
    coffer_tensor tensor = {
        .name = from->name,
        .dtype = from->type->dtype,
        .type_name = from->type->name,
        .rank = from->rank,
        .dims = from->dims,
        .size = from->size,
        .offset = from->offset,
    };
    return coffer__tensors_add(set, &tensor, from->name_len, set->count, err);
}

static coffer_status read_part(coffer_tensors *set, coffer_source *src, bool owned, coffer_error *err)
{
    coffer_status status = coffer__tensors_add_part(set, src, owned, err);
    if (!status && set->salvage)
        status = coffer__safetensors_salvage(set->state, src, &set->limits, take_tensor, coffer__tensors_lose,
                                             set, err);
    else if (!status)
        status = coffer__safetensors_read(set->state, src, &set->limits, take_tensor, set, err);
    return status;
}

static coffer_status open_file(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    coffer_status status = new_state(set, err);
    return status ? status : read_part(set, src, false, err);
}

static coffer_status describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    const coffer__safetensors_metadata *metadata = set->state;
    (void)err;
    for (size_t i = 0; i < metadata->count; i++)
        coffer_node_add_text_len(out, metadata->items[i].key, metadata->items[i].text,
                                 metadata->items[i].text_len);
    return COFFER_OK;
}

static coffer_status check(coffer_report *out, const coffer_tensors *set, bool full, coffer_error *err)
{
    const coffer__safetensors_metadata *metadata = set->state;
    (void)full;
    (void)err;
    if (metadata->ignored)
        coffer__report_add(out, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64
                           " keys other than dtype, shape and data_offsets are not read, the first of "
                           "tensor \"%s\"",
                           metadata->ignored, metadata->ignored_in);
    return COFFER_OK;
}

static void close_state(void *state)
{
    if (state)
        coffer__safetensors_metadata_free(state);
    coffer__free(state);
}

/* ---- Shards ---- */

typedef struct shard_index {
    coffer__json *json;
    const coffer__json_value *map;     /* "weight_map" */
    const coffer__json_value **places; /* its entries, by shard and then by tensor */
} shard_index;

static int by_shard(const void *left, const void *right)
{
    const coffer__json_value *a = *(const coffer__json_value *const *)left;
    const coffer__json_value *b = *(const coffer__json_value *const *)right;
    int order = strcmp(a->as.string, b->as.string);
    return order ? order : strcmp(a->key, b->key);
}

/* Shards are in the folder of the index: their names must not lead elsewhere. */
static coffer_status check_place(const coffer__json_value *value, coffer_error *err)
{
    if (value->kind != COFFER__JSON_STRING)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the shard of \"%s\" is not a string in the index", value->key);
    const char *name = value->as.string;
    bool plain = *name && strlen(name) == value->string_len && !strpbrk(name, "/\\") &&
                 strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    if (!plain)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "the index places \"%s\" in \"%s\", which is not a plain file name", value->key,
                            name);
    return COFFER_OK;
}

static coffer_status read_index(shard_index *out, coffer_source *src, const coffer_limits *limits,
                                coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    size_t count = 0;
    if (size > limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, 0, "the index has %" PRIu64 " bytes, the limit is %" PRIu64,
                            size, limits->json_bytes);
    char *text = coffer__malloc((size_t)size + 1);
    if (!text)
        return coffer__fail_no_memory(err, size);
    coffer_status status = coffer_source_read_at(text, src, 0, (size_t)size, err);
    if (!status)
        status = coffer__json_parse(&out->json, text, (size_t)size, 0, limits, err);
    coffer__free(text);
    if (status)
        return status;
    out->map = coffer__json_find(coffer__json_root(out->json), "weight_map");
    if (!out->map || out->map->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_MISSING, 0, "the index has no \"weight_map\"");
    out->places = coffer__alloc_array((size_t)out->map->as.count, sizeof *out->places);
    if (!out->places)
        return coffer__fail_no_memory(err, out->map->as.count * sizeof *out->places);
    for (const coffer__json_value *at = coffer__json_first(out->map); !status && at;
         at = coffer__json_next(out->map, at)) {
        status = check_place(at, err);
        out->places[count++] = at;
    }
    if (!status && count)
        qsort(out->places, count, sizeof *out->places, by_shard);
    return status;
}

static coffer_status open_shard(coffer_tensors *set, const char *index_path, const char *name,
                                coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_error failure = COFFER_ERROR_INIT;
    opts.access = set->access;
    coffer__buffer_append(&path, index_path, coffer__file_folder_len(index_path));
    coffer__buffer_append(&path, name, strlen(name));
    coffer_status status = path.failed
                               ? coffer__fail_no_memory(&failure, path.len)
                               : coffer__source_open_other(&src, coffer__buffer_text(&path), &opts, &failure);
    if (failure.system_error == ENOENT)
        status =
            coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the shard \"%s\" does not exist", name);
    else if (status && err)
        *err = failure;
    coffer__buffer_free(&path);
    return status ? status : coffer__fail_input(err, read_part(set, src, true, err), name);
}

static int entry_by_name(const void *left, const void *right)
{
    return strcmp(((const coffer__tensors_entry *)left)->tensor.name,
                  ((const coffer__tensors_entry *)right)->tensor.name);
}

static int name_to_entry(const void *name, const void *entry)
{
    return strcmp(name, ((const coffer__tensors_entry *)entry)->tensor.name);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static coffer_status lose_shard(coffer_tensors *set, const coffer__json_value *const *places, size_t count,
                                const coffer_error *why, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        coffer_error named = *why;
        named.subject = COFFER_SUBJECT_OTHER; /* it names the shard */
        status = coffer__tensors_lose(set, places[i]->key, &named, err);
    }
    return status;
}

/* Opens a shard and checks that it contains what the index says. It may contain more. */
static coffer_status take_shard(coffer_tensors *set, coffer_source *src,
                                const coffer__json_value *const *places, size_t count, coffer_error *err)
{
    const char *shard = places[0]->as.string;
    size_t before = set->count, lost_before = set->salvage ? set->salvage->count : 0;
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = open_shard(set, coffer_source_name(src), shard, &why);
    if (status && set->salvage && coffer__is_about_file(status))
        return lose_shard(set, places, count, &why, err);
    if (status)
        return coffer__fail_copy(err, &why);
    coffer__tensors_entry *entries = set->entries + before;
    size_t entry_count = set->count - before;
    /* A tensor that is lost in the shard has been reported. */
    size_t lost_count = set->salvage ? set->salvage->count - lost_before : 0;
    if (lost_count)
        qsort(set->salvage->names + lost_before, lost_count, sizeof *set->salvage->names, by_text);
    if (entry_count)
        qsort(entries, entry_count, sizeof *entries, entry_by_name);
    for (size_t i = 0; i < count; i++) {
        if (entry_count && bsearch(places[i]->key, entries, entry_count, sizeof *entries, name_to_entry))
            continue;
        const char *key = places[i]->key;
        if (lost_count && bsearch(&key, set->salvage->names + lost_before, lost_count,
                                  sizeof *set->salvage->names, by_text))
            continue;
        coffer__fail(&why, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                     "the index places \"%s\" in \"%s\", which does not contain it", places[i]->key, shard);
        status = set->salvage ? coffer__tensors_lose(set, key, &why, err) : coffer__fail_copy(err, &why);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status open_index(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    shard_index index = { 0 };
    coffer_status status = new_state(set, err);
    if (!status)
        status = read_index(&index, src, &set->limits, err);
    size_t count = status ? 0 : (size_t)index.map->as.count;
    for (size_t first = 0, end; !status && first < count; first = end) {
        for (end = first + 1; end < count; end++) {
            if (strcmp(index.places[first]->as.string, index.places[end]->as.string) != 0)
                break;
        }
        status = take_shard(set, src, index.places + first, end - first, err);
    }
    coffer__free(index.places);
    coffer__json_free(index.json);
    return status;
}

/* ---- Shards without an index ---- */

/* "NAME-00002-of-00003.safetensors" next to the first shard. */
static coffer_status open_numbered(coffer_tensors *set, const char *first, size_t stem_len, unsigned number,
                                   unsigned total, coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    const char *base = first + coffer__file_folder_len(first);
    coffer_error why = COFFER_ERROR_INIT;
    coffer__buffer_append(&name, base, stem_len);
    coffer__buffer_printf(&name, "-%05u-of-%05u.safetensors", number, total);
    coffer_status status = name.failed ? coffer__fail_no_memory(&why, name.len)
                                       : open_shard(set, first, coffer__buffer_text(&name), &why);
    coffer__buffer_free(&name);
    if (status && set->salvage && coffer__is_about_file(status))
        return coffer__tensors_lose(set, NULL, &why, err);
    return status ? coffer__fail_copy(err, &why) : COFFER_OK;
}

static coffer_status open_shards(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    const char *first = coffer_source_name(src);
    size_t stem_len;
    unsigned number, total;
    coffer_status status = new_state(set, err);
    if (status ||
        !coffer__tensors_is_shard(first + coffer__file_folder_len(first), &stem_len, &number, &total))
        return status ? status : read_part(set, src, false, err);
    for (unsigned i = 1; !status && i <= total; i++)
        status = open_numbered(set, first, stem_len, i, total, err);
    return status;
}

const coffer__tensors_reader coffer__tensors_safetensors_shards = {
    .kind = "safetensors-shards",
    .shown_kind = "safetensors",
    .title = "safetensors model",
    .repairs = true,
    .open = open_shards,
    .check = check,
    .describe = describe,
    .close = close_state,
};

const coffer__tensors_reader coffer__tensors_safetensors = {
    .kind = "safetensors",
    .shown_kind = "safetensors",
    .title = "safetensors model",
    .repairs = true,
    .open = open_file,
    .check = check,
    .describe = describe,
    .close = close_state,
};

const coffer__tensors_reader coffer__tensors_safetensors_index = {
    .kind = "safetensors-index",
    .shown_kind = "safetensors",
    .title = "safetensors model",
    .repairs = true,
    .open = open_index,
    .check = check,
    .describe = describe,
    .close = close_state,
};

const coffer__safetensors_metadata *coffer__safetensors_metadata_of(const coffer_tensors *set)
{
    return set->reader->close == close_state ? set->state : NULL;
}
