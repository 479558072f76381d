/* Where a token is, in words. */
#ifndef COFFER_CLI_PLACES_H
#define COFFER_CLI_PLACES_H

#include "coffer/mscan.h"

/* The sequence of a token; NULL for a token past the total (a damaged scan may have such records). */
const coffer_mscan_sequence *places_sequence_of(const coffer_mscan *scan, uint64_t token);

typedef char places_text[192];
/* The beginning of a sequence's source on one line, at most `characters` long; "" when it has none. */
const char *places_excerpt(places_text out, const coffer_mscan_sequence *sequence, size_t characters);

#endif
