#include "base/crc32.h"

#include <isa-l.h>

#define STRING_OF_TOKEN(token) #token
#define STRING_OF(macro) STRING_OF_TOKEN(macro)

uint32_t coffer__crc32(uint32_t crc, const void *bytes, size_t len)
{
    return crc32_gzip_refl(crc, bytes, len);
}

const char *coffer__crc32_library(void)
{
    return "isa-l " STRING_OF(ISAL_MAJOR_VERSION) "." STRING_OF(ISAL_MINOR_VERSION);
}
