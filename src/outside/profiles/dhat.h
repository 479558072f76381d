/* DHAT's JSON: what valgrind's dynamic heap analysis tool writes and its viewer reads. */
#ifndef COFFER_CONVERT_DHAT_H
#define COFFER_CONVERT_DHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COFFER__DHAT_VERSION 2

bool coffer__dhat_probe(const uint8_t *head, size_t len);

#endif
