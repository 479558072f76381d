#include "outside/arrays/npz.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

static const char extension[] = ".npy";
#define EXTENSION_LEN (sizeof extension - 1)

static bool is_array(const coffer__zip_member *member)
{
    size_t len = strlen(member->name);
    return len > EXTENSION_LEN && strcmp(member->name + len - EXTENSION_LEN, extension) == 0;
}

/* Counts the arrays and the bytes of their names. */
static void count_arrays(size_t *count, size_t *name_bytes, const coffer__zip *zip)
{
    *count = *name_bytes = 0;
    for (size_t i = 0; i < coffer__zip_count(zip); i++) {
        const coffer__zip_member *member = coffer__zip_at(zip, i);
        if (!is_array(member))
            continue;
        ++*count;
        *name_bytes += strlen(member->name) - EXTENSION_LEN + 1;
    }
}

static coffer_status read_header(coffer__npz_array *array, const coffer__zip *zip, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_error inner = COFFER_ERROR_INIT;
    coffer_status status = coffer__zip_source(&src, zip, array->member, COFFER__ZIP_FORWARD, &inner);
    if (!status)
        status = coffer__npy_read(&array->npy, src, &inner);
    coffer_source_close(src);
    /* Offsets inside a member are not offsets in the file. */
    if (status)
        coffer__fail(err, status, coffer__zip_at(zip, array->member)->offset, "%s: %s", array->name,
                     inner.text);
    return status;
}

static coffer_status read_arrays(coffer__npz *npz, coffer_error *err)
{
    size_t count, name_bytes;
    coffer_status status = COFFER_OK;
    count_arrays(&count, &name_bytes, npz->zip);
    npz->arrays = coffer__calloc(count + 1, sizeof *npz->arrays);
    npz->names = coffer__malloc(name_bytes);
    if (!npz->arrays || !npz->names)
        return coffer__fail_no_memory(err, count * sizeof *npz->arrays + name_bytes);
    char *name = npz->names;
    for (size_t i = 0; !status && i < coffer__zip_count(npz->zip); i++) {
        const coffer__zip_member *member = coffer__zip_at(npz->zip, i);
        if (!is_array(member))
            continue;
        size_t len = strlen(member->name) - EXTENSION_LEN;
        coffer__npz_array *array = &npz->arrays[npz->count];
        memcpy(name, member->name, len);
        name[len] = '\0';
        array->name = name;
        array->member = i;
        name += len + 1;
        status = read_header(array, npz->zip, err);
        if (!status)
            npz->count++;
    }
    return status;
}

coffer_status coffer__npz_open(coffer__npz *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer__npz npz = { 0 };
    coffer_status status = coffer__zip_open(&npz.zip, src, limits, err);
    if (!status)
        status = read_arrays(&npz, err);
    if (status) {
        coffer__npz_close(&npz);
        return status;
    }
    *out = npz;
    return COFFER_OK;
}

void coffer__npz_close(coffer__npz *npz)
{
    for (size_t i = 0; i < npz->count; i++)
        coffer__npy_free(&npz->arrays[i].npy);
    coffer__free(npz->arrays);
    coffer__free(npz->names);
    coffer__zip_close(npz->zip);
    *npz = (coffer__npz){ 0 };
}

size_t coffer__npz_find(const coffer__npz *npz, const char *name)
{
    for (size_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->arrays[i].name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

coffer_status coffer__npz_source(coffer_source **out, const coffer__npz *npz, size_t index,
                                 coffer__zip_access access, coffer_error *err)
{
    return coffer__zip_source(out, npz->zip, npz->arrays[index].member, access, err);
}

uint64_t coffer__npz_plain_offset(const coffer__npz *npz, size_t index)
{
    const coffer__npz_array *array = &npz->arrays[index];
    const coffer__zip_member *member = coffer__zip_at(npz->zip, array->member);
    if (member->method != COFFER__ZIP_STORED || member->encrypted)
        return COFFER_OFFSET_NONE;
    return member->offset + array->npy.data_offset;
}
