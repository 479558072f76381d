/* Reading JSON. The parser can be replaced (only json.cc includes it). The result
 * is a flat array of nodes, children after their parent, so that walking needs no library call. */
#ifndef COFFER_BASE_JSON_H
#define COFFER_BASE_JSON_H

#include "coffer/error.h"
#include "coffer/limits.h"

COFFER_BEGIN_DECLS

/* Nesting stops here, whatever the limits allow. */
#define COFFER__JSON_MAX_DEPTH 1024

typedef enum coffer__json_kind {
    COFFER__JSON_NULL,
    COFFER__JSON_BOOL,
    COFFER__JSON_U64, /* non-negative integers */
    COFFER__JSON_I64, /* negative integers */
    COFFER__JSON_F64,
    COFFER__JSON_NUMBER, /* one that fits neither 64 bits nor a double, kept as its text in as.string */
    COFFER__JSON_STRING,
    COFFER__JSON_ARRAY,
    COFFER__JSON_OBJECT
} coffer__json_kind;

/* Inside an object each value carries its key. */
typedef struct coffer__json_value {
    const char *key; /* UTF-8, NUL-terminated (may contain NULs); NULL outside objects */
    union {
        bool boolean;
        uint64_t u64;
        int64_t i64;
        double f64;
        const char *string; /* UTF-8, NUL-terminated, may contain NULs */
        uint64_t count;     /* of an array's or object's children */
    } as;
    uint32_t key_len;
    uint32_t string_len;
    uint32_t span; /* how many nodes this value takes, itself included: the next sibling is at value + span */
    coffer__json_kind kind;
} coffer__json_value;

typedef struct coffer__json coffer__json;

/* Parses a whole text (trailing white space allowed). Strict: UTF-8, no duplicate keys, nothing after the
 * value. base : file offset of text[0], so that err->offset is a place in the file. COFFER_E_BAD_TEXT for bad
 * UTF-8, COFFER_E_LIMIT for depth or size, COFFER_E_DUPLICATE for a duplicate key, COFFER_E_BAD_JSON
 * for the rest; the message says what was expected, err->offset where. */
coffer_status coffer__json_parse(coffer__json **out, const char *text, size_t len, uint64_t base,
                                 const coffer_limits *limits, coffer_error *err);
/* The same, and lets NaN, Infinity and -Infinity pass as COFFER__JSON_NUMBER: Python writes them, and the
 * files of its programs are full of them. */
coffer_status coffer__json_parse_python(coffer__json **out, const char *text, size_t len, uint64_t base,
                                        const coffer_limits *limits, coffer_error *err);
void coffer__json_free(coffer__json *json);
/* Length of the object at the start of a text, found only by its brackets; 0 when it does not end or is not
 * an object. For objects that other bytes follow. */
size_t coffer__json_object_length(const char *text, size_t len);
const coffer__json_value *coffer__json_root(const coffer__json *json);
const char *coffer__json_library(void); /* "simdjson 3.0.1", for --version */

/* First child, or NULL (also of NULL). Iterate: for (v = first; v; v = coffer__json_next(parent, v)). */
const coffer__json_value *coffer__json_first(const coffer__json_value *parent);
const coffer__json_value *coffer__json_next(const coffer__json_value *parent,
                                            const coffer__json_value *child);
/* A member of an object by key, or NULL (also when `object` is NULL or not an object). Linear. */
const coffer__json_value *coffer__json_find(const coffer__json_value *object, const char *key);
/* The member or element that a path such as "sequences.0.source" begins with, and the path after it; NULL
 * when it has none. */
const coffer__json_value *coffer__json_step(const coffer__json_value *from, const char **path);
/* Return false when the value has another type or does not fit; integers are accepted as doubles, rounded. */
bool coffer__json_u64(uint64_t *out, const coffer__json_value *value);
bool coffer__json_f64(double *out, const coffer__json_value *value);

/* Finds duplicate keys of an object in linear time. */

/* Memory kept from one object to the next; all zero to begin. */
typedef struct coffer__json_key_table {
    uint64_t *slots;
    size_t capacity;
} coffer__json_key_table;

/* COFFER_OK, COFFER_E_NO_MEMORY, or COFFER_E_DUPLICATE with *second, the first value with a repeated key. */
coffer_status coffer__json_check_keys(const coffer__json_value **second, coffer__json_key_table *table,
                                      const coffer__json_value *object);
void coffer__json_key_table_free(coffer__json_key_table *table);

/* Finds where and why a JSON text is invalid, and valid numbers that are too large for the parser. Slow: it
 * runs only after the parser has failed. */

/* Fills err with the first error, as coffer__json_parse documents; COFFER_OK, with err untouched, for a valid
 * text. max_depth : at most COFFER__JSON_MAX_DEPTH. python : NaN, Infinity and -Infinity are numbers.
 */
coffer_status coffer__json_explain(const char *text, size_t len, uint64_t base, uint32_t max_depth,
                                   bool python, coffer_error *err);
/* A number that the parser cannot read. */
typedef struct coffer__json_odd_number {
    uint64_t value; /* index of the value in the text, from 0 */
    size_t at, len;
} coffer__json_odd_number;

/* Every such number of a text that is otherwise valid.
 * The caller frees *out. COFFER_E_BAD_JSON when the text is not valid, for coffer__json_explain to say why;
 * COFFER_E_NO_MEMORY. */
coffer_status coffer__json_odd_numbers(coffer__json_odd_number **out, size_t *count, const char *text,
                                       size_t len, uint32_t max_depth, bool python);
/* The offset of the key of value number `index` in a valid text. Values are counted from 0, in text order. */
size_t coffer__json_key_position(const char *text, size_t len, uint64_t index);

COFFER_END_DECLS

#endif
