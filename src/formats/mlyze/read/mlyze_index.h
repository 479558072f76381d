/* The index of a trace and its file. */
#ifndef COFFER_FORMATS_MLYZE_INDEX_H
#define COFFER_FORMATS_MLYZE_INDEX_H

#include "formats/mlyze/mlyze_private.h"

/* Loads the file at the trace's index_path; false when it does not belong to this trace or its entries cannot
 * be blocks of it. The caller frees *out. */
bool coffer__mlyze_index_load(coffer_mlyze_index_entry **out, size_t *count, const coffer_mlyze *trace);
/* Writes it there; failures are ignored. */
void coffer__mlyze_index_save(const coffer_mlyze *trace, const coffer_mlyze_index_entry *entries,
                              size_t count);
/* Loads or builds the index. Borrowed from the handle until it is closed. */
coffer_status coffer__mlyze_get_index(const coffer_mlyze_index_entry **out, size_t *count,
                                      const coffer_mlyze *trace, const coffer_progress *progress,
                                      coffer_error *err);
/* Whether a block from an index matches its own header; fills in raw_size. */
bool coffer__mlyze_block_agrees(const coffer_mlyze *trace, coffer__mlyze_block *block);

#endif
