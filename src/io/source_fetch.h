/* Bytes of a source: a view where the source has one, a copy otherwise. */
#ifndef COFFER_IO_SOURCE_FETCH_H
#define COFFER_IO_SOURCE_FETCH_H

#include "coffer/source.h"

/* *out : a view, or `scratch` filled with the len bytes. Ask coffer_source_intact before trusting what was
 * computed from them. */
coffer_status coffer__source_fetch(const uint8_t **out, coffer_source *src, uint64_t offset, size_t len,
                                   void *scratch, coffer_error *err);

/* The same with memory that is allocated when it is needed. *own : NULL for a view, else free it with
 * coffer__free; both outputs are untouched on failure. */
coffer_status coffer__source_fetch_new(const uint8_t **out, uint8_t **own, coffer_source *src,
                                       uint64_t offset, size_t len, coffer_error *err);

#endif
