/* Lists of changes. Each change is checked here when it is added; pycauset_apply.c applies them. */
#include "formats/pycauset/pycauset_private.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"

#include <string.h>

static coffer_status new_list(coffer_pycauset_changes **out, bool system, coffer_error *err)
{
    coffer_pycauset_changes *changes = coffer__calloc(1, sizeof *changes);
    if (!changes)
        return coffer__fail_no_memory(err, sizeof *changes);
    changes->system = system;
    *out = changes;
    return COFFER_OK;
}

coffer_status coffer_pycauset_changes_new(coffer_pycauset_changes **out, coffer_error *err)
{
    return new_list(out, false, err);
}

coffer_status coffer__pycauset_system_changes_new(coffer_pycauset_changes **out, coffer_error *err)
{
    return new_list(out, true, err);
}

void coffer_pycauset_changes_free(coffer_pycauset_changes *changes)
{
    if (!changes)
        return;
    coffer__arena_free(&changes->memory);
    coffer__free(changes->items);
    coffer__free(changes->elements);
    coffer__free(changes);
}

bool coffer__pycauset_wants_checksums(const coffer_pycauset_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->items[i].kind == COFFER__PYCAUSET_SET_CHECKSUMS)
            return true;
    }
    return false;
}

/* ---- Paths ---- */

static size_t count_steps(const char *path)
{
    size_t steps = 1;
    for (; *path; path++) {
        if (path[0] == '\\' && path[1])
            path++;
        else if (*path == '.')
            steps++;
    }
    return steps;
}

/* Takes the text of one step, without its escapes, and moves *path past it and the dot. */
static coffer_status take_key(coffer__pycauset_key *out, coffer__arena *memory, const char **path,
                              const char *whole, coffer_error *err)
{
    const char *at = *path, *end = at;
    size_t len = 0;
    while (*end && *end != '.')
        end += end[0] == '\\' && end[1] ? 2 : 1;
    char *text = coffer__arena_text(memory, at, (size_t)(end - at));
    if (!text)
        return coffer__fail_no_memory(err, (uint64_t)(end - at));
    for (; at < end; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        text[len++] = *at;
    }
    text[len] = '\0';
    if (len == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" has an empty key in it", whole);
    if (len > COFFER__PYCAUSET_MAX_KEY)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a key of %zu bytes, the limit is %d", len, COFFER__PYCAUSET_MAX_KEY);
    if (!coffer__utf8_valid(text, len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "the key \"%s\" is not UTF-8", text);
    *out = (coffer__pycauset_key){ text, (uint16_t)len };
    *path = *end ? end + 1 : end;
    return COFFER_OK;
}

static coffer_status take_path(coffer__pycauset_change *out, coffer__arena *memory, const char *path,
                               coffer_error *err)
{
    size_t steps = count_steps(path);
    const char *at = path;
    if (steps > COFFER__PYCAUSET_MAX_DEPTH)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "a path of %zu keys, the limit is %d",
                            steps, COFFER__PYCAUSET_MAX_DEPTH);
    coffer__pycauset_key *keys = coffer__arena_take(memory, steps * sizeof *keys);
    if (!keys)
        return coffer__fail_no_memory(err, steps * sizeof *keys);
    for (size_t i = 0; i < steps; i++) {
        coffer_status status = take_key(&keys[i], memory, &at, path, err);
        if (status)
            return status;
    }
    out->path = keys;
    out->steps = steps;
    return COFFER_OK;
}

/* ---- Reserved keys ---- */

static coffer_status refuse_reserved(const coffer_pycauset_changes *changes,
                                     const coffer__pycauset_change *change, coffer_error *err)
{
    static const char *const payload_keys[] = { "rows",           "cols",         "matrix_type",
                                                "data_type",      "payload_uuid", "payload_layout",
                                                "block_manifest", "object_type",  "n" };
    const char *key = change->path[0].text;
    if (changes->system)
        return COFFER_OK;
    for (size_t i = 0; i < sizeof payload_keys / sizeof payload_keys[0]; i++) {
        if (strcmp(key, payload_keys[i]) == 0)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "\"%s\" is reserved: it describes the payload, which does not change", key);
    }
    if (strcmp(key, COFFER__PYCAUSET_COMMIT_KEY) == 0 || strcmp(key, COFFER__PYCAUSET_ELEMENTS_KEY) == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" is reserved: it describes the commit that wrote the metadata", key);
    if (change->kind != COFFER__PYCAUSET_SET_CHECKSUMS && strcmp(key, COFFER__PYCAUSET_CHECKSUMS_KEY) == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" is reserved: the checksums are computed from the payload", key);
    return COFFER_OK;
}

