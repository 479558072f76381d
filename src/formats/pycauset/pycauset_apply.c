/* Applies a list of changes. Maps and arrays on the path of a change are copied once; everything else is
 * shared with the old tree. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/fail.h"

#include <string.h>

#define FIRST_ROOM 4 /* log2 */

typedef struct editing {
    coffer__arena *memory;
    const coffer__pycauset_change *change;
    coffer_error *err;
} editing;

static coffer_status fail_no_memory(const editing *edit)
{
    return coffer__fail_no_memory(edit->err, 0);
}

/* ---- Lists that can be written to ---- */

/* The children of a list of our own with room for one more. */
static coffer_pycauset_value *open_list(const editing *edit, coffer_pycauset_value *list)
{
    uint8_t room = list->room ? list->room : FIRST_ROOM;
    coffer_pycauset_value *own;
    while (((size_t)1 << room) <= list->count)
        room++;
    if (room == list->room) /* already ours: the const is for those who read */
        return (coffer_pycauset_value *)(uintptr_t)list->as.children;
    own = coffer__arena_take(edit->memory, sizeof *own << room);
    if (!own)
        return NULL;
    if (list->count > 0)
        memcpy(own, list->as.children, list->count * sizeof *own);
    list->as.children = own;
    list->room = room;
    return own;
}

static coffer_pycauset_value *insert(const editing *edit, coffer_pycauset_value *list, size_t at)
{
    coffer_pycauset_value *children = list->count < UINT32_MAX ? open_list(edit, list) : NULL;
    if (!children)
        return NULL;
    memmove(children + at + 1, children + at, (list->count - at) * sizeof *children);
    list->count++;
    children[at] = (coffer_pycauset_value){ .kind = 0 };
    return &children[at];
}

/* The lists of the result are as good as decoded ones: nobody changes them in place any more. */
static void close_lists(coffer_pycauset_value *value)
{
    bool list = value->kind == COFFER_PYCAUSET_MAP || value->kind == COFFER_PYCAUSET_ARRAY;
    if (!list || value->room == 0)
        return;
    coffer_pycauset_value *children = (coffer_pycauset_value *)(uintptr_t)value->as.children;
    value->room = 0;
    for (uint32_t i = 0; i < value->count; i++)
        close_lists(&children[i]);
}

/* ---- One change ---- */

static const char *kind_name(const coffer_pycauset_value *value)
{
    static const char *const names[] = { "nothing",  "a bool", "a number", "a number", "a number",
                                         "a string", "bytes",  "an array", "a map" };
    return names[value->kind];
}

static coffer_status fail_not_found(const editing *edit, size_t step)
{
    return coffer__fail(edit->err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                        "cannot delete \"%s\": it does not exist", edit->change->path[step].text);
}

/* Where a key or index leads in a list. *found is NULL when there is nothing yet and `create` may put it
 * there. */
static coffer_status locate(const editing *edit, size_t *at, bool *found, const coffer_pycauset_value *list,
                            size_t step)
{
    const coffer__pycauset_key *key = &edit->change->path[step];
    if (list->kind == COFFER_PYCAUSET_MAP) {
        *found = coffer__pycauset_child(list, key->text, key->len, at) != NULL;
        return COFFER_OK;
    }
    if (list->kind != COFFER_PYCAUSET_ARRAY)
        return coffer__fail(edit->err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" is %s and cannot contain \"%s\"",
                            step > 0 ? edit->change->path[step - 1].text : "", kind_name(list), key->text);
    uint64_t index = 0;
    bool number = key->len <= 10;
    for (size_t i = 0; i < key->len && number; i++) {
        number = key->text[i] >= '0' && key->text[i] <= '9';
        index = index * 10 + (uint64_t)(key->text[i] - '0');
    }
    if (!number || index > list->count)
        return coffer__fail(edit->err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" is an array of %lu values: \"%s\" is not an index up to its length",
                            edit->change->path[step - 1].text, (unsigned long)list->count, key->text);
    *at = (size_t)index;
    *found = index < list->count;
    return COFFER_OK;
}

