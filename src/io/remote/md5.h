/* MD5, which S3 uses for ETags and Content-MD5. It protects against accidents, not against attackers. */
#ifndef COFFER_IO_REMOTE_MD5_H
#define COFFER_IO_REMOTE_MD5_H

#include <stddef.h>
#include <stdint.h>

#define COFFER__MD5_SIZE 16

void coffer__md5(uint8_t out[COFFER__MD5_SIZE], const void *bytes, size_t len);

#endif
