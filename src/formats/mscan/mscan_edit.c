/* Changing metadata in place. The editor is a writer that appends nothing. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEEPEST 16 /* parts of a key */

struct coffer_mscan_editor {
    coffer_mscan_writer *writer;
    coffer_limits limits;
};

COFFER__INIT_FUNCTION(coffer_mscan_editor_opts, COFFER_MSCAN_EDITOR_OPTS_INIT)

coffer_status coffer_mscan_editor_open(coffer_mscan_editor **out, const char *path,
                                       const coffer_mscan_editor_opts *opts, coffer_error *err)
{
    coffer_mscan_editor_opts options = COFFER_MSCAN_EDITOR_OPTS_INIT;
    coffer_mscan_writer_opts settings = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_mscan_editor *editor = coffer__calloc(1, sizeof *editor);
    if (!editor)
        return coffer__fail_no_memory(err, sizeof *editor);
    editor->limits = coffer__limits(options.limits);
    settings.limits = options.limits;
    status = coffer_mscan_writer_append_to(&editor->writer, path, &settings, err);
    if (status) {
        coffer__free(editor);
        return status;
    }
    *out = editor;
    return COFFER_OK;
}

const char *coffer_mscan_editor_metadata(const coffer_mscan_editor *editor, size_t *len)
{
    if (len)
        *len = editor->writer->base.text_len;
    return editor->writer->base.text;
}

/* ---- Keys ---- */

/* Where a value is: the members and elements that lead to it. */
typedef struct place {
    const coffer__json_value *parents[DEEPEST]; /* root first */
    const coffer__json_value *found;            /* NULL: the last parent does not have it */
    size_t depth;
    const char *rest; /* of the key, when it was not found: the name of a new member */
} place;

static coffer_status find_place(place *out, const coffer__mscan_metadata *metadata, const char *key,
                                coffer_error *err)
{
    const coffer__json_value *value = metadata->root;
    const char *path = key;
    *out = (place){ 0 };
    while (*path && out->depth < DEEPEST) {
        out->parents[out->depth++] = value;
        const coffer__json_value *next = coffer__json_step(value, &path);
        if (!next)
            break;
        value = next;
        out->found = *path ? NULL : value;
    }
    out->rest = path;
    const coffer__json_value *last = out->depth ? out->parents[out->depth - 1] : NULL;
    if (out->found || (last && last->kind == COFFER__JSON_OBJECT && *path && !strchr(path, '.')))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the metadata has no \"%s\"", key);
}

static bool begins_with(const char *key, const char *prefix)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *key, const char *suffix)
{
    size_t len = strlen(key), part = strlen(suffix);
    return len >= part && strcmp(key + len - part, suffix) == 0;
}

/* Keys whose values follow from the records, or would change what records mean. */
static coffer_status refuse_key(const char *key, bool removes, coffer_error *err)
{
    static const char *const of_sequences[] = { ".sequence_id", ".num_tokens", ".first_record",
                                                ".num_records", ".crc32" };
    bool refused = begins_with(key, COFFER__MSCAN_SUMS_KEY) || strcmp(key, COFFER__MSCAN_SEAL_KEY) == 0 ||
                   strcmp(key, "sequences") == 0 || strcmp(key, "id_to_param_name_map") == 0 || !*key;
    for (size_t i = 0; begins_with(key, "sequences.") && i < sizeof of_sequences / sizeof *of_sequences; i++)
        refused |= ends_with(key, of_sequences[i]);
    /* A whole entry: "sequences.3". */
    refused |= begins_with(key, "sequences.") && !strchr(key + strlen("sequences."), '.');
    if (removes)
        refused |= begins_with(key, "id_to_param_name_map.");
    else
        refused |= begins_with(key, COFFER__MSCAN_DAMAGE_KEY);
    if (!refused)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "\"%s\" follows from the records and cannot be %s", key, removes ? "removed" : "set");
}

/* ---- New metadata ---- */

typedef struct change {
    const place *where;
    const coffer__json_value *value; /* NULL removes */
} change;

static void write_changed(coffer__json_writer *json, const coffer__json_value *old, const change *what,
                          size_t depth);

/* One member or element: the one that changes, or one that leads to it, or a copy. */
static void write_child(coffer__json_writer *json, const coffer__json_value *child, const change *what,
                        size_t depth)
{
    const place *where = what->where;
    if (child == where->found)
        coffer__json_write_value(json, what->value);
    else if (depth + 1 < where->depth && child == where->parents[depth + 1])
        write_changed(json, child, what, depth + 1);
    else
        coffer__json_write_value(json, child);
}

