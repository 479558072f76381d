/* Access to values. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <string.h>

coffer_pycauset_kind coffer_pycauset_value_kind(const coffer_pycauset_value *value)
{
    return value ? (coffer_pycauset_kind)value->kind : (coffer_pycauset_kind)0;
}

static bool is_kind(const coffer_pycauset_value *value, coffer_pycauset_kind kind)
{
    return value && value->kind == kind;
}

static bool is_container(const coffer_pycauset_value *value)
{
    return is_kind(value, COFFER_PYCAUSET_ARRAY) || is_kind(value, COFFER_PYCAUSET_MAP);
}

bool coffer_pycauset_value_bool(const coffer_pycauset_value *value)
{
    return is_kind(value, COFFER_PYCAUSET_BOOL) && value->as.boolean;
}

int64_t coffer_pycauset_value_i64(const coffer_pycauset_value *value)
{
    if (is_kind(value, COFFER_PYCAUSET_U64))
        return value->as.u64 <= INT64_MAX ? (int64_t)value->as.u64 : 0;
    return is_kind(value, COFFER_PYCAUSET_I64) ? value->as.i64 : 0;
}

uint64_t coffer_pycauset_value_u64(const coffer_pycauset_value *value)
{
    uint64_t number = 0;
    coffer__pycauset_is_u64(&number, value);
    return number;
}

double coffer_pycauset_value_f64(const coffer_pycauset_value *value)
{
    double number = 0;
    coffer__pycauset_is_f64(&number, value);
    return number;
}

const char *coffer_pycauset_value_text(const coffer_pycauset_value *value, size_t *len)
{
    bool text = is_kind(value, COFFER_PYCAUSET_STRING) || is_kind(value, COFFER_PYCAUSET_BYTES);
    if (len)
        *len = text ? value->count : 0;
    return text ? value->as.text : NULL;
}

size_t coffer_pycauset_value_count(const coffer_pycauset_value *value)
{
    return is_container(value) ? value->count : 0;
}

const coffer_pycauset_value *coffer_pycauset_value_at(const coffer_pycauset_value *value, size_t index)
{
    return index < coffer_pycauset_value_count(value) ? &value->as.children[index] : NULL;
}

const char *coffer_pycauset_value_key_at(const coffer_pycauset_value *map, size_t index, size_t *len)
{
    const coffer_pycauset_value *child = coffer_pycauset_value_at(map, index);
    if (len)
        *len = child ? child->key_len : 0;
    return child ? child->key : NULL;
}

int coffer__pycauset_compare_keys(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t common = a_len < b_len ? a_len : b_len;
    int order = common > 0 ? memcmp(a, b, common) : 0;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

const coffer_pycauset_value *coffer__pycauset_child(const coffer_pycauset_value *map, const char *key,
                                                    size_t len, size_t *at)
{
    size_t low = 0, high = is_kind(map, COFFER_PYCAUSET_MAP) ? map->count : 0;
    const coffer_pycauset_value *found = NULL;
    while (low < high && !found) {
        size_t middle = low + (high - low) / 2;
        const coffer_pycauset_value *child = &map->as.children[middle];
        int order = coffer__pycauset_compare_keys(child->key, child->key_len, key, len);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        if (order == 0) {
            found = child;
            low = middle;
        }
    }
    if (at)
        *at = low;
    return found;
}

const coffer_pycauset_value *coffer__pycauset_get_key(const coffer_pycauset_value *map, const char *key)
{
    return coffer__pycauset_child(map, key, strlen(key), NULL);
}

bool coffer__pycauset_text_is(const coffer_pycauset_value *value, const char *text)
{
    return is_kind(value, COFFER_PYCAUSET_STRING) && value->count == strlen(text) &&
           memcmp(value->as.text, text, value->count) == 0;
}

bool coffer__pycauset_is_u64(uint64_t *out, const coffer_pycauset_value *value)
{
    if (is_kind(value, COFFER_PYCAUSET_U64))
        *out = value->as.u64;
    else if (is_kind(value, COFFER_PYCAUSET_I64) && value->as.i64 >= 0)
        *out = (uint64_t)value->as.i64;
    else
        return false;
    return true;
}

bool coffer__pycauset_is_f64(double *out, const coffer_pycauset_value *value)
{
    if (is_kind(value, COFFER_PYCAUSET_F64))
        *out = value->as.f64;
    else if (is_kind(value, COFFER_PYCAUSET_U64))
        *out = (double)value->as.u64;
    else if (is_kind(value, COFFER_PYCAUSET_I64))
        *out = (double)value->as.i64;
    else
        return false;
    return true;
}

static bool equal_numbers(const coffer_pycauset_value *a, const coffer_pycauset_value *b)
{
    uint64_t x, y;
    if (a->kind == COFFER_PYCAUSET_F64 && b->kind == COFFER_PYCAUSET_F64)
        return a->as.u64 == b->as.u64; /* bit for bit: a NaN is equal to itself */
    if (a->kind == COFFER_PYCAUSET_I64 && b->kind == COFFER_PYCAUSET_I64)
        return a->as.i64 == b->as.i64;
    return coffer__pycauset_is_u64(&x, a) && coffer__pycauset_is_u64(&y, b) && x == y;
}

