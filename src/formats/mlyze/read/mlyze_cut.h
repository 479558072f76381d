/* A block that the end of the file cuts off: what came before the cut is still readable, but no checksum
 * covers it. */
#ifndef COFFER_FORMATS_MLYZE_CUT_H
#define COFFER_FORMATS_MLYZE_CUT_H

#include "formats/mlyze/mlyze_private.h"

/* Decompresses the beginning of an LZ4 block as far as `len` bytes of it go, or until `room` is full.
 * Returns how many bytes that gives; it stops at the first thing that cannot be. */
size_t coffer__mlyze_lz4_prefix(uint8_t *out, size_t room, const uint8_t *in, size_t len);

/* The block at `offset`, whose header is whole and says that it ends behind the events, as if it had been
 * written with the whole events before the cut only: event_count, raw_size and stored_size are theirs. All
 * three are 0 when there is none. */
coffer_status coffer__mlyze_find_cut_block(coffer__mlyze_block *out, const coffer_mlyze *trace,
                                           uint64_t offset, coffer_error *err);
/* Whether a block that was found is such a one. */
coffer_status coffer__mlyze_is_cut(bool *out, const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                   coffer_error *err);

#endif
