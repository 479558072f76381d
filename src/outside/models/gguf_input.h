/* The way through the front of a GGUF file: a window that moves on, every step checked against the bytes that
 * are left. */
#ifndef COFFER_CONVERT_GGUF_INPUT_H
#define COFFER_CONVERT_GGUF_INPUT_H

#include "outside/models/gguf.h"

/* The least that a value takes: larger counts cannot be true. */
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
    const char *what; /* is being read, for messages */
} coffer__gguf_input;

/* COFFER_E_TRUNCATED, with the bytes that were wanted at this place. */
coffer_status coffer__gguf_fail_short(const coffer__gguf_input *input, uint64_t wanted, coffer_error *err);
/* The next len bytes, at most a window, borrowed until the next call. */
coffer_status coffer__gguf_take(const uint8_t **out, coffer__gguf_input *input, size_t len,
                                coffer_error *err);
coffer_status coffer__gguf_take_u32(uint32_t *out, coffer__gguf_input *input, coffer_error *err);
coffer_status coffer__gguf_take_u64(uint64_t *out, coffer__gguf_input *input, coffer_error *err);
/* The length of a string that is all there, and no longer than allowed. */
coffer_status coffer__gguf_take_string_length(uint64_t *len, coffer__gguf_input *input, coffer_error *err);
/* A name (coffer__free): UTF-8 without NULs, NUL-terminated. */
coffer_status coffer__gguf_take_name(char **out, size_t *out_len, coffer__gguf_input *input,
                                     coffer_error *err);

/* Reads a key and skips its value (gguf_values.c). */
coffer_status coffer__gguf_take_key(coffer__gguf_key *key, coffer__gguf_input *input, coffer_error *err);

#endif