static coffer_status put(const editing *edit, coffer_pycauset_value *list, size_t step,
                         const coffer_pycauset_value *value)
{
    const coffer__pycauset_key *key = &edit->change->path[step];
    coffer_pycauset_value *child;
    size_t at = 0;
    bool found = false;
    coffer_status status = locate(edit, &at, &found, list, step);
    if (status)
        return status;
    if (found) {
        child = open_list(edit, list);
        child = child ? child + at : NULL;
    } else if ((child = insert(edit, list, at))) {
        child->kind = COFFER_PYCAUSET_MAP; /* unless the value takes its place */
        if (list->kind == COFFER_PYCAUSET_MAP) {
            child->key = key->text;
            child->key_len = key->len;
        }
    }
    if (!child)
        return fail_no_memory(edit);
    if (step + 1 < edit->change->steps)
        return put(edit, child, step + 1, value);
    child->kind = value->kind;
    child->as = value->as;
    child->count = value->count;
    child->room = 0;
    return COFFER_OK;
}

static coffer_status drop(const editing *edit, coffer_pycauset_value *list, size_t step)
{
    coffer_pycauset_value *children;
    size_t at = 0;
    bool found = false;
    coffer_status status = locate(edit, &at, &found, list, step);
    if (status)
        return status;
    if (!found)
        return fail_not_found(edit, step);
    if (!(children = open_list(edit, list)))
        return fail_no_memory(edit);
    if (step + 1 < edit->change->steps)
        return drop(edit, &children[at], step + 1);
    list->count--;
    memmove(children + at, children + at + 1, (list->count - at) * sizeof *children);
    return COFFER_OK;
}

/* ---- Values with more to them ---- */

/* A map of what is given, whose keys are in order. */
static coffer_status make_map(const editing *edit, coffer_pycauset_value *out,
                              const coffer_pycauset_value *children, uint32_t count)
{
    coffer_pycauset_value *own = coffer__arena_take(edit->memory, count * sizeof *own);
    if (!own)
        return fail_no_memory(edit);
    memcpy(own, children, count * sizeof *own);
    *out = (coffer_pycauset_value){ .kind = COFFER_PYCAUSET_MAP, .as.children = own, .count = count };
    return COFFER_OK;
}

#define KEYED(name) .key = (name), .key_len = sizeof(name) - 1

static coffer_status sign(const editing *edit, coffer_pycauset_value *out, const coffer_pycauset_value *root,
                          const char *view_signature)
{
    const coffer_pycauset_value *uuid = coffer__pycauset_get_key(root, "payload_uuid");
    size_t len = strlen(view_signature);
    coffer_pycauset_value signature[2], entry[2];
    coffer_status status;
    if (!uuid || uuid->kind != COFFER_PYCAUSET_STRING)
        return coffer__fail(edit->err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "a cached value requires a payload_uuid, and the metadata has none");
    signature[0] = (coffer_pycauset_value){ KEYED("payload_uuid"), .kind = COFFER_PYCAUSET_STRING,
                                            .as.text = uuid->as.text, .count = uuid->count };
    signature[1] = (coffer_pycauset_value){ KEYED("view_signature"), .kind = COFFER_PYCAUSET_STRING,
                                            .as.text = coffer__arena_text(edit->memory, view_signature, len),
                                            .count = (uint32_t)len };
    entry[1] = edit->change->value;
    if (!signature[1].as.text)
        return fail_no_memory(edit);
    status = make_map(edit, &entry[0], signature, 2);
    if (status)
        return status;
    entry[0].key = "signature";
    entry[0].key_len = sizeof "signature" - 1;
    entry[1].key = "value";
    entry[1].key_len = sizeof "value" - 1;
    return make_map(edit, out, entry, 2);
}

static coffer_status make_checksums(const editing *edit, coffer_pycauset_value *out,
                                    const coffer_pycauset_value *root, const coffer__buffer *sums)
{
    coffer_pycauset_info info = { .rows = 0 };
    coffer_status status = coffer__pycauset_interpret(&info, root, COFFER_OFFSET_NONE, edit->err);
    if (status)
        return status;
    char *text = sums ? coffer__arena_text(edit->memory, (const char *)sums->data, sums->len) : NULL;
    if (!text)
        return fail_no_memory(edit);
    coffer_pycauset_value children[3] = {
        { KEYED("crc32"), .kind = COFFER_PYCAUSET_BYTES, .as.text = text, .count = (uint32_t)sums->len },
        { KEYED("group_bytes"), .kind = COFFER_PYCAUSET_U64, .as.u64 = COFFER__PYCAUSET_CHECKSUM_GROUP },
        { KEYED("length"), .kind = COFFER_PYCAUSET_U64, .as.u64 = info.payload_needed },
    };
    return make_map(edit, out, children, 3);
}

/* ---- The whole list ---- */

