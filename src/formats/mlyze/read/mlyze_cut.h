/* A block truncated by the end of the file: the part before the cut is readable, but no checksum covers it.
 */
#ifndef COFFER_FORMATS_MLYZE_CUT_H
#define COFFER_FORMATS_MLYZE_CUT_H

#include "formats/mlyze/mlyze_private.h"

/* Decompresses the first `len` bytes of an LZ4 block, until `room` is full or the data is invalid. Returns
 * the number of bytes written. */
size_t coffer__mlyze_lz4_prefix(uint8_t *out, size_t room, const uint8_t *in, size_t len);

/* The truncated block at `offset`, whose header is complete, reduced to the whole events before the cut:
 * event_count, raw_size and stored_size are theirs, or 0 without any. */
coffer_status coffer__mlyze_find_cut_block(coffer__mlyze_block *out, const coffer_mlyze *trace,
                                           uint64_t offset, coffer_error *err);
/* Whether a block is such a truncated one. */
coffer_status coffer__mlyze_is_cut(bool *out, const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                   coffer_error *err);

#endif