bool coffer__pycauset_equal(const coffer_pycauset_value *a, const coffer_pycauset_value *b)
{
    if (a->kind == COFFER_PYCAUSET_BOOL)
        return b->kind == COFFER_PYCAUSET_BOOL && a->as.boolean == b->as.boolean;
    if (a->kind <= COFFER_PYCAUSET_F64)
        return b->kind <= COFFER_PYCAUSET_F64 && equal_numbers(a, b);
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (!is_container(a))
        return a->count == 0 || memcmp(a->as.text, b->as.text, a->count) == 0;
    for (size_t i = 0; i < a->count; i++) { /* as deep as the decoder allows */
        const coffer_pycauset_value *x = &a->as.children[i], *y = &b->as.children[i];
        if ((a->kind == COFFER_PYCAUSET_MAP &&
             coffer__pycauset_compare_keys(x->key, x->key_len, y->key, y->key_len) != 0) ||
            !coffer__pycauset_equal(x, y))
            return false;
    }
    return true;
}

/* ---- Paths ---- */

/* A step of a path up to the next dot that is not escaped; the escapes are still in it. */
typedef struct step {
    const char *at, *end;
} step;

static step next_step(const char **path)
{
    step part = { *path, *path };
    while (*part.end && *part.end != '.')
        part.end += part.end[0] == '\\' && part.end[1] ? 2 : 1;
    *path = *part.end ? part.end + 1 : NULL;
    return part;
}

static int compare_key_with_step(const coffer_pycauset_value *child, step part)
{
    const char *key = child->key, *key_end = key + child->key_len;
    for (; key < key_end && part.at < part.end; key++, part.at++) {
        if (*part.at == '\\' && part.at + 1 < part.end)
            part.at++;
        if (*key != *part.at)
            return (unsigned char)*key < (unsigned char)*part.at ? -1 : 1;
    }
    return (key < key_end) - (part.at < part.end);
}

