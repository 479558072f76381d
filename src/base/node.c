#include "base/report.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/node.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The root owns the memory of all nodes and texts, so that a list of millions is freed at once. */
typedef struct root_node {
    coffer_node node; /* first: a root is known by node.root == &node */
    coffer__arena memory;
} root_node;

static root_node *root_of(const coffer_node *node)
{
    return (root_node *)node->root;
}

/* Appends a node to its parent; NULL when the tree ran out of memory. */
static coffer_node *add(coffer_node *parent, const char *name, coffer_node_kind kind, coffer_unit unit)
{
    if (!parent)
        return NULL;
    root_node *root = root_of(parent);
    const char *own_name = name ? coffer__arena_text(&root->memory, name, strlen(name)) : "";
    coffer_node *node = coffer__arena_take(&root->memory, sizeof *node);
    if (!own_name || !node)
        return NULL;
    *node = (coffer_node){ .root = parent->root, .name = own_name, .kind = kind, .unit = unit };
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->as.count++;
    return node;
}

coffer_status coffer_node_new(coffer_node **out, coffer_error *err)
{
    root_node *root = coffer__calloc(1, sizeof *root);
    if (!root)
        return coffer__fail_no_memory(err, sizeof *root);
    root->node.root = &root->node;
    root->node.name = "";
    root->node.kind = COFFER_NODE_MAP;
    *out = &root->node;
    return COFFER_OK;
}

void coffer_node_free(coffer_node *root)
{
    if (!root)
        return;
    coffer__arena_free(&root_of(root)->memory);
    coffer__free(root_of(root));
}

coffer_node *coffer_node_add_map(coffer_node *parent, const char *name)
{
    return add(parent, name, COFFER_NODE_MAP, COFFER_UNIT_NONE);
}

coffer_node *coffer_node_add_list(coffer_node *parent, const char *name)
{
    return add(parent, name, COFFER_NODE_LIST, COFFER_UNIT_NONE);
}

void coffer_node_add_bool(coffer_node *parent, const char *name, bool value)
{
    coffer_node *node = add(parent, name, COFFER_NODE_BOOL, COFFER_UNIT_NONE);
    if (node)
        node->as.boolean = value;
}

void coffer_node_add_u64(coffer_node *parent, const char *name, uint64_t value, coffer_unit unit)
{
    coffer_node *node = add(parent, name, COFFER_NODE_U64, unit);
    if (node)
        node->as.u64 = value;
}

void coffer_node_add_offset(coffer_node *parent, const char *name, uint64_t offset)
{
    if (offset == COFFER_OFFSET_NONE)
        coffer_node_add_null(parent, name);
    else
        coffer_node_add_u64(parent, name, offset, COFFER_UNIT_OFFSET);
}

void coffer_node_add_i64(coffer_node *parent, const char *name, int64_t value, coffer_unit unit)
{
    coffer_node *node = add(parent, name, COFFER_NODE_I64, unit);
    if (node)
        node->as.i64 = value;
}

void coffer_node_add_f64(coffer_node *parent, const char *name, double value, coffer_unit unit)
{
    coffer_node *node = add(parent, name, COFFER_NODE_F64, unit);
    if (node)
        node->as.f64 = value;
}

void coffer_node_add_null(coffer_node *parent, const char *name)
{
    (void)add(parent, name, COFFER_NODE_NULL, COFFER_UNIT_NONE);
}

coffer_node *coffer__node_hold(coffer_node *parent, const char *name)
{
    return add(parent, name, COFFER_NODE_NULL, COFFER_UNIT_NONE);
}

void coffer__node_set_bool(coffer_node *held, bool value)
{
    if (!held)
        return;
    held->kind = COFFER_NODE_BOOL;
    held->as.boolean = value;
}

void coffer_node_add_text(coffer_node *parent, const char *name, const char *text)
{
    if (text)
        coffer_node_add_text_len(parent, name, text, strlen(text));
    else
        coffer_node_add_null(parent, name);
}

void coffer_node_add_text_len(coffer_node *parent, const char *name, const char *text, size_t len)
{
    if (!parent)
        return;
    const char *copy = coffer__arena_text(&root_of(parent)->memory, text, len);
    coffer_node *node = copy ? add(parent, name, COFFER_NODE_TEXT, COFFER_UNIT_NONE) : NULL;
    if (node) {
        node->as.text = copy;
        node->text_len = len;
    }
}

