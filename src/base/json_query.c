#include "base/json.h"

#include "base/buffer.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_container(const coffer__json_value *value)
{
    return value->kind == COFFER__JSON_ARRAY || value->kind == COFFER__JSON_OBJECT;
}

const coffer__json_value *coffer__json_first(const coffer__json_value *parent)
{
    return parent && is_container(parent) && parent->as.count > 0 ? parent + 1 : NULL;
}

const coffer__json_value *coffer__json_next(const coffer__json_value *parent, const coffer__json_value *child)
{
    const coffer__json_value *next = child + child->span;
    return next < parent + parent->span ? next : NULL;
}

const coffer__json_value *coffer__json_find(const coffer__json_value *object, const char *key)
{
    if (!object || object->kind != COFFER__JSON_OBJECT)
        return NULL;
    size_t len = strlen(key);
    for (const coffer__json_value *at = coffer__json_first(object); at; at = coffer__json_next(object, at)) {
        if (at->key_len == len && memcmp(at->key, key, len) == 0)
            return at;
    }
    return NULL;
}

bool coffer__json_u64(uint64_t *out, const coffer__json_value *value)
{
    if (!value || value->kind != COFFER__JSON_U64)
        return false;
    *out = value->as.u64;
    return true;
}

bool coffer__json_f64(double *out, const coffer__json_value *value)
{
    if (!value)
        return false;
    switch (value->kind) {
    case COFFER__JSON_U64:
        *out = (double)value->as.u64;
        return true;
    case COFFER__JSON_I64:
        *out = (double)value->as.i64;
        return true;
    case COFFER__JSON_F64:
        *out = value->as.f64;
        return true;
    case COFFER__JSON_NUMBER: { /* of those, only integers are finite: no decimal point, no locale */
        double rounded = strtod(value->as.string, NULL);
        if (!isfinite(rounded))
            return false;
        *out = rounded;
        return true;
    }
    default:
        return false;
    }
}

size_t coffer__json_object_length(const char *text, size_t len)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t at = 0; at < len && (at == 0 ? text[at] == '{' : depth > 0); at++) {
        if (in_string && text[at] == '\\')
            at++;
        else if (text[at] == '"')
            in_string = !in_string;
        else if (!in_string && text[at] == '{')
            depth++;
        else if (!in_string && text[at] == '}' && --depth == 0)
            return at + 1;
    }
    return 0;
}

/* Writing whole trees: parsed values, and nodes. Both are as deep as the writer allows, which ends the
 * recursion. */

static void write_children(coffer__json_writer *writer, const coffer__json_value *parent)
{
    for (const coffer__json_value *at = coffer__json_first(parent); at; at = coffer__json_next(parent, at)) {
        if (at->key)
            coffer__json_key_len(writer, at->key, at->key_len);
        coffer__json_write_value(writer, at);
    }
}

void coffer__json_write_value(coffer__json_writer *writer, const coffer__json_value *value)
{
    if (writer->out->failed)
        return;
    switch (value->kind) {
    case COFFER__JSON_NULL:
        coffer__json_write_null(writer);
        break;
    case COFFER__JSON_BOOL:
        coffer__json_write_bool(writer, value->as.boolean);
        break;
    case COFFER__JSON_U64:
        coffer__json_write_u64(writer, value->as.u64);
        break;
    case COFFER__JSON_I64:
        coffer__json_write_i64(writer, value->as.i64);
        break;
    case COFFER__JSON_F64:
        coffer__json_write_f64(writer, value->as.f64);
        break;
    case COFFER__JSON_NUMBER:
        coffer__json_write_number(writer, value->as.string, value->string_len);
        break;
    case COFFER__JSON_STRING:
        coffer__json_string_len(writer, value->as.string, value->string_len);
        break;
    case COFFER__JSON_ARRAY:
        coffer__json_open_array(writer);
        write_children(writer, value);
        coffer__json_close_array(writer);
        break;
    case COFFER__JSON_OBJECT:
        coffer__json_open_object(writer);
        write_children(writer, value);
        coffer__json_close_object(writer);
        break;
    }
}

static void write_node_children(coffer__json_writer *writer, const coffer_node *parent, bool named)
{
    for (const coffer_node *at = coffer_node_first(parent); at; at = coffer_node_next(at)) {
        if (named)
            coffer__json_key(writer, coffer_node_get_name(at));
        coffer__json_write_node(writer, at);
    }
}