static bool begins_with(const coffer__pycauset_change *change, const char *key)
{
    return strcmp(change->path[0].text, key) == 0;
}

bool coffer__pycauset_touches(const coffer_pycauset_changes *changes, const char *key)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (begins_with(&changes->items[i], key))
            return true;
    }
    return false;
}

static coffer_status apply_one(const editing *edit, coffer_pycauset_value *root, const char *view_signature,
                               const coffer__buffer *sums)
{
    coffer_pycauset_value made = edit->change->value;
    coffer_status status = COFFER_OK;
    switch (edit->change->kind) {
    case COFFER__PYCAUSET_DELETE:
        return drop(edit, root, 0);
    case COFFER__PYCAUSET_SET_CACHED:
        status = sign(edit, &made, root, view_signature);
        break;
    case COFFER__PYCAUSET_SET_CHECKSUMS:
        status = make_checksums(edit, &made, root, sums);
        break;
    case COFFER__PYCAUSET_SET:
        break;
    }
    return status ? status : put(edit, root, 0, &made);
}

/* `only` : changes of this key alone; NULL = all. */
static coffer_status apply_all(coffer_pycauset_value *root, coffer__arena *memory,
                               const coffer_pycauset_changes *changes, const char *only,
                               const char *view_signature, const coffer__buffer *sums, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < changes->count && !status; i++) {
        editing edit = { memory, &changes->items[i], err };
        if (!only || begins_with(edit.change, only))
            status = apply_one(&edit, root, view_signature, sums);
    }
    close_lists(root);
    return status;
}

/* The signature of cached values is that of the view after all changes, whatever their order. */
static coffer_status find_signature(char out[COFFER__PYCAUSET_SIGNATURE_SIZE], coffer__arena *memory,
                                    const coffer_pycauset_value *before,
                                    const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_pycauset_value root = *before;
    coffer_pycauset_info info = { .rows = 0 };
    coffer_status status = apply_all(&root, memory, changes, "view", "", NULL, err);
    if (!status)
        status = coffer__pycauset_interpret(&info, &root, COFFER_OFFSET_NONE, err);
    if (status)
        return status;
    coffer__pycauset_view_signature(out, &info);
    return COFFER_OK;
}

/* rows and cols are those of the view: turning it turns them, so that the payload stays what it is. */
static coffer_status turn_shape(coffer_pycauset_value *root, coffer__arena *memory,
                                const coffer_pycauset_value *before, coffer_error *err)
{
    static const coffer__pycauset_key keys[2] = { { "rows", 4 }, { "cols", 4 } };
    const char *path = "view.is_transposed";
    coffer_status status = COFFER_OK;
    if (coffer_pycauset_value_bool(coffer_pycauset_value_find(before, path)) ==
        coffer_pycauset_value_bool(coffer_pycauset_value_find(root, path)))
        return COFFER_OK;
    for (int i = 0; i < 2 && !status; i++) {
        coffer__pycauset_change change = { COFFER__PYCAUSET_SET, &keys[i], 1, { .kind = 0 } };
        const coffer_pycauset_value *other = coffer__pycauset_get_key(before, keys[1 - i].text);
        editing edit = { memory, &change, err };
        if (other)
            status = put(&edit, root, 0, other);
    }
    close_lists(root);
    return status;
}

/* A scalar is written as floating-point numbers, also when it was given as a whole one: what other programs
 * expect. */
static coffer_status widen_scalar(coffer_pycauset_value *root, coffer__arena *memory, coffer_error *err)
{
    static const coffer__pycauset_key paths[][3] = { { { "view", 4 }, { "scalar", 6 } },
                                                     { { "view", 4 }, { "scalar", 6 }, { "real", 4 } },
                                                     { { "view", 4 }, { "scalar", 6 }, { "imag", 4 } } };
    static const char *const names[] = { "view.scalar", "view.scalar.real", "view.scalar.imag" };
    coffer_status status = COFFER_OK;
    for (int i = 0; i < 3 && !status; i++) {
        coffer__pycauset_change change = { COFFER__PYCAUSET_SET, paths[i], i == 0 ? 2 : 3, { .kind = 0 } };
        const coffer_pycauset_value *given = coffer_pycauset_value_find(root, names[i]);
        coffer_pycauset_value real = { .kind = COFFER_PYCAUSET_F64 };
        editing edit = { memory, &change, err };
        if (coffer__pycauset_is_f64(&real.as.f64, given) && given->kind != COFFER_PYCAUSET_F64)
            status = put(&edit, root, 0, &real);
    }
    close_lists(root);
    return status;
}

