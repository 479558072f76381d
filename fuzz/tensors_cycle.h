/* Shared by the fuzz targets of model files: conversion into a model and back, and repair. */
#ifndef COFFER_FUZZ_TENSORS_CYCLE_H
#define COFFER_FUZZ_TENSORS_CYCLE_H

#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct tensors_cycle {
    const char *kind; /* also the extension of its files */
    const coffer_limits *limits;
    const coffer_setting *settings; /* of the way back */
    size_t setting_count;
    bool may_not_return; /* a model that was made may be impossible to convert back */
    /* The file has what the set has. model : it is the one in between. */
    void (*must_be_same)(const coffer_tensors *set, const char *path, bool model);
} tensors_cycle;

typedef char cycle_path[80];

static inline void cycle_name(cycle_path out, const char *part, const char *extension)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, sizeof(cycle_path), "%s/coffer-fuzz-%d%s.%s", folder, (int)getpid(), part, extension);
}

/* A conversion succeeds, or fails with words and leaves nothing behind. */
static inline coffer_status cycle_convert(const tensors_cycle *cycle, coffer_source *in, const char *to,
                                          bool back)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.overwrite = true;
    opts.limits = cycle->limits;
    opts.settings = back ? cycle->settings : NULL;
    opts.setting_count = back ? cycle->setting_count : 0;
    coffer_status status = coffer_convert(in, to, &opts, &err);
    MUST(status == COFFER_OK || (err.text[0] != 0 && access(to, F_OK) != 0));
    return status;
}

static inline void must_round_trip(const tensors_cycle *cycle, coffer_source *src, const coffer_tensors *set)
{
    coffer_source *model_src = NULL;
    cycle_path model, back;
    cycle_name(model, "", "mcf");
    cycle_name(back, "", cycle->kind);
    if (cycle_convert(cycle, src, model, false) != COFFER_OK)
        return;
    cycle->must_be_same(set, model, true);
    MUST(coffer_source_open(&model_src, model, NULL, NULL) == COFFER_OK);
    coffer_status status = cycle_convert(cycle, model_src, back, true);
    if (!status) {
        cycle->must_be_same(set, back, false);
        unlink(back);
    } else {
        MUST(cycle->may_not_return || status == COFFER_E_LIMIT);
    }
    coffer_source_close(model_src);
    unlink(model);
}

/* Whatever is saved of a damaged file is a file without damage. */
static inline void must_repair(const tensors_cycle *cycle, const uint8_t *data, size_t size)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_tensors *set = NULL;
    cycle_path in, out;
    cycle_name(in, "-in", cycle->kind);
    cycle_name(out, "-out", cycle->kind);
    FILE *file = fopen(in, "wb");
    MUST(file);
    MUST(fwrite(data, 1, size, file) == size);
    MUST(fclose(file) == 0);
    opts.overwrite = true;
    opts.limits = cycle->limits;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_tensors_repair(report, in, out, &opts, &err) == COFFER_OK) {
        MUST(coffer_tensors_open_path(&set, out, NULL, NULL) == COFFER_OK);
        coffer_tensors_close(set);
        unlink(out);
    } else {
        MUST(err.text[0] != 0 && access(out, F_OK) != 0);
    }
    coffer_report_free(report);
    unlink(in);
}

/* Opens the bytes as a set of tensors: what is of the kind is looked at and survives a round trip, what is
 * damaged is repaired. */
static inline void must_cycle(const tensors_cycle *cycle, const uint8_t *data, size_t size,
                              void (*look)(const coffer_tensors *set))
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *set = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.limits = cycle->limits;
    MUST(coffer_source_from_memory(&src, data, size, NULL) == COFFER_OK);
    if (coffer_tensors_open(&set, src, &opts, &err) != COFFER_OK) {
        MUST(err.text[0] != 0);
        must_repair(cycle, data, size);
    } else {
        look(set);
        if (strcmp(coffer_tensors_kind(set), cycle->kind) == 0)
            must_round_trip(cycle, src, set);
    }
    coffer_tensors_close(set);
    coffer_source_close(src);
}

#endif
