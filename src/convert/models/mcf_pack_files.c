/* The files of a model folder that are neither tensors nor sections: stored by name, so that the folder can
 * be restored. Every file that is found is packed or noted as left out. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/models/mcf_pack.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((uint64_t)64 << 20)
#define MAX_DEPTH 8
#define HEAD_PREFIX 8 /* of a safetensors file: u64 length of the JSON that follows */

void coffer__mcf_pack_free_files(coffer__mcf_pack *pack)
{
    for (size_t i = 0; i < pack->file_count; i++) {
        coffer__free(pack->files[i].name);
        coffer__free(pack->files[i].bytes);
    }
    for (size_t i = 0; i < pack->left_out_count; i++)
        coffer__free(pack->left_out[i].name);
    coffer__free(pack->files);
    coffer__free(pack->left_out);
}

coffer_status coffer__mcf_pack_add_file(coffer__mcf_pack *pack, const char *name, coffer_mcf_file_kind kind,
                                        uint8_t *bytes, size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < pack->file_count; i++) {
        const coffer__mcf_packed_file *file = &pack->files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        if (file->kind == kind && file->len == len && memcmp(file->bytes, bytes, len) == 0) {
            coffer__free(bytes);
            return COFFER_OK;
        }
        status = coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                              "two different files are named %.64s", name);
    }
    if (!status)
        status = coffer__array_reserve_one(&pack->files, &pack->file_capacity, pack->file_count,
                                           sizeof *pack->files, err);
    char *copy = status ? NULL : coffer__strdup(name);
    if (!status && !copy)
        status = coffer__fail_no_memory(err, strlen(name));
    if (status) {
        coffer__free(bytes);
        return status;
    }
    pack->files[pack->file_count++] = (coffer__mcf_packed_file){ copy, kind, bytes, len };
    return COFFER_OK;
}

/* ---- Headers of safetensors files ---- */

static coffer_status add_head(coffer__mcf_pack *pack, coffer_source *src, const char *name, coffer_error *err)
{
    uint8_t prefix[HEAD_PREFIX];
    uint64_t size = coffer_source_size(src);
    coffer_status status =
        size < HEAD_PREFIX ? COFFER_E_TRUNCATED : coffer_source_read_at(prefix, src, 0, HEAD_PREFIX, err);
    if (status)
        return status == COFFER_E_TRUNCATED ? COFFER_OK : status;
    uint64_t json = coffer__load_u64(prefix);
    if (json > size - HEAD_PREFIX || json > pack->limits.json_bytes)
        return COFFER_OK; /* opening the set has reported it */
    size_t len = (size_t)json + HEAD_PREFIX;
    uint8_t *bytes = coffer__malloc(len);
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    status = coffer_source_read_at(bytes, src, 0, len, err);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    return coffer__mcf_pack_add_file(pack, name, COFFER_MCF_FILE_SAFETENSORS_HEAD, bytes, len, err);
}

coffer_status coffer__mcf_pack_heads(coffer__mcf_pack *pack, const coffer_tensors *set, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < set->part_count; i++) {
        const char *path = coffer_source_name(set->parts[i].src);
        const char *name = path + coffer__file_folder_len(path);
        if (coffer__file_has_extension(name, ".safetensors") && coffer_mcf_file_name_is_safe(name))
            status = add_head(pack, set->parts[i].src, name, err);
    }
    return status;
}

/* ---- Folders ---- */

static const char unreadable[] = "it cannot be read", unexamined[] = "it cannot be examined",
                  closed[] = "the folder cannot be read";

static coffer_status leave_out(coffer__mcf_pack *pack, const char *name, uint64_t size, const char *reason,
                               coffer_error *err)
{
    pack->incomplete |= reason == unreadable || reason == unexamined || reason == closed;
    coffer_status status = coffer__array_reserve_one(&pack->left_out, &pack->left_out_capacity,
                                                     pack->left_out_count, sizeof *pack->left_out, err);
    char *copy = status ? NULL : coffer__strdup(name);
    if (!status && !copy)
        status = coffer__fail_no_memory(err, strlen(name));
    if (!status)
        pack->left_out[pack->left_out_count++] = (coffer__mcf_left_out){ copy, size, reason };
    return status;
}

