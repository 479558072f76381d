/* Asks the program of HDF5 files everything about a file, through the table that the library uses. */
#ifndef COFFER_FUZZ_HDF5_INPUT_H
#define COFFER_FUZZ_HDF5_INPUT_H

#include "coffer/coffer.h"
#include "must.h"
#include "outside/arrays/hdf5.h"

#include <string.h>

enum { HDF5_NAMES = 4, HDF5_VALUES = 1 << 16 };

typedef struct hdf5_names {
    char at[HDF5_NAMES][200];
    size_t count;
} hdf5_names;

static void hdf5_keep_name(void *context, const char *name, bool is_matrix)
{
    hdf5_names *names = context;
    (void)is_matrix;
    MUST(name[0] != 0);
    if (names->count < HDF5_NAMES && strlen(name) < sizeof names->at[0])
        strcpy(names->at[names->count++], name);
}

static coffer_status hdf5_look_at(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    (void)context, (void)err;
    MUST(attribute->name[0] != 0);
    MUST(attribute->kind != COFFER__HDF5_TEXT || strlen(attribute->text) == attribute->len);
    return COFFER_OK;
}

static void hdf5_read_some(coffer__hdf5 *file, const coffer__hdf5_dataset *dataset)
{
    static uint8_t values[HDF5_VALUES];
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { 0 }, count[COFFER__HDF5_MAX_DIMENSIONS];
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t left = HDF5_VALUES / 16;
    if (coffer_dtype_size(dataset->dtype) == 0)
        return;
    for (int i = 0; i < dataset->dimensions; i++) {
        count[i] = dataset->extent[i] < left ? dataset->extent[i] : left;
        left = count[i] ? left / count[i] : left;
    }
    coffer_status status = coffer__hdf5_remote.read_block(values, file, dataset->dtype, start, count, &err);
    MUST(!status || err.text[0] != 0);
}

static void hdf5_read_all(const coffer__hdf5_bytes *bytes)
{
    const coffer__hdf5_module *hdf5 = &coffer__hdf5_remote;
    hdf5_names names = { .count = 0 };
    coffer__hdf5 *file = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = hdf5->open(&file, bytes, &err);
    if (status) {
        MUST(err.text[0] != 0 && status != COFFER_E_UNSUPPORTED);
        return;
    }
    if (!hdf5->list(file, hdf5_keep_name, &names, &err) && names.count == 0)
        strcpy(names.at[names.count++], "data");
    for (size_t i = 0; i < names.count; i++) {
        coffer__hdf5_dataset dataset;
        if (hdf5->choose(file, names.at[i], &err))
            continue;
        coffer_status ignored = hdf5->attributes(file, NULL, hdf5_look_at, NULL, &err);
        (void)ignored;
        if (!hdf5->describe(&dataset, file, &err))
            hdf5_read_some(file, &dataset);
    }
    coffer_status closed = hdf5->close(file, NULL);
    MUST(closed == COFFER_OK);
}

#endif
