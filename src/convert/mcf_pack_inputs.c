/* What is packed: the tensors of a folder or a file, and the files beside them that become sections. */
#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/mcf_pack.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char template_name[] = "chat_template.jinja";

/* In the order in which they are written. */
static const uint32_t section_types[] = {
    COFFER_MCF_CONFIG,    COFFER_MCF_GENERATION_CONFIG,
    COFFER_MCF_TOKENIZER, COFFER_MCF_TOKENIZER_CONFIG,
    COFFER_MCF_VOCAB,     COFFER_MCF_MERGES,
};

#define SECTION_COUNT (sizeof section_types / sizeof *section_types)

static coffer_status read_file(uint8_t **out, size_t *len, const char *path, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    opts.access = COFFER_ACCESS_READ;
    coffer_status status = coffer_source_open(&src, path, &opts, err);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    uint8_t *bytes = NULL;
    if (size > limits->json_bytes)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "%s has %" PRIu64 " bytes, more than %" PRIu64, path, size, limits->json_bytes);
    else if (!(bytes = coffer__malloc((size_t)size + 1)))
        status = coffer__fail_no_memory(err, size);
    else
        status = coffer_source_read_at(bytes, src, 0, (size_t)size, err);
    coffer_source_close(src);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    bytes[size] = 0;
    *out = bytes;
    *len = (size_t)size;
    return COFFER_OK;
}

static coffer_status fail_twice(const char *first, const char *second, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "two files for one section: %s and %s",
                        first, second);
}

static coffer_status add_resource(coffer__mcf_pack *pack, uint32_t type, const char *path, coffer_error *err)
{
    for (size_t i = 0; i < pack->resource_count; i++) {
        if (pack->resources[i].type == type)
            return fail_twice(pack->resources[i].path, path, err);
    }
    coffer_status status = coffer__array_reserve_one(&pack->resources, &pack->resource_capacity,
                                                     pack->resource_count, sizeof *pack->resources, err);
    if (status)
        return status;
    coffer__mcf_resource *resource = &pack->resources[pack->resource_count];
    *resource = (coffer__mcf_resource){ .type = type, .path = coffer__strdup(path) };
    if (!resource->path)
        return coffer__fail_no_memory(err, strlen(path) + 1);
    pack->resource_count++;
    return read_file(&resource->bytes, &resource->len, path, &pack->limits, err);
}

static coffer_status add_template(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    uint8_t *bytes = NULL;
    if (pack->chat_template)
        return fail_twice(pack->chat_template_path, path, err);
    pack->chat_template_path = coffer__strdup(path);
    if (!pack->chat_template_path)
        return coffer__fail_no_memory(err, strlen(path) + 1);
    coffer_status status = read_file(&bytes, &pack->chat_template_len, path, &pack->limits, err);
    pack->chat_template = (char *)bytes;
    return status;
}

/* A file of a known name; *taken is false when the name is another. */
static coffer_status add_named(bool *taken, coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    const char *name = path + coffer__file_folder_len(path);
    *taken = true;
    if (strcmp(name, template_name) == 0)
        return add_template(pack, path, err);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (strcmp(name, coffer_mcf_section_name(section_types[i])) == 0)
            return add_resource(pack, section_types[i], path, err);
    }
    *taken = false;
    return COFFER_OK;
}

static coffer_status add_if_there(coffer__mcf_pack *pack, const char *folder, const char *name,
                                  coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    struct stat st;
    bool taken;
    if (!coffer__buffer_printf(&path, "%s/%s", folder, name))
        status = coffer__fail_no_memory(err, strlen(folder));
    else if (coffer__os_stat(coffer__buffer_text(&path), &st) == 0)
        status = add_named(&taken, pack, coffer__buffer_text(&path), err);
    else if (errno != ENOENT)
        status = coffer__fail_errno(err, "cannot examine", coffer__buffer_text(&path), errno);
    coffer__buffer_free(&path);
    return status;
}

static coffer_status add_folder(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < SECTION_COUNT; i++)
        status = add_if_there(pack, path, coffer_mcf_section_name(section_types[i]), err);
    return status ? status : add_if_there(pack, path, template_name, err);
}

coffer_status coffer__mcf_pack_add_input(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    coffer_tensors_opts opts = COFFER_TENSORS_OPTS_INIT;
    coffer_tensors *set = NULL;
    struct stat st;
    bool taken = false;
    coffer_status status = COFFER_OK;
    bool is_folder = coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_folder)
        status = add_named(&taken, pack, path, err);
    if (status || taken)
        return status;
    opts.limits = &pack->limits;
    /* Pages of a mapping would count as memory of ours. */
    opts.access = COFFER_ACCESS_READ;
    status = coffer_tensors_open(&set, path, &opts, err);
    if (!status)
        status = coffer__mcf_pack_add_set(pack, set, err);
    if (!status && !pack->info.model_name)
        status = coffer__mcf_pack_name(pack, path, is_folder, err);
    return !status && is_folder ? add_folder(pack, path, err) : status;
}
