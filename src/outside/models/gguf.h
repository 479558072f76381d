/* GGUF, the model files of llama.cpp: typed metadata, then the list of tensors, then their payloads. Versions
 * 2 and 3, little-endian.
 *
 *   "GGUF" | u32 version | u64 tensor count | u64 key count
 *   key     : string name | u32 type | value
 *   string  : u64 length | bytes             array : u32 item type | u64 count | items
 *   tensor  : string name | u32 rank | u64 dims, innermost first | u32 type | u64 offset
 *   payloads: from the next multiple of general.alignment (32) on; offsets count from there
 */
#ifndef COFFER_CONVERT_GGUF_H
#define COFFER_CONVERT_GGUF_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "coffer/dtype.h"
#include "coffer/limits.h"
#include "coffer/report.h"
#include "coffer/source.h"
#include "outside/text/number.h"

/* The block types of GGUF tensors: numbers in groups that share scales. Float32 arithmetic, each operation
 * rounded once, in the order in which ggml has it. */

/* Whole blocks, one after the other. */
typedef void (*coffer__gguf_decode)(float *out, const uint8_t *blocks, size_t count);

typedef struct coffer__gguf_type {
    uint32_t id;
    const char *name;
    coffer_dtype dtype;         /* of a plain type, else COFFER_DTYPE_NONE */
    uint16_t elements, bytes;   /* of a block; 1 and the element's size for a plain type */
    coffer__gguf_decode decode; /* NULL: plain, or a type that we know by name alone */
} coffer__gguf_type;

/* NULL for an unknown type. */
const coffer__gguf_type *coffer__gguf_find_type(uint32_t id);
/* The plain type of the same kind; NULL when GGUF has none (unsigned integers, bool, complex). */
const coffer__gguf_type *coffer__gguf_type_for(coffer_dtype dtype);

enum { /* those that are converted without decoding */
       COFFER__GGUF_Q4_0 = 2,
       COFFER__GGUF_Q5_0 = 6,
       COFFER__GGUF_Q8_0 = 8,
       COFFER__GGUF_Q4_K = 12,
       COFFER__GGUF_Q6_K = 14,
       COFFER__GGUF_IQ4_NL = 20
};

/* The sixteen levels of the non-linear types. */
extern const int8_t coffer__gguf_iq4_levels[16];

#define COFFER__GGUF_MAX_RANK 4
/* Bytes of a tensor name that ggml loads. */
#define COFFER__GGUF_MAX_NAME 63
/* Arrays may hold arrays, up to here. */
#define COFFER__GGUF_MAX_DEPTH 8
#define COFFER__GGUF_ALIGNMENT 32

typedef enum coffer__gguf_value {
    COFFER__GGUF_U8,
    COFFER__GGUF_I8,
    COFFER__GGUF_U16,
    COFFER__GGUF_I16,
    COFFER__GGUF_U32,
    COFFER__GGUF_I32,
    COFFER__GGUF_F32,
    COFFER__GGUF_BOOL,
    COFFER__GGUF_STRING,
    COFFER__GGUF_ARRAY,
    COFFER__GGUF_U64,
    COFFER__GGUF_I64,
    COFFER__GGUF_F64,
    COFFER__GGUF_VALUE_COUNT
} coffer__gguf_value;

/* "u8", "string"; NULL for an unknown type. */
const char *coffer__gguf_value_name(uint32_t type);
/* Bytes of a number or bool; 0 for strings and arrays. */
size_t coffer__gguf_value_size(uint32_t type);
/* The next value of that type, a number or bool, from a value's bytes. */
coffer__number coffer__gguf_number(coffer__cursor *cursor, uint32_t type);

typedef struct coffer__gguf_key {
    char *name; /* NUL-terminated UTF-8 */
    coffer__gguf_value type;
    coffer__gguf_value item_type; /* of an array */
    uint64_t count;               /* of an array's items, else 1 */
    uint64_t offset, size;        /* of the value in the file; strings and arrays with their lengths */
} coffer__gguf_key;

typedef struct coffer__gguf_tensor {
    char *name; /* NUL-terminated UTF-8 */
    size_t name_len;
    const coffer__gguf_type *type;
    uint32_t rank;
    uint64_t dims[COFFER__GGUF_MAX_RANK]; /* outermost first */
    uint64_t offset, size;                /* of the payload in the file, inside of it */
    bool lost;                            /* while a damaged file is read */
} coffer__gguf_tensor;

