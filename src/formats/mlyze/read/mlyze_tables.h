/* Metadata with compact tables (flag 128): the JSON without its stacks, and the stacks as a call tree, each
 * compressed (docs/formats/mlyze.md, "Compact tables"). */
#ifndef COFFER_FORMATS_MLYZE_TABLES_H
#define COFFER_FORMATS_MLYZE_TABLES_H

#include "base/buffer.h"
#include "formats/mlyze/mlyze_layout.h"
#include "formats/mlyze/read/mlyze_metadata.h"

/* The JSON with "{}" in place of the stacks, as unpacked. */
typedef struct coffer__mlyze_unpacked_tables {
    char *json; /* coffer__free(); has room for a NUL */
    size_t len, hole, spaces;
    bool has_tree; /* false: the stacks are in the JSON */
    coffer__mlyze_stack_table stacks;
} coffer__mlyze_unpacked_tables;

/* Checks and unpacks the stored bytes. out : untouched on failure. */
coffer_status coffer__mlyze_tables_unpack(coffer__mlyze_unpacked_tables *out, const uint8_t *stored,
                                          size_t len, const coffer_limits *limits, coffer_error *err);
/* Loads metadata from the stored bytes, whatever their form. Takes ownership of `stored` even on failure. */
coffer_status coffer__mlyze_metadata_load_any(coffer__mlyze_metadata *out, char *stored, size_t len,
                                              uint32_t flags, const coffer_limits *limits,
                                              coffer_report *report, coffer_error *err);
/* The whole JSON with all stacks and the spaces after it. stacks : their frames in the order of the text. */
coffer_status coffer__mlyze_tables_text(char **out, size_t *len, const coffer__mlyze_metadata *metadata,
                                        coffer_error *err);
/* Appends the object of all stacks, as Coffer writes it. outermost_last : the table has the order of the API,
 * the text the opposite one. */
coffer_status coffer__mlyze_render_stacks(coffer__buffer *out, const coffer__mlyze_stack_table *stacks,
                                          bool reversed, coffer_error *err);

#endif