static coffer_status add(coffer_pycauset_changes *changes, const coffer__pycauset_change *change,
                         coffer_error *err)
{
    coffer_status status = refuse_reserved(changes, change, err);
    if (!status)
        status = coffer__array_reserve_one(&changes->items, &changes->capacity, changes->count,
                                           sizeof *changes->items, err);
    if (status)
        return status;
    changes->items[changes->count++] = *change;
    return COFFER_OK;
}

static coffer_status add_at(coffer_pycauset_changes *changes, const char *path,
                            coffer__pycauset_change_kind kind, const coffer_pycauset_value *value,
                            coffer_error *err)
{
    coffer__pycauset_change change = { .kind = kind, .value = *value };
    coffer_status status = take_path(&change, &changes->memory, path, err);
    return status ? status : add(changes, &change, err);
}

/* ---- Single values ---- */

static coffer_status set(coffer_pycauset_changes *changes, const char *path,
                         const coffer_pycauset_value *value, coffer_error *err)
{
    return add_at(changes, path, COFFER__PYCAUSET_SET, value, err);
}

coffer_status coffer__pycauset_changes_set_value(coffer_pycauset_changes *changes, const char *path,
                                                 const coffer_pycauset_value *value, coffer_error *err)
{
    return set(changes, path, value, err);
}

coffer_status coffer_pycauset_changes_set_bool(coffer_pycauset_changes *changes, const char *path, bool value,
                                               coffer_error *err)
{
    coffer_pycauset_value wanted = { .kind = COFFER_PYCAUSET_BOOL, .as.boolean = value };
    return set(changes, path, &wanted, err);
}

coffer_status coffer_pycauset_changes_set_i64(coffer_pycauset_changes *changes, const char *path,
                                              int64_t value, coffer_error *err)
{
    coffer_pycauset_value wanted = { .kind = COFFER_PYCAUSET_I64, .as.i64 = value };
    if (value >= 0)
        return coffer_pycauset_changes_set_u64(changes, path, (uint64_t)value, err);
    return set(changes, path, &wanted, err);
}

coffer_status coffer_pycauset_changes_set_u64(coffer_pycauset_changes *changes, const char *path,
                                              uint64_t value, coffer_error *err)
{
    coffer_pycauset_value wanted = { .kind = COFFER_PYCAUSET_U64, .as.u64 = value };
    return set(changes, path, &wanted, err);
}

coffer_status coffer_pycauset_changes_set_f64(coffer_pycauset_changes *changes, const char *path,
                                              double value, coffer_error *err)
{
    coffer_pycauset_value wanted = { .kind = COFFER_PYCAUSET_F64, .as.f64 = value };
    return set(changes, path, &wanted, err);
}

static coffer_status set_text(coffer_pycauset_changes *changes, const char *path, coffer_pycauset_kind kind,
                              const char *text, size_t len, coffer_error *err)
{
    coffer_pycauset_value wanted = { .kind = (uint8_t)kind };
    if (len > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "a text of %zu bytes, the limit is %lu",
                            len, (unsigned long)UINT32_MAX);
    wanted.count = (uint32_t)len;
    wanted.as.text = coffer__arena_text(&changes->memory, text, len);
    if (!wanted.as.text)
        return coffer__fail_no_memory(err, len);
    return set(changes, path, &wanted, err);
}

coffer_status coffer_pycauset_changes_set_string(coffer_pycauset_changes *changes, const char *path,
                                                 const char *text, size_t len, coffer_error *err)
{
    size_t valid = coffer__utf8_valid_prefix(text, len);
    if (valid < len)
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                            "the text for \"%s\" is not UTF-8 at byte %zu", path, valid);
    return set_text(changes, path, COFFER_PYCAUSET_STRING, text, len, err);
}

coffer_status coffer_pycauset_changes_set_bytes(coffer_pycauset_changes *changes, const char *path,
                                                const void *bytes, size_t len, coffer_error *err)
{
    return set_text(changes, path, COFFER_PYCAUSET_BYTES, bytes, len, err);
}