static void write_changed(coffer__json_writer *json, const coffer__json_value *old, const change *what,
                          size_t depth)
{
    const place *where = what->where;
    bool is_object = old->kind == COFFER__JSON_OBJECT;
    bool is_last = depth + 1 == where->depth;
    if (is_object)
        coffer__json_open_object(json);
    else
        coffer__json_open_array(json);
    for (const coffer__json_value *child = coffer__json_first(old); child;
         child = coffer__json_next(old, child)) {
        if (child == where->found && !what->value)
            continue;
        if (is_object)
            coffer__json_key_len(json, child->key, child->key_len);
        write_child(json, child, what, depth);
    }
    if (is_last && !where->found && what->value) {
        coffer__json_key(json, where->rest);
        coffer__json_write_value(json, what->value);
    }
    if (is_object)
        coffer__json_close_object(json);
    else
        coffer__json_close_array(json);
}

/* Loads the changed text in place of the old metadata, unless it is not that of a scan any more. */
static coffer_status replace_metadata(coffer_mscan_editor *editor, coffer__buffer *text, coffer_error *err)
{
    coffer_mscan_writer *writer = editor->writer;
    coffer__mscan_metadata changed;
    coffer__id_names names;
    size_t len = text->len, with_nul;
    coffer__buffer_append(text, "", 1);
    if (text->failed)
        return coffer__fail_no_memory(err, len);
    char *released = (char *)coffer__buffer_release(text, &with_nul);
    coffer_status status = coffer__mscan_metadata_load(&changed, released, len, COFFER__MSCAN_HEADER_SIZE,
                                                       &editor->limits, NULL, err);
    if (status)
        return status;
    status = coffer__mscan_names_init(&names, &changed, err);
    if (status) {
        coffer__id_names_free(&names);
        coffer__mscan_metadata_free(&changed);
        return status;
    }
    coffer__id_names_free(&writer->names);
    coffer__mscan_metadata_free(&writer->base);
    writer->names = names;
    writer->base = changed;
    writer->edited = true;
    return COFFER_OK;
}

static coffer_status apply(coffer_mscan_editor *editor, const char *key, const coffer__json_value *value,
                           coffer_error *err)
{
    char long_key[512];
    place where;
    if (begins_with(key, "params.")) {
        snprintf(long_key, sizeof long_key, "id_to_param_name_map.%s", key + strlen("params."));
        key = long_key;
    }
    coffer_status status = coffer__sticky_check(&editor->writer->sticky, err);
    if (!status)
        status = refuse_key(key, !value, err);
    if (!status)
        status = find_place(&where, &editor->writer->base, key, err);
    if (!status && !value && !where.found)
        status = coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the metadata has no \"%s\"", key);
    if (status)
        return status;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    coffer__json_writer_init(&json, &text, 0);
    write_changed(&json, editor->writer->base.root, &(change){ &where, value }, 0);
    status = replace_metadata(editor, &text, err);
    coffer__buffer_free(&text);
    return status;
}

coffer_status coffer_mscan_editor_set(coffer_mscan_editor *editor, const char *key, const char *json,
                                      coffer_error *err)
{
    coffer__json *parsed = NULL;
    coffer_status status = coffer__json_parse(&parsed, json, strlen(json), 0, &editor->limits, err);
    if (!status)
        status = apply(editor, key, coffer__json_root(parsed), err);
    coffer__json_free(parsed);
    return status;
}

coffer_status coffer_mscan_editor_set_text(coffer_mscan_editor *editor, const char *key, const char *text,
                                           coffer_error *err)
{
    coffer__json_value value = { .kind = COFFER__JSON_STRING, .span = 1 };
    value.as.string = text;
    value.string_len = (uint32_t)strlen(text);
    return apply(editor, key, &value, err);
}

coffer_status coffer_mscan_editor_remove(coffer_mscan_editor *editor, const char *key, coffer_error *err)
{
    return apply(editor, key, NULL, err);
}

coffer_status coffer_mscan_editor_commit(coffer_mscan_editor *editor, coffer_error *err)
{
    coffer_mscan_writer *writer = editor->writer;
    if (!writer)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the editor has committed");
    editor->writer = NULL; /* commit frees it */
    return coffer_mscan_writer_commit(writer, err);
}

void coffer_mscan_editor_close(coffer_mscan_editor *editor)
{
    if (!editor)
        return;
    coffer__mscan_writer_free(editor->writer);
    coffer__free(editor);
}