void coffer__json_write_node(coffer__json_writer *writer, const coffer_node *node)
{
    size_t len;
    const char *text;
    if (writer->out->failed)
        return;
    switch (coffer_node_get_kind(node)) {
    case COFFER_NODE_NULL:
        coffer__json_write_null(writer);
        break;
    case COFFER_NODE_BOOL:
        coffer__json_write_bool(writer, coffer_node_get_bool(node));
        break;
    case COFFER_NODE_U64:
        coffer__json_write_u64(writer, coffer_node_get_u64(node));
        break;
    case COFFER_NODE_I64:
        coffer__json_write_i64(writer, coffer_node_get_i64(node));
        break;
    case COFFER_NODE_F64:
        coffer__json_write_f64(writer, coffer_node_get_f64(node));
        break;
    case COFFER_NODE_TEXT:
        text = coffer_node_get_text(node, &len);
        coffer__json_string_len(writer, text, len);
        break;
    case COFFER_NODE_LIST:
        coffer__json_open_array(writer);
        write_node_children(writer, node, false);
        coffer__json_close_array(writer);
        break;
    case COFFER_NODE_MAP:
        coffer__json_open_object(writer);
        write_node_children(writer, node, true);
        coffer__json_close_object(writer);
        break;
    }
}

/* Parsed JSON as a tree of nodes. */

/* Names of nodes end at a NUL, keys of JSON may contain one. */
static const char *key_text(coffer__buffer *buffer, const coffer__json_value *member)
{
    buffer->len = 0;
    for (const char *part = member->key, *end = part + member->key_len; part <= end;) {
        size_t len = strlen(part);
        coffer__buffer_append(buffer, part, len);
        part += len + 1;
        if (part <= end)
            coffer__buffer_append(buffer, "\\u0000", 6);
    }
    return coffer__buffer_text(buffer);
}

static void add_children(coffer_node *node, const coffer__json_value *value)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    for (const coffer__json_value *child = coffer__json_first(value); child;
         child = coffer__json_next(value, child)) {
        bool plain = !child->key || strlen(child->key) == child->key_len;
        coffer__json_add_node(node, plain ? child->key : key_text(&name, child), child);
    }
    coffer__buffer_free(&name);
}

