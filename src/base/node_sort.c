/* A merge sort of the linked list of children: stable, and it needs no memory. */
#include "base/natural.h"
#include "base/node.h"
#include "base/report.h"

#include <string.h>

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
