/* The JSON of a trace as compact tables: a tree of values would be too large for millions of stacks. */
#ifndef COFFER_FORMATS_MLYZE_METADATA_H
#define COFFER_FORMATS_MLYZE_METADATA_H

#include "base/buffer.h"
#include "base/json.h"
#include "coffer/mlyze.h"
#include "formats/mlyze/read/mlyze_ids.h"

/* The id of a frame that lacks one. */
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
    char *text;         /* unchanged from the file */
    size_t text_len;    /* without the spaces at its end */
    coffer__json *json; /* everything except the stacks, which are replaced by an empty object */
    coffer__mlyze_names files, functions, threads;
    coffer__mlyze_stack_table stacks; /* each innermost frame first, once the order is settled */
    coffer_mlyze_order order;         /* of the frames in the text */
    bool order_is_known;              /* false: a plain trace that version 0.1 may have written */
    size_t stacks_begin, stacks_end;  /* the object of the stacks in the text; equal = none */
    /* Of compact tables: */
    bool is_compact;     /* the text has "{}", at `hole`, in place of the stacks */
    size_t hole, spaces; /* spaces : after the text */
} coffer__mlyze_metadata;

/* Takes ownership of `text` (coffer__malloc, with room for one more byte) even on failure. report : gets a
 * finding for each invalid entry; NULL = they are skipped (a frame without an id has COFFER__MLYZE_NO_ID). */
coffer_status coffer__mlyze_metadata_load(coffer__mlyze_metadata *out, char *text, size_t len,
                                          const coffer_limits *limits, coffer_report *report,
                                          coffer_error *err);
void coffer__mlyze_metadata_free(coffer__mlyze_metadata *metadata);
/* Decides in which order the text lists frames, and turns the stacks over where it is outermost first. flags
 * : of the header; wanted : COFFER_MLYZE_ORDER_AUTO, or the caller's choice. */
void coffer__mlyze_settle_order(coffer__mlyze_metadata *metadata, uint32_t flags, coffer_mlyze_order wanted,
                                coffer_report *report);

/* A name by its id, with its length (may be NULL), or NULL. */
const char *coffer__mlyze_name(const coffer__mlyze_names *names, uint64_t id, size_t *len);
/* "0" or digits without a leading zero that fit into 64 bits. */
bool coffer__mlyze_parse_id(uint64_t *out, const char *text, size_t len);

/* Appends a frame as Coffer writes it, with a comma after it unless it is the last. */
void coffer__mlyze_text_frame(coffer__buffer *out, const coffer_mlyze_frame *frame, bool last);

/* Reads an object of stacks (mlyze_metadata_stacks.c). */
typedef struct coffer__mlyze_text {
    const char *start, *at, *end;
    const coffer_limits *limits;
    coffer_report *report; /* or NULL */
} coffer__mlyze_text;

/* in->at : at its '{', afterwards after its '}'. COFFER_E_BAD_JSON with err untouched for invalid JSON:
 * coffer__json_explain finds the reason. */
coffer_status coffer__mlyze_stack_table_read(coffer__mlyze_stack_table *out, coffer__mlyze_text *in,
                                             coffer_error *err);
void coffer__mlyze_stack_table_free(coffer__mlyze_stack_table *stacks);

/* A key and its colon; *key points into the text, or into `room` when it has escapes. False without a key. */
#define COFFER__MLYZE_KEY_ROOM 64
bool coffer__mlyze_text_key(const char **key, size_t *len, coffer__mlyze_text *in,
                            char room[COFFER__MLYZE_KEY_ROOM]);
void coffer__mlyze_text_space(coffer__mlyze_text *in); /* skips it */
/* Skips white space and then this character; false if it does not follow. */
bool coffer__mlyze_text_take(coffer__mlyze_text *in, char c);
/* Skips a value without looking inside; false when the text ends in it. */
bool coffer__mlyze_text_skip(coffer__mlyze_text *in);

#endif
