/* Tar archives, from front to back: ustar, GNU's long names, pax. Members are data and nothing else: what is
 * a link, a device or has holes, and names that lead out of a folder, are refused.
 *
 *   each member: header, 512 bytes | contents, padded to 512          end: two blocks of zeros
 *   0    100  name              124  12  size, octal (or base 256)    257  6    "ustar"
 *   100  8    mode              136  12  time                         345  155  prefix of the name
 *   108  16   owner, group      148  8   checksum, octal
 *                               156  1   type: '0' file, '5' folder, 'x' 'g' pax, 'L' 'K' GNU long names
 */
#ifndef COFFER_CONVERT_TAR_H
#define COFFER_CONVERT_TAR_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "outside/archives/byte_stream.h"

#define COFFER__TAR_BLOCK 512

typedef struct coffer__tar_reader coffer__tar_reader;

typedef struct coffer__tar_member {
    const char *name; /* UTF-8 or not, NUL-terminated, borrowed until the next call */
    size_t name_len;
    uint64_t size;
    uint64_t offset; /* of the header */
} coffer__tar_member;

bool coffer__tar_probe(const uint8_t *head, size_t len);

/* src : borrowed; may be packed by gzip or zstd. limits : NULL = defaults. */
coffer_status coffer__tar_open(coffer__tar_reader **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__tar_close(coffer__tar_reader *reader);
/* The next file; what was left of the one before is skipped. *member is NULL at the end. */
coffer_status coffer__tar_next(const coffer__tar_member **member, coffer__tar_reader *reader,
                               coffer_error *err);
/* The contents of the member, once: borrowed from the source where it is mapped, else read into `own`, which
 * is emptied first. */
coffer_status coffer__tar_contents(const uint8_t **bytes, coffer__buffer *own, coffer__tar_reader *reader,
                                   coffer_error *err);

/* ---- Writing ---- */

/* Appends the header of a file, with pax records before it where name or size do not fit. Time, owner and
 * mode are fixed: same input, same bytes. */
void coffer__tar_put_header(coffer__buffer *out, const char *name, uint64_t size);
/* Zeros after contents of this size. */
static inline size_t coffer__tar_padding(uint64_t size)
{
    return (size_t)((COFFER__TAR_BLOCK - size % COFFER__TAR_BLOCK) % COFFER__TAR_BLOCK);
}

#endif
