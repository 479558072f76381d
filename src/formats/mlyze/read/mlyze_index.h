/* The index of a trace and the file that keeps it. */
#ifndef COFFER_FORMATS_MLYZE_INDEX_H
#define COFFER_FORMATS_MLYZE_INDEX_H

#include "formats/mlyze/mlyze_private.h"

/* Loads the file at the trace's index_path when it is one for this trace and its entries can be blocks of it;
 * false in every other case. The caller frees *out. */
bool coffer__mlyze_index_load(coffer_mlyze_index_entry **out, size_t *count, const coffer_mlyze *trace);
/* Tries to keep it there. */
void coffer__mlyze_index_save(const coffer_mlyze *trace, const coffer_mlyze_index_entry *entries,
                              size_t count);
/* Loads or builds the index. Borrowed from the handle until it is closed. */
coffer_status coffer__mlyze_get_index(const coffer_mlyze_index_entry **out, size_t *count,
                                      const coffer_mlyze *trace, const coffer_progress *progress,
                                      coffer_error *err);
/* Whether a block of which an index told is what its own header says; fills in raw_size. */
bool coffer__mlyze_block_agrees(const coffer_mlyze *trace, coffer__mlyze_block *block);

#endif