static bool same_file(const struct stat *st, const char *path)
{
    struct stat other;
    return path && coffer__os_stat(path, &other) == 0 && other.st_dev == st->st_dev &&
           other.st_ino == st->st_ino;
}

/* True for files that the model has in another form: tensors and sections. */
static bool is_taken(const coffer__mcf_pack *pack, const struct stat *st)
{
    for (size_t i = 0; i < pack->set_count; i++) {
        for (size_t j = 0; j < pack->sets[i]->part_count; j++) {
            const char *path = coffer_source_name(pack->sets[i]->parts[j].src);
            if (!coffer__file_has_extension(path, ".json") && same_file(st, path))
                return true;
        }
    }
    for (size_t i = 0; i < pack->resource_count; i++) {
        if (same_file(st, pack->resources[i].path))
            return true;
    }
    return false;
}

/* Folding the chat template changes tokenizer_config.json, so both files are kept as well. */
static bool is_folded(const coffer__mcf_pack *pack, const char *name)
{
    return pack->chat_template && strcmp(name, coffer_mcf_section_name(COFFER_MCF_TOKENIZER_CONFIG)) == 0;
}

static coffer_status take_file(coffer__mcf_pack *pack, const char *path, const char *name,
                               const struct stat *st, coffer_error *err)
{
    uint64_t limit = pack->opts.max_file_bytes ? pack->opts.max_file_bytes : MAX_FILE;
    uint64_t size = (uint64_t)st->st_size;
    uint8_t *bytes = NULL;
    size_t len = 0;
    pack->found++;
    bool taken = is_taken(pack, st);
    if (taken && !(is_folded(pack, name) && !pack->opts.no_files)) {
        pack->packed++;
        return COFFER_OK;
    }
    if (pack->opts.no_files)
        return leave_out(pack, name, size, "only tensors, configuration and tokenizer were requested", err);
    if (!coffer_mcf_file_name_is_safe(name))
        return leave_out(pack, name, size, "the name has characters that not all systems allow", err);
    if (coffer__file_has_extension(name, ".mcf"))
        return leave_out(pack, name, size, "it is a packed model itself", err);
    if (size > limit || size > pack->limits.json_bytes)
        return leave_out(pack, name, size, "it is larger than the limit for other files (--max-file)", err);
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer__mcf_pack_read(&bytes, &len, path, &pack->limits, &cause);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &cause);
    if (status)
        return leave_out(pack, name, size, unreadable, err);
    pack->packed++;
    return coffer__mcf_pack_add_file(pack, name, COFFER_MCF_FILE_WHOLE, bytes, len, err);
}

static coffer_status walk(coffer__mcf_pack *pack, const char *folder, const char *prefix, int depth,
                          coffer_error *err);

static coffer_status take_entry(coffer__mcf_pack *pack, const char *folder, const char *prefix,
                                const char *entry, bool is_link, int depth, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT, name = COFFER__BUFFER_INIT;
    struct stat st;
    coffer_status status = COFFER_OK;
    if (!coffer__buffer_printf(&path, "%s/%s", folder, entry) ||
        !coffer__buffer_printf(&name, "%s%s", prefix, entry)) {
        status = coffer__fail_no_memory(err, strlen(folder) + strlen(entry));
        goto out;
    }
    const char *shown = coffer__buffer_text(&name);
    if (coffer__os_stat(coffer__buffer_text(&path), &st) != 0) {
        pack->found++;
        status = leave_out(pack, shown, 0, unexamined, err);
    } else if (S_ISREG(st.st_mode)) {
        status = take_file(pack, coffer__buffer_text(&path), shown, &st, err);
    } else if (!S_ISDIR(st.st_mode)) {
        pack->found++;
        status = leave_out(pack, shown, 0, "it is not a regular file", err);
    } else if (entry[0] == '.' || is_link || depth == 0) {
        pack->found++;
        status = leave_out(pack, shown, 0,
                           entry[0] == '.' ? "it is a hidden folder"
                           : is_link       ? "it is a link to a folder"
                                           : "the folder is nested too deeply",
                           err);
    } else if (coffer__buffer_printf(&name, "/")) {
        status = walk(pack, coffer__buffer_text(&path), coffer__buffer_text(&name), depth - 1, err);
    } else {
        status = coffer__fail_no_memory(err, name.len);
    }
out:
    coffer__buffer_free(&path);
    coffer__buffer_free(&name);
    return status;
}

