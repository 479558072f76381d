/* The JSON of a trace, as compact tables: what it says of a million stacks must not take a tree of values. */
#ifndef COFFER_FORMATS_MLYZE_METADATA_H
#define COFFER_FORMATS_MLYZE_METADATA_H

#include "base/json.h"
#include "coffer/mlyze.h"
#include "formats/mlyze/read/mlyze_ids.h"

/* Stands for an id that a frame should have and does not. */
#define COFFER__MLYZE_NO_ID UINT64_MAX

typedef struct coffer__mlyze_names {
    coffer__mlyze_ids ids;
    const coffer__json_value **values; /* strings, by number */
    size_t capacity;
} coffer__mlyze_names;

typedef struct coffer__mlyze_stack_table {
    coffer__mlyze_ids ids;
    size_t *ends; /* of its frames, by number */
    size_t ends_capacity;
    coffer_mlyze_frame *frames;
    size_t frame_count, frames_capacity;
} coffer__mlyze_stack_table;

typedef struct coffer__mlyze_metadata {
    char *text;         /* as it stands in the file */
    size_t text_len;    /* without the spaces at its end */
    coffer__json *json; /* everything but the stacks, in whose place stands an empty object */
    coffer__mlyze_names files, functions, threads;
    coffer__mlyze_stack_table stacks;
} coffer__mlyze_metadata;

/* Takes over `text` (coffer__malloc, with room for one more byte) even on failure.
 * report : NULL = entries that are no good are passed over (a frame without an id keeps
 * COFFER__MLYZE_NO_ID); else each is a finding. */
coffer_status coffer__mlyze_metadata_load(coffer__mlyze_metadata *out, char *text, size_t len,
                                          const coffer_limits *limits, coffer_report *report,
                                          coffer_error *err);
void coffer__mlyze_metadata_free(coffer__mlyze_metadata *metadata);

/* A name by its id, with its length (may be NULL), or NULL. */
const char *coffer__mlyze_name(const coffer__mlyze_names *names, uint64_t id, size_t *len);
/* "0" or digits without a leading zero that fit into 64 bits. */
bool coffer__mlyze_parse_id(uint64_t *out, const char *text, size_t len);

/* Reads an object of stacks (mlyze_metadata_stacks.c). */
typedef struct coffer__mlyze_text {
    const char *start, *at, *end;
    const coffer_limits *limits;
    coffer_report *report; /* or NULL */
} coffer__mlyze_text;

/* in->at : at its '{', afterwards behind its '}'. COFFER_E_BAD_JSON, and err untouched, where it is no JSON:
 * coffer__json_explain knows why. */
coffer_status coffer__mlyze_stack_table_read(coffer__mlyze_stack_table *out, coffer__mlyze_text *in,
                                             coffer_error *err);
void coffer__mlyze_stack_table_free(coffer__mlyze_stack_table *stacks);

/* A key and its colon; *key points into the text, or into `room` when it had escapes. False when there is
 * none. */
#define COFFER__MLYZE_KEY_ROOM 64
bool coffer__mlyze_text_key(const char **key, size_t *len, coffer__mlyze_text *in,
                            char room[COFFER__MLYZE_KEY_ROOM]);
void coffer__mlyze_text_space(coffer__mlyze_text *in); /* passes it */
/* Passes white space and then this character, or gives false. */
bool coffer__mlyze_text_take(coffer__mlyze_text *in, char c);
/* Passes over a value without a look inside; false when the text ends in it. */
bool coffer__mlyze_text_skip(coffer__mlyze_text *in);

#endif
