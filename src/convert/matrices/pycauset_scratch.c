/* Array files of other programs as matrices for a moment: a conversion to pycauset in a temporary file, which
 * every reader of matrices can use. So any array can be shown, compared and written as any other. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/convert.h"
#include "io/file.h"
#include "io/os.h"
#include "io/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef coffer_status conversion_run(const coffer__convert_job *job, coffer_error *err);

static const struct importer {
    const char *kind;
    conversion_run *run;
    const coffer_convert_option *options;
} importers[] = {
    { "npy", coffer__pycauset_from_npy, coffer__pycauset_from_npy_options },
    { "npz", coffer__pycauset_from_npz, coffer__pycauset_from_npz_options },
    { "mtx", coffer__pycauset_from_mtx, coffer__pycauset_from_mtx_options },
    { "hdf5", coffer__pycauset_from_hdf5, coffer__pycauset_from_hdf5_options },
    { "csv", coffer__pycauset_from_csv, coffer__pycauset_from_csv_options },
};

static const struct exporter {
    const char *kind;
    conversion_run *run;
} exporters[] = {
    { "npy", coffer__pycauset_to_npy },   { "mtx", coffer__pycauset_to_mtx },
    { "hdf5", coffer__pycauset_to_hdf5 }, { "csv", coffer__pycauset_to_csv },
    { "raw", coffer__pycauset_to_raw },
};

static const struct importer *find_importer(const char *kind)
{
    for (size_t i = 0; i < sizeof importers / sizeof importers[0]; i++) {
        if (strcmp(importers[i].kind, kind) == 0)
            return &importers[i];
    }
    return NULL;
}

/* A new file in the folder for temporary ones, which a signal handler would remove. */
static coffer_status make_name(char **out, coffer_error *err)
{
    static const char name[] = "/matrix.pycauset";
    const char *folder = getenv("TMPDIR");
    int fd = -1;
    if (!folder || !*folder)
        folder = "/tmp";
    size_t size = strlen(folder) + sizeof name;
    char *path = coffer__malloc(size);
    if (!path)
        return coffer__fail_no_memory(err, size);
    snprintf(path, size, "%s%s", folder, name);
    coffer_status status = coffer__temporary_create(&fd, out, path, err);
    coffer__file_close(fd);
    coffer__free(path);
    return status;
}

/* The file loses its name as soon as it is open. */
static coffer_status import(coffer_source **out, const struct importer *importer,
                            const coffer__convert_job *given, coffer_error *err)
{
    char *path = NULL;
    coffer__convert_job job = *given;
    coffer_status status = make_name(&path, err);
    if (status)
        return status;
    job.out_path = path;
    job.to = "pycauset";
    job.overwrite = job.is_scratch = true;
    status = importer->run(&job, err);
    if (!status)
        status = coffer_source_open(out, path, NULL, err);
    coffer__os_unlink(path);
    coffer__temporary_forget(path);
    coffer__free(path);
    return status;
}

coffer_status coffer_convert_to_matrix(coffer_source **out, coffer_source *in,
                                       const coffer_convert_opts *opts, coffer_error *err)
{
    coffer_convert_opts options = COFFER_CONVERT_OPTS_INIT;
    const char *kind = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status && !(kind = options.from))
        status = coffer_convert_kind(&kind, in, err);
    if (status)
        return status;
    const struct importer *importer = find_importer(kind);
    if (!importer)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a file of the kind %s has no matrix", kind);
    coffer__convert_job job = { .in = in,
                                .from = kind,
                                .settings = options.settings,
                                .setting_count = options.setting_count,
                                .limits = coffer__limits(options.limits),
                                .progress = options.progress,
                                .notes = options.notes };
    return import(out, importer, &job, err);
}

/* ---- From one kind of array file to another ---- */

/* Settings of the input; all others are for the output. */
static bool is_for_input(const char *name, const struct importer *importer)
{
    static const char *const names[] = {
        "member", "dataset", "slice", "dense", "delimiter", "header", "type"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (const coffer_convert_option *option = importer->options;
             strcmp(names[i], name) == 0 && option->name; option++) {
            if (strcmp(option->name, name) == 0)
                return true;
        }
    }
    return false;
}

coffer_status coffer__array_to_array(const coffer__convert_job *job, coffer_error *err)
{
    const struct importer *importer = find_importer(job->from);
    const struct exporter *exporter = NULL;
    coffer_source *matrix = NULL;
    for (size_t i = 0; i < sizeof exporters / sizeof exporters[0]; i++) {
        if (strcmp(exporters[i].kind, job->to) == 0)
            exporter = &exporters[i];
    }
    coffer_setting *settings = coffer__alloc_array(2 * job->setting_count + 1, sizeof *settings);
    if (!importer || !exporter || !settings) {
        coffer__free(settings);
        return coffer__fail_no_memory(err, 2 * job->setting_count * sizeof *settings);
    }
    coffer__convert_job in = *job, through = *job;
    in.settings = settings;
    through.settings = settings + job->setting_count + 1;
    in.setting_count = through.setting_count = 0;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (is_for_input(job->settings[i].name, importer))
            settings[in.setting_count++] = job->settings[i];
        else
            settings[job->setting_count + 1 + through.setting_count++] = job->settings[i];
    }
    coffer_status status = import(&matrix, importer, &in, err);
    if (!status) {
        through.in = matrix;
        status = exporter->run(&through, err);
    }
    coffer_source_close(matrix);
    coffer__free(settings);
    return status;
}