static const coffer_pycauset_value *find_in_map(const coffer_pycauset_value *map, step part)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_key_with_step(&map->as.children[middle], part);
        if (order == 0)
            return &map->as.children[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static const coffer_pycauset_value *find_in_array(const coffer_pycauset_value *array, step part)
{
    uint64_t index = 0;
    if (part.at == part.end || part.end - part.at > 10) /* more digits than a count can have */
        return NULL;
    for (; part.at < part.end; part.at++) {
        if (*part.at < '0' || *part.at > '9')
            return NULL;
        index = index * 10 + (uint64_t)(*part.at - '0');
    }
    return index < array->count ? &array->as.children[index] : NULL;
}

const coffer_pycauset_value *coffer_pycauset_value_find(const coffer_pycauset_value *map, const char *path)
{
    const coffer_pycauset_value *found = map;
    while (path && found) {
        step part = next_step(&path);
        if (is_kind(found, COFFER_PYCAUSET_MAP))
            found = find_in_map(found, part);
        else
            found = is_kind(found, COFFER_PYCAUSET_ARRAY) ? find_in_array(found, part) : NULL;
    }
    return found;
}

size_t coffer__pycauset_push_key(coffer__buffer *path, const coffer_pycauset_value *child)
{
    size_t before = path->len;
    if (before > 0)
        coffer__buffer_append(path, ".", 1);
    for (size_t i = 0; i < child->key_len; i++) {
        if (child->key[i] == '.' || child->key[i] == '\\')
            coffer__buffer_append(path, "\\", 1);
        coffer__buffer_append(path, &child->key[i], 1);
    }
    return before;
}

/* ---- Copying a tree into one allocation ---- */

typedef struct extent {
    uint64_t values, text_bytes;
    uint32_t depth;
} extent;

static bool has_children(const coffer_pycauset_value *value)
{
    return value->kind == COFFER_PYCAUSET_ARRAY || value->kind == COFFER_PYCAUSET_MAP;
}

static bool has_text(const coffer_pycauset_value *value)
{
    return value->kind == COFFER_PYCAUSET_STRING || value->kind == COFFER_PYCAUSET_BYTES;
}

/* Stops where the limit is passed: what is deeper does not matter any more. */
static void measure(extent *out, const coffer_pycauset_value *value, uint32_t depth)
{
    out->values++;
    if (depth > out->depth)
        out->depth = depth;
    if (has_text(value))
        out->text_bytes += (uint64_t)value->count + 1;
    if (!has_children(value) || depth > COFFER__PYCAUSET_MAX_DEPTH)
        return;
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == COFFER_PYCAUSET_MAP)
            out->text_bytes += (uint64_t)value->as.children[i].key_len + 1;
        measure(out, &value->as.children[i], depth + 1);
    }
}

static const char *copy_text(char **next, const char *text, size_t len)
{
    char *own = *next;
    memcpy(own, text, len);
    own[len] = '\0';
    *next += len + 1;
    return own;
}

static void copy(coffer_pycauset_value *value, coffer_pycauset_value **next, char **next_text)
{
    if (has_text(value))
        value->as.text = copy_text(next_text, value->as.text, value->count);
    if (!has_children(value) || value->count == 0)
        return;
    coffer_pycauset_value *children = *next;
    *next += value->count;
    memcpy(children, value->as.children, value->count * sizeof *children);
    value->as.children = children;
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == COFFER_PYCAUSET_MAP)
            children[i].key = copy_text(next_text, children[i].key, children[i].key_len);
        copy(&children[i], next, next_text);
    }
}

coffer_status coffer__pycauset_copy(coffer__pycauset_tree *out, const coffer_pycauset_value *root,
                                    const coffer_limits *limits, coffer_error *err)
{
    extent tree = { .values = 0 };
    uint64_t values, total;
    size_t bytes;
    measure(&tree, root, 0);
    if (tree.depth > COFFER__PYCAUSET_MAX_DEPTH)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "values are nested deeper than %d",
                            COFFER__PYCAUSET_MAX_DEPTH);
    if (tree.values > limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %" PRIu64 " values",
                            limits->entries);
    if (!coffer__mul_u64(&values, tree.values, sizeof *root) ||
        !coffer__add_u64(&total, values, tree.text_bytes) || !coffer__to_size(&bytes, total))
        return coffer__fail_no_memory(err, UINT64_MAX);
    coffer_pycauset_value *own = coffer__malloc(bytes);
    if (!own)
        return coffer__fail_no_memory(err, bytes);
    coffer_pycauset_value *next = own + 1;
    char *next_text = (char *)own + values;
    *own = *root;
    copy(own, &next, &next_text);
    *out = (coffer__pycauset_tree){ own, own, bytes, false };
    return COFFER_OK;
}