typedef struct coffer__gguf {
    coffer_source *src; /* borrowed */
    coffer_limits limits;
    uint32_t version;
    uint32_t alignment;
    uint64_t front, payloads; /* end of metadata and list; where the payloads begin */
    coffer__gguf_key *keys;
    size_t key_count, key_capacity;
    coffer__gguf_tensor *tensors;
    size_t tensor_count, tensor_capacity;
} coffer__gguf;

bool coffer__gguf_probe(const uint8_t *head, size_t len);
/* Reads metadata and list; every place, size and type in them is checked, no payload is touched. */
coffer_status coffer__gguf_open(coffer__gguf **out, coffer_source *src, const coffer_limits *limits,
                                coffer_error *err);
/* Called for what cannot be used. tensor : its name. */
typedef coffer_status (*coffer__gguf_lose)(void *context, const char *tensor, const coffer_error *why,
                                           coffer_error *err);
/* The same for a damaged file: tensors that are not complete go to `lose` and are left out. Metadata and list
 * must be readable. */
coffer_status coffer__gguf_salvage(coffer__gguf **out, coffer_source *src, const coffer_limits *limits,
                                   coffer__gguf_lose lose, void *context, coffer_error *err);
/* The tensors in the order of their payloads (coffer__free). */
coffer_status coffer__gguf_sort_by_offset(coffer__gguf_tensor ***out, const coffer__gguf *gguf,
                                          coffer_error *err);
/* Reports what a reader accepts although it is not right: bytes that belong to no tensor, padding that is not
 * zero, texts that are not UTF-8 (gguf_check.c). */
coffer_status coffer__gguf_check(coffer_report *out, const coffer__gguf *gguf, coffer_error *err);
void coffer__gguf_close(coffer__gguf *gguf); /* NULL allowed */

/* NULL when the file does not have the key. O(keys). */
const coffer__gguf_key *coffer__gguf_find(const coffer__gguf *gguf, const char *name);
/* The bytes of a value (coffer__free), followed by a NUL: those of a string or number, or the items of an
 * array. */
coffer_status coffer__gguf_read_value(uint8_t **out, size_t *len, const coffer__gguf *gguf,
                                      const coffer__gguf_key *key, coffer_error *err);

/* ---- Writing: the pieces of a header, into a buffer ---- */

void coffer__gguf_put_header(coffer__buffer *out, uint64_t tensor_count, uint64_t key_count);
void coffer__gguf_put_string(coffer__buffer *out, const char *text, size_t len);
void coffer__gguf_put_key(coffer__buffer *out, const char *name, size_t name_len, coffer__gguf_value type);
/* A number of an integer type, bool among them; what does not fit is cut. */
void coffer__gguf_put_integer(coffer__buffer *out, coffer__gguf_value type, uint64_t value);
void coffer__gguf_put_float(coffer__buffer *out, coffer__gguf_value type, double value);
/* dims : outermost first. offset : from the start of the payloads. */
void coffer__gguf_put_tensor(coffer__buffer *out, const char *name, size_t name_len, uint32_t rank,
                             const uint64_t *dims, const coffer__gguf_type *type, uint64_t offset);

/* ---- Reading: a moving window over the front of a file; every step is checked against the file size
 * ---- */

/* Smallest encodings: a count that needs more bytes than the file has is refused. */
#define COFFER__GGUF_MIN_STRING 8
#define COFFER__GGUF_MIN_ARRAY 12

#define COFFER__GGUF_WINDOW ((size_t)65536)

typedef struct coffer__gguf_input {
    coffer_source *src;
    uint64_t size, at;
    uint8_t *memory; /* COFFER__GGUF_WINDOW bytes */
    uint64_t start;  /* memory[0, held) are the bytes from here on */
    size_t held;
    uint64_t string_max;
    const char *what; /* the part being read, for messages */
} coffer__gguf_input;

/* The next len bytes, at most a window, borrowed until the next call. */
coffer_status coffer__gguf_take(const uint8_t **out, coffer__gguf_input *input, size_t len,
                                coffer_error *err);
coffer_status coffer__gguf_take_u32(uint32_t *out, coffer__gguf_input *input, coffer_error *err);
coffer_status coffer__gguf_take_u64(uint64_t *out, coffer__gguf_input *input, coffer_error *err);
/* A name (coffer__free): UTF-8 without NULs, NUL-terminated. */
coffer_status coffer__gguf_take_name(char **out, size_t *out_len, coffer__gguf_input *input,
                                     coffer_error *err);

/* Reads a key and skips its value (gguf_values.c). */
coffer_status coffer__gguf_take_key(coffer__gguf_key *key, coffer__gguf_input *input, coffer_error *err);

#endif
