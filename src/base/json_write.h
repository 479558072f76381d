/* Writing JSON: commas, escapes, numbers and indentation. Errors stick in the buffer. */
#ifndef COFFER_BASE_JSON_WRITE_H
#define COFFER_BASE_JSON_WRITE_H

#include "base/buffer.h"
#include "base/json.h"
#include "coffer/report.h"

/* Enough for any parsed value inside something of ours. Deeper fails the buffer. */
#define COFFER__JSON_WRITE_DEPTH (2 * COFFER__JSON_MAX_DEPTH)

typedef struct coffer__json_writer {
    coffer__buffer *out;
    unsigned indent; /* spaces a level; 0 = one line */
    unsigned depth;
    bool after_key;
    uint64_t has_items[COFFER__JSON_WRITE_DEPTH / 64];
} coffer__json_writer;

void coffer__json_writer_init(coffer__json_writer *writer, coffer__buffer *out, unsigned indent);
void coffer__json_open_object(coffer__json_writer *writer);
void coffer__json_close_object(coffer__json_writer *writer);
void coffer__json_open_array(coffer__json_writer *writer);
void coffer__json_close_array(coffer__json_writer *writer);
void coffer__json_key(coffer__json_writer *writer, const char *key);
void coffer__json_key_len(coffer__json_writer *writer, const char *key, size_t len);
void coffer__json_string(coffer__json_writer *writer, const char *text); /* NULL writes null */
void coffer__json_string_len(coffer__json_writer *writer, const char *text,
                             size_t len); /* invalid UTF-8 becomes U+FFFD */
void coffer__json_write_u64(coffer__json_writer *writer, uint64_t value);
void coffer__json_write_i64(coffer__json_writer *writer, int64_t value);
void coffer__json_write_f64(coffer__json_writer *writer,
                            double value); /* shortest that reads back the same; NaN and infinities as null */
/* A number as its text has it. */
void coffer__json_write_number(coffer__json_writer *writer, const char *text, size_t len);
void coffer__json_write_bool(coffer__json_writer *writer, bool value);
void coffer__json_write_null(coffer__json_writer *writer);
/* Copies a parsed value, and all below it. */
void coffer__json_write_value(coffer__json_writer *writer, const coffer__json_value *value);
/* Writes a node tree; names are keys. */
void coffer__json_write_node(coffer__json_writer *writer, const coffer_node *node);
/* Adds a parsed value, and all below it, to a tree. A number that fits no type becomes its text. */
void coffer__json_add_node(coffer_node *parent, const char *name, const coffer__json_value *value);

#endif
