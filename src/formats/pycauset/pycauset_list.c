/* Lists metadata, its generations and the children of a block matrix.
 */
#include "formats/pycauset/pycauset_private.h"

#include "base/fail.h"
#include "base/report.h"
#include "base/text.h"

static const char *const kind_names[] = {
    "", "bool", "i64", "u64", "f64", "string", "bytes", "array", "map"
};

static bool matches(const char *glob, const char *text, size_t len)
{
    return !glob || coffer__glob_match(glob, text, len);
}

/* One entry for each value that is not a map, by its path. */
static void list_values(coffer_node *entries, const coffer_pycauset_value *map, coffer__buffer *path,
                        const char *glob)
{
    for (size_t i = 0; i < map->count; i++) {
        const coffer_pycauset_value *value = &map->as.children[i];
        size_t back = coffer__pycauset_push_key(path, value);
        const char *text = coffer__buffer_text(path);
        if (value->kind == COFFER_PYCAUSET_MAP && value->count > 0) {
            list_values(entries, value, path, glob);
        } else if (matches(glob, text, path->len)) {
            coffer_node *entry = coffer_node_add_map(entries, NULL);
            coffer_node_add_text_len(entry, "path", text, path->len);
            coffer_node_add_text(entry, "kind", kind_names[value->kind]);
            coffer__pycauset_to_node(entry, "value", value);
        }
        path->len = back;
    }
}

static coffer_status list_metadata(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                   coffer_error *err)
{
    coffer_pycauset_open_opts open_options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_pycauset *matrix = NULL;
    open_options.limits = opts->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &open_options, err);
    if (status)
        return status;
    list_values(entries, matrix->metadata.root, &path, opts->glob);
    if (path.failed)
        status = coffer__fail_no_memory(err, path.len);
    coffer__buffer_free(&path);
    coffer_pycauset_close(matrix);
    return status;
}

static coffer_status list_generations(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                      coffer_error *err)
{
    coffer_pycauset_history_opts history_opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    history_opts.limits = opts->limits;
    coffer_pycauset_history *history = NULL;
    coffer_status status = coffer_pycauset_history_open(&history, src, &history_opts, err);
    if (status)
        return status;
    for (size_t i = 0; i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *facts = coffer_pycauset_history_at(history, i);
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "generation", facts->generation, COFFER_UNIT_NONE);
        coffer_node_add_bool(entry, "committed", facts->committed);
        coffer_node_add_bool(entry, "active", facts->active);
        coffer_node_add_u64(entry, "offset", facts->offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "length", facts->length, COFFER_UNIT_BYTES);
        coffer_node_add_text(entry, "date", facts->date);
    }
    coffer_pycauset_history_close(history);
    return COFFER_OK;
}

static void list_block_row(coffer_node *entries, const coffer_pycauset_value *row, size_t index,
                           const char *glob)
{
    for (size_t i = 0; i < coffer_pycauset_value_count(row); i++) {
        const coffer_pycauset_value *child = coffer_pycauset_value_at(row, i);
        size_t len;
        const char *name = coffer_pycauset_value_text(coffer__pycauset_get_key(child, "path"), &len);
        if (!matches(glob, name ? name : "", len))
            continue;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "block_row", index, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "block_col", i, COFFER_UNIT_NONE);
        coffer__pycauset_to_node(entry, "path", coffer__pycauset_get_key(child, "path"));
        coffer__pycauset_to_node(entry, "payload_uuid", coffer__pycauset_get_key(child, "payload_uuid"));
    }
}

static coffer_status list_blocks(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    coffer_pycauset_open_opts open_options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    open_options.limits = opts->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &open_options, err);
    if (status)
        return status;
    const coffer_pycauset_value *rows =
        coffer_pycauset_value_find(matrix->metadata.root, "block_manifest.children");
    for (size_t i = 0; i < coffer_pycauset_value_count(rows); i++)
        list_block_row(entries, coffer_pycauset_value_at(rows, i), i, opts->glob);
    coffer_pycauset_close(matrix);
    return COFFER_OK;
}

coffer_status coffer__pycauset_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                    coffer_error *err)
{
    static const struct {
        const char *name;
        coffer_status (*list)(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                              coffer_error *err);
    } lists[] = { { "metadata", list_metadata },
                  { "generations", list_generations },
                  { "blocks", list_blocks } };
    const char *what = opts->what ? opts->what : "metadata";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(what, lists[i].name) != 0)
            continue;
        coffer_status status = lists[i].list(coffer_node_add_list(out, "entries"), src, opts, err);
        return status ? status : coffer_node_status(out, err);
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "a matrix lists metadata, generations or blocks, not \"%s\"", what);
}
