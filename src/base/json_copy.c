/* Writing whole trees: parsed values, and nodes. Both are as deep as the writer allows, which ends the
 * recursion. */
#include "base/json_write.h"

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
