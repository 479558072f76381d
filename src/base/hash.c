#include "base/hash.h"

#include <xxhash.h>

uint64_t coffer__hash(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}
