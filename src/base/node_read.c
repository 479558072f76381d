#include "base/node.h"

#include <string.h>

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
