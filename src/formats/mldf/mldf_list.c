#include "formats/mldf/mldf_private.h"

#include "base/fail.h"
#include "base/glob.h"
#include "base/report.h"

static void put_shape(coffer_node *entry, const coffer_mldf_field *field)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    if (!info || !info->has_array || field->dtype == COFFER_DTYPE_NONE) {
        coffer__node_null(entry, "dtype");
        coffer__node_null(entry, "shape");
        return;
    }
    coffer__node_text(entry, "dtype", coffer_dtype_name(field->dtype));
    coffer_node *shape = coffer__node_list(entry, "shape");
    for (uint32_t d = 0; d < field->ndim; d++)
        coffer__node_u64(shape, NULL, field->dims[d], COFFER_UNIT_NONE);
}

static void put_field(coffer_node *entries, const coffer_mldf_field *field)
{
    coffer_node *entry = coffer__node_map(entries, NULL);
    coffer__node_text(entry, "name", field->name);
    coffer__mldf_put_type(entry, "type", field->type);
    put_shape(entry, field);
    coffer__node_bool(entry, "optional", (field->flags & COFFER_MLDF_FIELD_OPTIONAL) != 0);
    coffer__node_bool(entry, "zstd", (field->flags & COFFER_MLDF_FIELD_ZSTD) != 0);
    coffer__node_bool(entry, "encrypted", (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0);
    coffer__node_u64(entry, "dictionary", field->dictionary_size, COFFER_UNIT_BYTES);
    coffer__node_u64(entry, "row_offset", field->row_offset, COFFER_UNIT_NONE);
    coffer__node_u64(entry, "row_size", field->row_size, COFFER_UNIT_BYTES);
}

coffer_status coffer__mldf_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                coffer_error *err)
{
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    coffer_status status;
    if (opts->what && strcmp(opts->what, "fields") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a training set lists fields, not \"%s\"", opts->what);
    open_options.limits = opts->limits;
    if ((status = coffer_mldf_open(&set, src, &open_options, err)))
        return status;
    coffer_node *entries = coffer__node_list(out, "entries");
    for (size_t i = 0; i < set->schema.count; i++) {
        const coffer_mldf_field *field = &set->schema.fields[i];
        if (!opts->glob || coffer__glob_match(opts->glob, field->name, strlen(field->name)))
            put_field(entries, field);
    }
    coffer_mldf_close(set);
    return coffer__node_status(out, err);
}
