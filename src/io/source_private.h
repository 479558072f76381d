/* What the kinds of source and the update code share. */
#ifndef COFFER_IO_SOURCE_PRIVATE_H
#define COFFER_IO_SOURCE_PRIVATE_H

#include "coffer/source.h"
#include "io/journal.h"

/* A source over an open descriptor. The descriptor is closed with the source when owns_fd. journal : owned,
 * may be NULL. */
coffer_status coffer__source_over_fd(coffer_source **out, int fd, bool owns_fd, uint64_t size,
                                     const char *name, coffer__journal *journal, coffer_error *err);
coffer_status coffer__source_over_map(coffer_source **out, int fd, uint64_t size, const char *name,
                                      coffer__journal *journal, coffer_error *err);
/* False when the file behind the source was changed or replaced, or a journal appeared or went, since it was
 * opened: metadata read in between may be torn, open again. True for sources that are no files. */
bool coffer__source_settled(const coffer_source *src);
/* Descriptor of a file source, or −1. Borrowed. */
int coffer__source_fd(const coffer_source *src);

#endif
