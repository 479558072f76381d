/* Compact tables (read/mlyze_tables.h reads them). */
#ifndef COFFER_FORMATS_MLYZE_TABLES_PACK_H
#define COFFER_FORMATS_MLYZE_TABLES_PACK_H

#include "base/buffer.h"
#include "formats/mlyze/write/mlyze_intern.h"

/* LZ4 traces with less metadata than this keep their JSON, which other programs read. */
#define COFFER__MLYZE_TABLES_LEAST 4096

typedef struct coffer__mlyze_tables_source {
    const char *json;
    size_t len;
    size_t hole;                          /* where the JSON has "{}" in place of the stacks */
    size_t spaces;                        /* that follow the JSON */
    const coffer__mlyze_stack_pool *pool; /* NULL = the stacks are in the JSON */
    bool quick;                           /* compress less, in a tenth of the time */
} coffer__mlyze_tables_source;

coffer_status coffer__mlyze_tables_pack(coffer__buffer *out, const coffer__mlyze_tables_source *from,
                                        coffer_error *err);
/* The same from a whole text, with the spaces after it, which coffer__mlyze_tables_text restores byte for
 * byte. Stacks that are not written as Coffer writes them stay in the JSON. */
coffer_status coffer__mlyze_tables_from_text(coffer__buffer *out, const char *text, size_t len,
                                             const coffer_limits *limits, coffer_error *err);

#endif