void coffer_node_add_printf(coffer_node *parent, const char *name, const char *format, ...)
{
    if (!parent)
        return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    char *text = len < 0 ? NULL : coffer__arena_take(&root_of(parent)->memory, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    va_end(arguments);
    coffer_node *node = text ? add(parent, name, COFFER_NODE_TEXT, COFFER_UNIT_NONE) : NULL;
    if (node) {
        node->as.text = text;
        node->text_len = (size_t)len;
    }
}

void coffer_node_add_copy(coffer_node *parent, const char *name, const coffer_node *node)
{
    if (!node) {
        coffer_node_add_null(parent, name);
        return;
    }
    if (node->kind == COFFER_NODE_TEXT) {
        coffer_node_add_text_len(parent, name, node->as.text, node->text_len);
        return;
    }
    coffer_node *copy = add(parent, name, node->kind, node->unit);
    if (!copy)
        return;
    if (node->kind != COFFER_NODE_LIST && node->kind != COFFER_NODE_MAP) {
        copy->as = node->as;
        return;
    }
    for (const coffer_node *child = node->first; child; child = child->next)
        coffer_node_add_copy(copy, node->kind == COFFER_NODE_MAP ? child->name : NULL, child);
}

coffer_status coffer_node_status(const coffer_node *node, coffer_error *err)
{
    if (node && !root_of(node)->memory.failed)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory");
}

void coffer__node_mark_detail(coffer_node *parent)
{
    if (parent && parent->last)
        parent->last->detail = true;
}

coffer_node_kind coffer_node_get_kind(const coffer_node *node)
{
    return node->kind;
}

coffer_unit coffer_node_get_unit(const coffer_node *node)
{
    return node->unit;
}

const char *coffer_node_get_name(const coffer_node *node)
{
    return node->name;
}

bool coffer_node_get_bool(const coffer_node *node)
{
    return node->kind == COFFER_NODE_BOOL && node->as.boolean;
}

uint64_t coffer_node_get_u64(const coffer_node *node)
{
    return node->kind == COFFER_NODE_U64 ? node->as.u64 : 0;
}

int64_t coffer_node_get_i64(const coffer_node *node)
{
    return node->kind == COFFER_NODE_I64 ? node->as.i64 : 0;
}

double coffer_node_get_f64(const coffer_node *node)
{
    switch (node->kind) {
    case COFFER_NODE_U64:
        return (double)node->as.u64;
    case COFFER_NODE_I64:
        return (double)node->as.i64;
    case COFFER_NODE_F64:
        return node->as.f64;
    default:
        return 0;
    }
}

const char *coffer_node_get_text(const coffer_node *node, size_t *len)
{
    bool is_text = node->kind == COFFER_NODE_TEXT;
    if (len)
        *len = is_text ? node->text_len : 0;
    return is_text ? node->as.text : "";
}

const coffer_node *coffer_node_first(const coffer_node *node)
{
    return node->first;
}

const coffer_node *coffer_node_next(const coffer_node *node)
{
    return node->next;
}

size_t coffer_node_count(const coffer_node *node)
{
    return node->kind == COFFER_NODE_LIST || node->kind == COFFER_NODE_MAP ? node->as.count : 0;
}

const coffer_node *coffer_node_find(const coffer_node *map, const char *name)
{
    if (map->kind != COFFER_NODE_MAP)
        return NULL;
    for (const coffer_node *child = map->first; child; child = child->next) {
        if (strcmp(child->name, name) == 0)
            return child;
    }
    return NULL;
}

bool coffer_node_is_detail(const coffer_node *node)
{
    return node && node->detail;
}

/* A merge sort of the linked list of children: stable, and it needs no memory. */

typedef struct merge_order {
    coffer_node_compare compare;
    const void *context;
} merge_order;

/* Cuts the list after `count` nodes and returns the rest. */
static coffer_node *cut(coffer_node *first, size_t count)
{
    while (first && --count > 0)
        first = first->next;
    coffer_node *rest = first ? first->next : NULL;
    if (first)
        first->next = NULL;
    return rest;
}

/* Appends two sorted runs, merged, at *tail; returns the new tail. */
static coffer_node **merge(coffer_node **tail, coffer_node *a, coffer_node *b, const merge_order *order)
{
    while (a || b) {
        bool take_a = a && (!b || order->compare(a, b, order->context) <= 0);
        coffer_node **from = take_a ? &a : &b;
        *tail = *from;
        tail = &(*tail)->next;
        *from = *tail;
    }
    *tail = NULL;
    return tail;
}

void coffer_node_sort(coffer_node *map, const char *name, coffer_node_compare compare, const void *context)
{
    const merge_order order = { compare, context };
    coffer_node *list = map->first;
    while (list && strcmp(list->name, name) != 0)
        list = list->next;
    if (!list || list->kind != COFFER_NODE_LIST)
        return;
    for (size_t run = 1; run < coffer_node_count(list); run *= 2) {
        coffer_node *rest = list->first, **tail = &list->first;
        while (rest) {
            coffer_node *a = rest, *b = cut(a, run);
            rest = cut(b, run);
            tail = merge(tail, a, b, &order);
        }
    }
    list->last = list->first;
    while (list->last && list->last->next)
        list->last = list->last->next;
}

/* A tree that ran out of memory may lack the name. */
static const char *name_of(const coffer_node *map)
{
    const coffer_node *name = coffer_node_find(map, "name");
    const char *text = name ? coffer_node_get_text(name, NULL) : NULL;
    return text ? text : "";
}

static int by_name(const coffer_node *a, const coffer_node *b, const void *context)
{
    (void)context;
    return coffer__natural_compare(name_of(a), name_of(b));
}

void coffer__node_sort_by_name(coffer_node *root, const char *list)
{
    coffer_node_sort(root, list, by_name, NULL);
}
