/* A fast 64-bit hash for tables inside the process. Never written to a file. */
#ifndef COFFER_BASE_HASH_H
#define COFFER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t coffer__hash(const void *bytes, size_t len);

#endif
