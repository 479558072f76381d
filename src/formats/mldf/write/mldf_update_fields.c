/* Dropping and renaming fields: the set is written again and takes the name of the old one. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "coffer/mldf_select.h"
#include "formats/mldf/write/mldf_write.h"
#include "io/inputs.h"

#include <string.h>

typedef struct field_change {
    const size_t *dropped;
    size_t dropped_count;
    size_t renamed; /* SIZE_MAX = none */
    const char *name;
} field_change;

static bool is_dropped(const field_change *change, size_t field)
{
    for (size_t i = 0; i < change->dropped_count; i++)
        if (change->dropped[i] == field)
            return true;
    return false;
}

static coffer_status check_change(const field_change *change, const coffer_mldf *set, coffer_error *err)
{
    for (size_t i = 0; i < change->dropped_count; i++)
        if (change->dropped[i] >= set->schema.count)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "field %zu requested, the set has %zu", change->dropped[i],
                                set->schema.count);
    if (change->renamed != SIZE_MAX && change->renamed >= set->schema.count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu requested, the set has %zu", change->renamed, set->schema.count);
    return COFFER_OK;
}

static coffer_status rewrite(const char *path, const coffer_mldf *set, const field_change *change,
                             const coffer_mldf_update_opts *options, coffer_error *err)
{
    coffer_mldf_extract_opts extract = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_writer_opts write = coffer__mldf_settings_of(set);
    size_t kept = 0, count = set->schema.count;
    size_t *fields = coffer__alloc_array(count + 1, sizeof *fields);
    const char **names = coffer__alloc_array(count + 1, sizeof *names);
    coffer_status status = COFFER_OK;
    if (!fields || !names) {
        status = coffer__fail_no_memory(err, count * sizeof *fields);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_dropped(change, i))
            continue;
        fields[kept] = i;
        names[kept++] = i == change->renamed ? change->name : set->schema.fields[i].name;
    }
    if (kept == 0 && set->header.samples > 0) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "no field would be left; a sample needs at least one");
        goto out;
    }
    write.overwrite = true;
    write.key = options->key;
    write.threads = options->threads;
    write.limits = options->limits;
    extract.fields = fields;
    extract.field_count = kept;
    extract.names = names;
    extract.write = &write;
    extract.progress = options->progress;
    status = coffer_mldf_extract(path, set, &extract, err);
out:
    coffer__free(fields);
    coffer__free(names);
    return status;
}

static coffer_status apply(const char *path, const field_change *change, const coffer_mldf_update_opts *opts,
                           coffer_error *err)
{
    coffer_mldf_update_opts options = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_mldf_open_opts open = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mldf *set = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    open.key = options.key;
    open.limits = options.limits;
    open.verify = true;
    /* The lock keeps writers out until the new file has the name. */
    if (!status)
        status = coffer__update_open(&update, path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&set, coffer__update_source(update), &open, err);
    if (!status)
        status = check_change(change, set, err);
    if (!status) {
        coffer__inputs_allow(path); /* it is rewritten in place */
        status = rewrite(path, set, change, &options, err);
    }
    coffer_mldf_close(set);
    coffer__update_close(update);
    return status;
}

coffer_status coffer_mldf_update_drop_fields(const char *path, const size_t *fields, size_t count,
                                             const coffer_mldf_update_opts *opts, coffer_error *err)
{
    const field_change change = { fields, count, SIZE_MAX, NULL };
    return count ? apply(path, &change, opts, err) : COFFER_OK;
}

coffer_status coffer_mldf_update_rename_field(const char *path, size_t field, const char *name,
                                              const coffer_mldf_update_opts *opts, coffer_error *err)
{
    const field_change change = { NULL, 0, field, name };
    return apply(path, &change, opts, err);
}
