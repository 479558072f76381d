/* Matrix files put together byte by byte, and the findings about them. */
#ifndef SUPPORT_CONTAINER_H
#define SUPPORT_CONTAINER_H

#include "coffer/coffer.h"
#include "coffer/pycauset.h"
#include "support/scan.h"

enum {
    CONTAINER_SLOT_A = 16,
    CONTAINER_SLOT_B = 144,
    CONTAINER_GENERATION = 0, /* fields of a slot */
    CONTAINER_PAYLOAD_AT = 8,
    CONTAINER_PAYLOAD_LEN = 16,
    CONTAINER_METADATA_AT = 24,
    CONTAINER_METADATA_LEN = 32,
    CONTAINER_HOT_AT = 40
};

/* 2 × 3 doubles, 48 bytes of payload; the keys of `json` take the place of its own, null removes one. */
extern const char container_plain[];

typedef struct container {
    uint8_t *bytes; /* container_free */
    size_t len;
} container;

/* A fresh file: 48 bytes of payload, then the metadata that container_plain becomes with `json`. */
container container_make(const char *json);
/* The same with bytes for the value of the metadata block. */
container container_of_value(const void *value, size_t len);
void container_free(container *file);
/* Changes a field of a slot and makes the checksum of the slot good. */
void container_set_slot(container *file, int slot, int field, uint64_t value);
uint64_t container_slot(const container *file, int slot, int field);
/* Makes the checksum of the block that a slot names good. */
void container_seal_block(container *file, int slot);
/* Appends a block at the next multiple of 16 and gives its offset; no slot names it. */
uint64_t container_append_block(container *file, const char *json);

/* The status of opening the file. */
coffer_status container_open_status(const container *file);
/* Fails the test unless check finds this, and ok is as told. */
void container_expect(const container *file, coffer_status code, coffer_severity severity, bool ok);
void container_expect_clean(const container *file);

/* The same of a file on disk, but notes are allowed. */
void container_assert_sound(const char *path);

coffer_pycauset *container_open(coffer_source *src);
/* One commit of one number; fails the test when it fails. */
uint64_t container_commit(const char *path, const char *key, uint64_t value);
/* properties.v of the file, and its generation (may be NULL). */
uint64_t container_read(const char *path, const char *key, uint64_t *generation);

#endif
