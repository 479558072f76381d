/* safetensors files for tests, made of the text of a header. */
#ifndef SUPPORT_SAFETENSORS_H
#define SUPPORT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

/* The file in fresh memory (free()): the header's length, the header, data_len bytes that count 1, 2, 3 … */
uint8_t *safetensors_make(size_t *len, const char *header, size_t data_len);
void safetensors_write(const char *path, const char *header, size_t data_len);

#endif