/* ---- Checking the result ---- */

static coffer_status expect_map(const coffer_pycauset_value *root, const char *key, coffer_error *err)
{
    const coffer_pycauset_value *value = coffer__pycauset_get_key(root, key);
    if (!value || value->kind == COFFER_PYCAUSET_MAP)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "\"%s\" must be a map, not %s",
                        key, kind_name(value));
}

static coffer_status expect_cached(const coffer_pycauset_value *root, const coffer__pycauset_change *change,
                                   coffer_error *err)
{
    const coffer_pycauset_value *cached = coffer__pycauset_get_key(root, "cached");
    for (uint32_t i = 0; cached && i < cached->count; i++) {
        const coffer_pycauset_value *entry = &cached->as.children[i];
        bool named = change->steps == 1 || strcmp(change->path[1].text, entry->key) == 0;
        if (named &&
            (!coffer__pycauset_get_key(entry, "value") ||
             !coffer__pycauset_get_key(coffer__pycauset_get_key(entry, "signature"), "payload_uuid")))
            return coffer__fail(
                err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                "\"cached.%s\" has to have a value and a signature: without one it would never "
                "be taken as valid",
                entry->key);
    }
    return COFFER_OK;
}

static coffer_status expect_seed(const coffer_pycauset_value *root, const coffer_pycauset_value *before,
                                 coffer_error *err)
{
    const coffer_pycauset_value *seed = coffer__pycauset_get_key(root, "seed");
    if (coffer__pycauset_text_is(coffer__pycauset_get_key(before, "matrix_type"), "UNIT_VECTOR"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"seed\" is reserved: it is the index of the 1 in this unit vector");
    if (seed && seed->kind != COFFER_PYCAUSET_U64 && seed->kind != COFFER_PYCAUSET_I64)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"seed\" must be an integer, not %s", kind_name(seed));
    return COFFER_OK;
}

static coffer_status expect_known_keys(const coffer_pycauset_value *root, const coffer_pycauset_value *before,
                                       const coffer_pycauset_changes *changes, coffer_error *err)
{
    static const char *const maps[] = { "properties", "cached", "provenance" };
    coffer_pycauset_info info = { .rows = 0 };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0] && !status; i++) {
        if (coffer__pycauset_touches(changes, maps[i]))
            status = expect_map(root, maps[i], err);
    }
    for (size_t i = 0; i < changes->count && !status; i++) {
        if (begins_with(&changes->items[i], "cached"))
            status = expect_cached(root, &changes->items[i], err);
    }
    if (!status && coffer__pycauset_touches(changes, "seed"))
        status = expect_seed(root, before, err);
    if (status || !coffer__pycauset_touches(changes, "view"))
        return status;
    if (coffer__pycauset_interpret(&info, root, COFFER_OFFSET_NONE, err))
        return coffer__fail_prefix(err, COFFER_E_INVALID_ARGUMENT, "the new view is not valid");
    return COFFER_OK;
}

coffer_status coffer__pycauset_apply(const coffer_pycauset_value **out, coffer__arena *memory,
                                     const coffer_pycauset_value *before,
                                     const coffer_pycauset_changes *changes, const coffer__buffer *sums,
                                     coffer_error *err)
{
    static const coffer_pycauset_value empty = { .kind = COFFER_PYCAUSET_MAP };
    char view_signature[COFFER__PYCAUSET_SIGNATURE_SIZE] = "";
    coffer_pycauset_value *root = coffer__arena_take(memory, sizeof *root);
    coffer_status status = COFFER_OK;
    if (!root)
        return coffer__fail_no_memory(err, sizeof *root);
    if (!before)
        before = &empty;
    *root = *before;
    if (!changes->system && coffer__pycauset_touches(changes, "cached"))
        status = find_signature(view_signature, memory, before, changes, err);
    if (!status)
        status = apply_all(root, memory, changes, NULL, view_signature, sums, err);
    if (status)
        return status;
    if (!changes->system && coffer__pycauset_touches(changes, "view")) {
        status = turn_shape(root, memory, before, err);
        if (!status)
            status = widen_scalar(root, memory, err);
    }
    if (!status && !changes->system)
        status = expect_known_keys(root, before, changes, err);
    if (status)
        return status;
    *out = root;
    return COFFER_OK;
}