typedef struct folder_entry {
    char *name;
    bool is_link;
} folder_entry;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const folder_entry *)a)->name, ((const folder_entry *)b)->name);
}

static coffer_status list_folder(folder_entry **out, size_t *count, void *folder, coffer_error *err)
{
    size_t capacity = 0;
    unsigned char type;
    const char *name;
    coffer_status status = COFFER_OK;
    while (!status && (name = coffer__os_next_name(folder, &type))) {
        struct stat st;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        status = coffer__array_reserve_one(out, &capacity, *count, sizeof **out, err);
        char *copy = status ? NULL : coffer__strdup(name);
        if (!status && !copy)
            status = coffer__fail_no_memory(err, strlen(name));
        if (!status)
            (*out)[(*count)++] =
                (folder_entry){ copy, coffer__os_stat_in(folder, copy, &st) == 0 && S_ISLNK(st.st_mode) };
    }
    if (!status && *count > 1)
        qsort(*out, *count, sizeof **out, by_name);
    return status;
}

static coffer_status walk(coffer__mcf_pack *pack, const char *folder, const char *prefix, int depth,
                          coffer_error *err)
{
    folder_entry *entries = NULL;
    size_t count = 0;
    void *open = coffer__os_open_folder(folder);
    if (!open) {
        pack->found++;
        return leave_out(pack, *prefix ? prefix : folder, 0, closed, err);
    }
    coffer_status status = list_folder(&entries, &count, open, err);
    coffer__os_close_folder(open);
    for (size_t i = 0; i < count; i++) {
        if (!status)
            status = take_entry(pack, folder, prefix, entries[i].name, entries[i].is_link, depth, err);
        coffer__free(entries[i].name);
    }
    coffer__free(entries);
    return status;
}

coffer_status coffer__mcf_pack_folder(coffer__mcf_pack *pack, const char *folder, coffer_error *err)
{
    /* The folder itself may be a link; one whose parents cannot be read has no real path. */
    char *real = coffer__os_real_path(folder);
    coffer_status status = walk(pack, real ? real : folder, "", MAX_DEPTH, err);
    free(real);
    return status;
}

/* ---- A model that is packed again ---- */

coffer_status coffer__mcf_pack_take_files(coffer__mcf_pack *pack, const coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_file *files = NULL;
    size_t count = 0;
    coffer_status status = coffer_mcf_get_files(&files, &count, model, err);
    for (size_t i = 0; !status && i < count; i++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        status = coffer_mcf_read_file(&bytes, &len, model, files[i].name, err);
        if (!status)
            status = coffer__mcf_pack_add_file(pack, files[i].name, files[i].kind, bytes, len, err);
    }
    return status;
}

/* ---- Output ---- */

coffer_status coffer__mcf_pack_write_files(coffer_mcf_writer *writer, const coffer__mcf_pack *pack,
                                           coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < pack->file_count; i++)
        status = coffer_mcf_writer_add_file(writer, pack->files[i].name, pack->files[i].kind,
                                            pack->files[i].bytes, pack->files[i].len, err);
    return status;
}

void coffer__mcf_pack_report(coffer_node *out, const coffer__mcf_pack *pack)
{
    coffer_node *files = coffer_node_add_map(out, "files");
    coffer_node_add_u64(files, "found", pack->found, COFFER_UNIT_NONE);
    coffer_node_add_u64(files, "packed", pack->packed, COFFER_UNIT_NONE);
    coffer_node *list = coffer_node_add_list(files, "left_out");
    for (size_t i = 0; i < pack->left_out_count; i++) {
        coffer_node *entry = coffer_node_add_map(list, NULL);
        coffer_node_add_text(entry, "name", pack->left_out[i].name);
        coffer_node_add_u64(entry, "size", pack->left_out[i].size, COFFER_UNIT_BYTES);
        coffer_node_add_text(entry, "reason", pack->left_out[i].reason);
    }
    coffer_node_add_bool(files, "complete", !pack->incomplete);
}
