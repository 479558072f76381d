/* Parsed JSON as a tree of nodes. */
#include "base/buffer.h"
#include "base/json_write.h"

#include <string.h>

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
