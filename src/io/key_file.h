/* Keys of encrypted payloads, as people keep them. */
#ifndef COFFER_IO_KEY_FILE_H
#define COFFER_IO_KEY_FILE_H

#include "coffer/error.h"

#define COFFER__KEY_SIZE 32

/* 64 hexadecimal digits. */
bool coffer__key_from_hex(uint8_t out[COFFER__KEY_SIZE], const char *text, size_t len);
/* A file, or a pipe, of 32 bytes or of 64 hexadecimal digits with white space behind them. out is wiped when
 * it is neither: COFFER_E_INVALID_ARGUMENT. */
coffer_status coffer__key_file_read(uint8_t out[COFFER__KEY_SIZE], const char *path, coffer_error *err);

#endif
