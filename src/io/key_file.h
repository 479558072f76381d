/* Keys of encrypted payloads, as people keep them. */
#ifndef COFFER_IO_KEY_FILE_H
#define COFFER_IO_KEY_FILE_H

#include "coffer/error.h"

#define COFFER__KEY_SIZE 32

/* 64 hexadecimal digits. */
bool coffer__key_from_hex(uint8_t out[COFFER__KEY_SIZE], const char *text, size_t len);
/* Reads a file or pipe of 32 bytes, or of 64 hexadecimal digits followed by white space. For other content
 * out is wiped and the status is COFFER_E_INVALID_ARGUMENT. */
coffer_status coffer__key_file_read(uint8_t out[COFFER__KEY_SIZE], const char *path, coffer_error *err);

#endif
