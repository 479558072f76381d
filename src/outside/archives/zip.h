/* ZIP archives, for reading: the directory at the end, members that are stored or deflated, ZIP64. A member's
 * name is text for people and for look-up, and never a path. Nothing is trusted: members lie inside the file
 * and do not overlap, a member gives exactly the bytes that it declares, and its CRC-32 is checked.
 *
 *   local header + bytes of each member | a central header for each | [ZIP64 end, locator] | end record
 */
#ifndef COFFER_CONVERT_ZIP_H
#define COFFER_CONVERT_ZIP_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "coffer/report.h"
#include "coffer/source.h"
#include "io/sink.h"

typedef enum coffer__zip_method {
    COFFER__ZIP_STORED = 0, /* the numbers are those of the file */
    COFFER__ZIP_DEFLATED = 8
} coffer__zip_method;

typedef struct coffer__zip_member {
    const char *name; /* NUL-terminated UTF-8, borrowed from the archive */
    uint16_t method;
    bool encrypted;
    uint32_t crc;
    uint64_t size;   /* of the contents */
    uint64_t packed; /* of their bytes in the file */
    uint64_t offset; /* of those */
    uint64_t header; /* offset of the local header */
    bool described;  /* CRC-32 and sizes are repeated after the contents */
} coffer__zip_member;

typedef struct coffer__zip coffer__zip;

bool coffer__zip_probe(const uint8_t *head, size_t len);
/* Reads the directory and every local header. src : borrowed, must outlive the archive. limits : NULL =
 * defaults. */
coffer_status coffer__zip_open(coffer__zip **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__zip_close(coffer__zip *zip);
size_t coffer__zip_count(const coffer__zip *zip);
/* In the order of the directory. index < count. */
const coffer__zip_member *coffer__zip_at(const coffer__zip *zip, size_t index);
size_t coffer__zip_find(const coffer__zip *zip, const char *name); /* SIZE_MAX: none. O(log members) */

/* Reports bytes that belong to no member (zip_check.c). */
coffer_status coffer__zip_check(coffer_report *out, const coffer__zip *zip, coffer_error *err);

/* ---- The contents of a member ---- */

/* COFFER_E_UNSUPPORTED for an encrypted member and for other ways to pack than the two above. */
typedef struct coffer__zip_stream coffer__zip_stream;

typedef enum coffer__zip_access {
    COFFER__ZIP_FORWARD, /* read from front to back; a step back of more than 64 KiB starts over */
    COFFER__ZIP_RANDOM   /* any order: checked at once, and what is deflated goes to a temporary file */
} coffer__zip_access;

/* A member as a source, which borrows the archive. A stored one that is opened for any order has views where
 * the archive has. */
coffer_status coffer__zip_source(coffer_source **out, const coffer__zip *zip, size_t index,
                                 coffer__zip_access access, coffer_error *err);

struct coffer__zip {
    coffer_source *src;
    coffer_limits limits;
    char *names; /* of all members, each NUL-terminated */
    coffer__zip_member *members;
    size_t count;
    size_t *by_name;        /* indices of members */
    uint64_t directory;     /* offset */
    uint64_t listed_end;    /* of its headers */
    uint64_t directory_end; /* where the end records begin */
};

/* ZIP archives of stored members, written from front to back. Sizes are always said in 64 bits; the CRC-32
 * is after the contents, and in the directory. */
typedef struct coffer__zip_writer {
    coffer__sink *sink; /* borrowed */
    coffer__buffer directory;
    uint64_t count;
    uint64_t begin; /* of the current member's header */
    uint64_t size;  /* of its contents so far */
    uint32_t crc;
    const char *name;
} coffer__zip_writer;

void coffer__zip_writer_init(coffer__zip_writer *writer, coffer__sink *sink);
void coffer__zip_writer_free(coffer__zip_writer *writer);
/* name : borrowed until the member ends. */
coffer_status coffer__zip_begin(coffer__zip_writer *writer, const char *name, coffer_error *err);
coffer_status coffer__zip_put(coffer__zip_writer *writer, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer__zip_end(coffer__zip_writer *writer, coffer_error *err);
/* The directory. */
coffer_status coffer__zip_finish(coffer__zip_writer *writer, coffer_error *err);

#endif