coffer_status coffer_pycauset_changes_set_json(coffer_pycauset_changes *changes, const char *path,
                                               const char *json, size_t len, coffer_error *err)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer_pycauset_value wanted = { .kind = 0 };
    coffer__json *parsed = NULL;
    coffer_status status;
    limits.json_depth = COFFER__PYCAUSET_MAX_DEPTH;
    status = coffer__json_parse(&parsed, json, len, 0, &limits, err);
    if (status)
        return status;
    status = coffer__pycauset_from_json(&wanted, &changes->memory, coffer__json_root(parsed), err);
    coffer__json_free(parsed);
    return status ? status : set(changes, path, &wanted, err);
}

/* ---- Others ---- */

coffer_status coffer_pycauset_changes_set_cached(coffer_pycauset_changes *changes, const char *name,
                                                 double value, coffer_error *err)
{
    size_t len = strlen(name);
    coffer__pycauset_change change = { .kind = COFFER__PYCAUSET_SET_CACHED, .steps = 2 };
    if (len == 0 || len > COFFER__PYCAUSET_MAX_KEY || !coffer__utf8_valid(name, len))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" cannot be the name of a cached value", name);
    coffer__pycauset_key *path = coffer__arena_take(&changes->memory, 2 * sizeof *path);
    char *own_name = coffer__arena_text(&changes->memory, name, len);
    if (!path || !own_name)
        return coffer__fail_no_memory(err, len);
    path[0] = (coffer__pycauset_key){ "cached", 6 };
    path[1] = (coffer__pycauset_key){ own_name, (uint16_t)len };
    change.path = path;
    change.value = (coffer_pycauset_value){ .kind = COFFER_PYCAUSET_F64, .as.f64 = value };
    return add(changes, &change, err);
}

coffer_status coffer_pycauset_changes_delete(coffer_pycauset_changes *changes, const char *path,
                                             coffer_error *err)
{
    coffer_pycauset_value nothing = { .kind = 0 };
    return add_at(changes, path, COFFER__PYCAUSET_DELETE, &nothing, err);
}

coffer_status coffer_pycauset_changes_set_checksums(coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_pycauset_value nothing = { .kind = 0 };
    return add_at(changes, COFFER__PYCAUSET_CHECKSUMS_KEY, COFFER__PYCAUSET_SET_CHECKSUMS, &nothing, err);
}

/* ---- Copying a list, so that it outlives the caller's ---- */

/* Depth is bounded by COFFER__PYCAUSET_MAX_DEPTH. False: no memory. */
static bool copy_value(coffer_pycauset_value *out, const coffer_pycauset_value *from, coffer__arena *memory)
{
    *out = *from;
    out->room = 0;
    if (from->key && !(out->key = coffer__arena_text(memory, from->key, from->key_len)))
        return false;
    if (from->kind == COFFER_PYCAUSET_STRING || from->kind == COFFER_PYCAUSET_BYTES)
        return (out->as.text = coffer__arena_text(memory, from->as.text, from->count)) != NULL;
    if (from->kind != COFFER_PYCAUSET_ARRAY && from->kind != COFFER_PYCAUSET_MAP)
        return true;
    coffer_pycauset_value *children = coffer__arena_take(memory, from->count * sizeof *children);
    if (!children)
        return false;
    for (uint32_t i = 0; i < from->count; i++) {
        if (!copy_value(&children[i], &from->as.children[i], memory))
            return false;
    }
    out->as.children = children;
    return true;
}

static bool copy_change(coffer__pycauset_change *out, const coffer__pycauset_change *from,
                        coffer__arena *memory)
{
    coffer__pycauset_key *path = coffer__arena_take(memory, from->steps * sizeof *path);
    if (!path)
        return false;
    for (size_t i = 0; i < from->steps; i++) {
        path[i] = from->path[i];
        path[i].text = coffer__arena_text(memory, from->path[i].text, from->path[i].len);
        if (!path[i].text)
            return false;
    }
    *out = *from;
    out->path = path;
    return copy_value(&out->value, &from->value, memory);
}

coffer_status coffer__pycauset_changes_copy(coffer_pycauset_changes **out,
                                            const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_pycauset_changes *copy = NULL;
    coffer_status status = coffer_pycauset_changes_new(&copy, err);
    if (status)
        return status;
    copy->system = changes->system;
    copy->items = coffer__alloc_array(changes->count, sizeof *copy->items);
    bool whole = copy->items != NULL;
    for (size_t i = 0; i < changes->count && whole; i++)
        whole = copy_change(&copy->items[i], &changes->items[i], &copy->memory);
    if (!whole) {
        coffer_pycauset_changes_free(copy);
        return coffer__fail_no_memory(err, changes->count * sizeof *copy->items);
    }
    copy->count = copy->capacity = changes->count;
    *out = copy;
    return COFFER_OK;
}