void coffer__json_add_node(coffer_node *parent, const char *name, const coffer__json_value *value)
{
    switch (value->kind) {
    case COFFER__JSON_BOOL:
        coffer_node_add_bool(parent, name, value->as.boolean);
        break;
    case COFFER__JSON_U64:
        coffer_node_add_u64(parent, name, value->as.u64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_I64:
        coffer_node_add_i64(parent, name, value->as.i64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_F64:
        coffer_node_add_f64(parent, name, value->as.f64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_NUMBER:
    case COFFER__JSON_STRING:
        coffer_node_add_text_len(parent, name, value->as.string, value->string_len);
        break;
    case COFFER__JSON_ARRAY:
        add_children(coffer_node_add_list(parent, name), value);
        break;
    case COFFER__JSON_OBJECT:
        add_children(coffer_node_add_map(parent, name), value);
        break;
    default:
        coffer_node_add_null(parent, name);
    }
}

/* Up to here comparing each with each is faster than hashing. */
#define FEW_KEYS 8
/* Ordinary keys need about two steps each. Keys that were made to collide are sorted instead. */
#define STEPS_PER_KEY 16

typedef const coffer__json_value value;

static bool same_key(value *a, value *b)
{
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

static value *find_among_few(value *object)
{
    for (value *later = coffer__json_first(object); later; later = coffer__json_next(object, later)) {
        for (value *earlier = object + 1; earlier < later; earlier += earlier->span) {
            if (same_key(earlier, later))
                return later;
        }
    }
    return NULL;
}

static bool reserve(coffer__json_key_table *table, size_t capacity)
{
    if (capacity <= table->capacity)
        return true;
    coffer__json_key_table_free(table);
    table->slots = coffer__alloc_array(capacity, sizeof *table->slots);
    if (!table->slots)
        return false;
    table->capacity = capacity;
    return true;
}

/* Open addressing. A slot holds half of the hash above the value's distance from its object, never 0. Gives
 * false when the steps are used up before an answer is found. */
static bool find_by_hash(value **second, uint64_t *slots, size_t capacity, value *object)
{
    uint64_t steps_left = object->as.count * STEPS_PER_KEY;
    memset(slots, 0, capacity * sizeof *slots);
    for (value *at = coffer__json_first(object); at; at = coffer__json_next(object, at)) {
        uint64_t hash = coffer__hash(at->key, at->key_len);
        uint64_t entry = (hash & UINT64_C(0xFFFFFFFF00000000)) | (uint64_t)(at - object);
        size_t slot = (size_t)hash & (capacity - 1);
        for (; slots[slot]; slot = (slot + 1) & (capacity - 1)) {
            value *other = object + (uint32_t)slots[slot];
            if (slots[slot] >> 32 == entry >> 32 && same_key(other, at)) {
                *second = at;
                return true;
            }
            if (steps_left-- == 0)
                return false;
        }
        slots[slot] = entry;
    }
    return true;
}

/* Keys in any order that puts equal ones together, earlier before later. */
static bool before(value *a, value *b)
{
    int order = a->key_len == b->key_len ? memcmp(a->key, b->key, a->key_len) : 0;
    if (a->key_len != b->key_len)
        return a->key_len < b->key_len;
    return order != 0 ? order < 0 : a < b;
}

static void sift_down(value *object, uint64_t *heap, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(object + heap[child], object + heap[child + 1]))
            child++;
        if (!before(object + heap[root], object + heap[child]))
            return;
        uint64_t swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* A heap sort: n log n on any keys, and no memory beyond the slots. */
static value *find_by_sorting(uint64_t *slots, value *object)
{
    size_t count = 0;
    for (value *at = coffer__json_first(object); at; at = coffer__json_next(object, at))
        slots[count++] = (uint64_t)(at - object);
    for (size_t i = count / 2; i-- > 0;)
        sift_down(object, slots, i, count);
    for (size_t left = count; left-- > 1;) {
        uint64_t swap = slots[0];
        slots[0] = slots[left];
        slots[left] = swap;
        sift_down(object, slots, 0, left);
    }
    value *second = NULL;
    for (size_t i = 1; i < count; i++) {
        value *at = object + slots[i];
        if (same_key(object + slots[i - 1], at) && (!second || at < second))
            second = at;
    }
    return second;
}

coffer_status coffer__json_check_keys(const coffer__json_value **second, coffer__json_key_table *table,
                                      const coffer__json_value *object)
{
    value *found = NULL;
    if (object->as.count <= FEW_KEYS) {
        found = find_among_few(object);
    } else {
        size_t capacity = 4 * FEW_KEYS;
        while (capacity < 2 * object->as.count) /* at most 2^32 values: no overflow in 64 bits */
            capacity *= 2;
        if (!reserve(table, capacity))
            return COFFER_E_NO_MEMORY;
        if (!find_by_hash(&found, table->slots, capacity, object))
            found = find_by_sorting(table->slots, object);
    }
    if (!found)
        return COFFER_OK;
    *second = found;
    return COFFER_E_DUPLICATE;
}

void coffer__json_key_table_free(coffer__json_key_table *table)
{
    coffer__free(table->slots);
    *table = (coffer__json_key_table){ NULL, 0 };
}

/* The member whose key begins the path and reaches farthest: keys may contain dots themselves. */
static const coffer__json_value *find_member(const coffer__json_value *object, const char **path)
{
    const coffer__json_value *found = NULL;
    for (const coffer__json_value *member = coffer__json_first(object); member;
         member = coffer__json_next(object, member)) {
        size_t len = member->key_len;
        bool begins = strncmp(*path, member->key, len) == 0 && ((*path)[len] == '.' || !(*path)[len]);
        if (begins && (!found || len > found->key_len))
            found = member;
    }
    *path += found ? found->key_len : 0;
    return found;
}

static const coffer__json_value *find_element(const coffer__json_value *array, const char **path)
{
    uint64_t index = 0;
    size_t digits = strspn(*path, "0123456789");
    if (digits == 0 || digits > 9 || ((*path)[digits] && (*path)[digits] != '.'))
        return NULL;
    for (size_t i = 0; i < digits; i++)
        index = index * 10 + (uint64_t)((*path)[i] - '0');
    const coffer__json_value *element = coffer__json_first(array);
    while (element && index-- > 0)
        element = coffer__json_next(array, element);
    *path += element ? digits : 0;
    return element;
}

const coffer__json_value *coffer__json_step(const coffer__json_value *from, const char **path)
{
    const coffer__json_value *found = NULL;
    if (from->kind == COFFER__JSON_OBJECT)
        found = find_member(from, path);
    else if (from->kind == COFFER__JSON_ARRAY)
        found = find_element(from, path);
    *path += found && **path == '.';
    return found;
}
