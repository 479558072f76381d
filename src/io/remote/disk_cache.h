/* Blocks of one remote file on disk, shared by several processes: a sparse file with the blocks, and one with
 * a checksum of each. A block counts when its checksum fits, so that nothing has to be locked: writers of one
 * version of a file write the same bytes. */
#ifndef COFFER_IO_REMOTE_DISK_CACHE_H
#define COFFER_IO_REMOTE_DISK_CACHE_H

#include "coffer/error.h"

typedef struct coffer__disk_cache coffer__disk_cache;

/* NULL when the folder cannot be used: the cache is a convenience, never a reason to fail.
 * name : the address without credentials; etag : of the version. */
coffer__disk_cache *coffer__disk_cache_open(const char *folder, const char *name, const char *etag,
                                            uint64_t size);
/* The same in unnamed files, for this process alone. */
coffer__disk_cache *coffer__disk_cache_open_unnamed(void);
void coffer__disk_cache_close(coffer__disk_cache *cache);
/* False when the block is not there, or damaged. len : of the block, shorter at the end of the file. */
bool coffer__disk_cache_load(coffer__disk_cache *cache, uint64_t block, void *out, size_t len);
void coffer__disk_cache_store(coffer__disk_cache *cache, uint64_t block, const void *bytes, size_t len);

#endif
