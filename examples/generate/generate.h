/* Text from a Llama-family model in an MCF file. model.c computes, tokenizer.c turns text into tokens and
 * back, json.c reads config.json and tokenizer.json, main.c has the options and the sampling. */
#ifndef GENERATE_H
#define GENERATE_H

#include <coffer/coffer.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints a message and exits: an example has nobody to return it to. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Zeroed memory for count items, which lives until the program ends. */
void *allocate(size_t count, size_t size);

/* ---- json.c ---- */

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_MAP } json_kind;

typedef struct json {
    json_kind kind;
    double number;             /* of JSON_BOOL 0 or 1 */
    char *text, *key;          /* key : inside a map */
    struct json *first, *next; /* members; sibling */
} json;

/* Parses a text that stays in memory. name : of the file, for messages. */
json *json_parse(char *text, const char *name);
/* A member of a map; NULL when it is missing, null, or `map` is NULL. */
const json *json_get(const json *map, const char *key);
double json_number(const json *map, const char *key, double missing);
bool json_true(const json *map, const char *key);
const char *json_text(const json *map, const char *key); /* "" when it is missing */
/* A section of the model as JSON; NULL when the file does not have it. */
json *json_section(const coffer_mcf *file, uint32_t section);

/* ---- tokenizer.c ---- */

typedef struct tokenizer tokenizer;

tokenizer *tokenizer_open(const coffer_mcf *file);
/* The tokens of a text, with the token that begins one where the model wants it. tokens : room for three for
 * each byte of the text, and five. */
size_t tokenizer_encode(const tokenizer *tok, int *tokens, const char *text);
/* Prints the text of a token. first : nothing was printed before. */
void tokenizer_print(const tokenizer *tok, FILE *out, int token, bool first);

/* ---- model.c ---- */

typedef struct model model;

typedef struct model_opts {
    uint32_t context; /* tokens; 0 = as many as the model was trained for, at most 4096 */
    uint32_t threads; /* 0 = one per core */
    bool exact;       /* products of quantized weights with float32 inputs, not rounded to 8 bits */
} model_opts;

model *model_open(const coffer_mcf *file, model_opts opts);
uint32_t model_context(const model *m);
uint32_t model_vocab_size(const model *m);
bool model_is_end(const model *m, int token); /* the token ends a text */
/* The logits after `count` more tokens; `vocab_size` numbers that are valid until the next call. */
const float *model_forward(model *m, const int *tokens, size_t count);
void model_close(model *m);

#endif
