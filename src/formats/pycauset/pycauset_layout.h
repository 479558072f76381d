/* PYCAUSET byte by byte (docs/formats/pycauset.md). Little-endian: load, never cast.
 *
 *   offset  type      field
 *   0       8 bytes   "PYCAUSET"
 *   8       u32       version, 1
 *   12      u8        byte order, 1 = little-endian
 *   13      u16       header bytes, 4096
 *   15      u8        0
 *   16      slot A
 *   144     slot B
 *   272     zeros up to 4096
 *
 *   slot, 128 bytes
 *   0       u64       generation
 *   8       u64       payload offset, a multiple of 4096
 *   16      u64       payload length
 *   24      u64       metadata offset, a multiple of 16
 *   32      u64       metadata length, framing included
 *   40      u64 u64   hot offset and length, 0
 *   56      u32       CRC-32 of the 56 bytes before
 *   60      zeros
 *
 *   metadata block
 *   0       4 bytes   "PCMB"
 *   4       u32       block version, 1
 *   8       u32       encoding version, 1
 *   12      u32       0
 *   16      u64       bytes of the value that follows
 *   24      u32       CRC-32 of the value
 *   28      u32       0
 *   32      one value, a map
 *
 *   value: a tag byte (coffer_pycauset_kind), then
 *   bool    u8, 0 or 1
 *   i64 u64 f64       8 bytes
 *   string bytes      u32 length, that many bytes
 *   array   u32 count, that many values
 *   map     u32 count, that many times: u16 key length, key, value; sorted by key
 */
#ifndef COFFER_FORMATS_PYCAUSET_LAYOUT_H
#define COFFER_FORMATS_PYCAUSET_LAYOUT_H

#include "base/bytes.h"
#include "coffer/pycauset.h"

#define COFFER__PYCAUSET_MAGIC "PYCAUSET"
#define COFFER__PYCAUSET_MAGIC_SIZE 8
#define COFFER__PYCAUSET_VERSION 1
#define COFFER__PYCAUSET_VERSION_AT 8
#define COFFER__PYCAUSET_ENDIAN 1
#define COFFER__PYCAUSET_ENDIAN_AT 12
#define COFFER__PYCAUSET_HEADER_BYTES_AT 13
#define COFFER__PYCAUSET_RESERVED_AT 15
#define COFFER__PYCAUSET_SLOT_A_AT 16
#define COFFER__PYCAUSET_SLOTS_END 272
#define COFFER__PYCAUSET_HEADER_SIZE 4096 /* the payload begins here, or later */

#define COFFER__PYCAUSET_SLOT_SIZE 128
#define COFFER__PYCAUSET_SLOT_GENERATION_AT 0
#define COFFER__PYCAUSET_SLOT_PAYLOAD_OFFSET_AT 8
#define COFFER__PYCAUSET_SLOT_PAYLOAD_LENGTH_AT 16
#define COFFER__PYCAUSET_SLOT_METADATA_OFFSET_AT 24
#define COFFER__PYCAUSET_SLOT_METADATA_LENGTH_AT 32
#define COFFER__PYCAUSET_SLOT_HOT_OFFSET_AT 40
#define COFFER__PYCAUSET_SLOT_HOT_LENGTH_AT 48
#define COFFER__PYCAUSET_SLOT_CRC_AT 56 /* covers all bytes of the slot before it */
#define COFFER__PYCAUSET_SLOT_RESERVED_AT 60
#define COFFER__PYCAUSET_PAYLOAD_ALIGNMENT 4096
#define COFFER__PYCAUSET_BLOCK_ALIGNMENT 16

#define COFFER__PYCAUSET_BLOCK_MAGIC "PCMB"
#define COFFER__PYCAUSET_BLOCK_MAGIC_SIZE 4
#define COFFER__PYCAUSET_BLOCK_VERSION 1
#define COFFER__PYCAUSET_ENCODING_VERSION 1
#define COFFER__PYCAUSET_BLOCK_VERSION_AT 4
#define COFFER__PYCAUSET_BLOCK_ENCODING_AT 8
#define COFFER__PYCAUSET_BLOCK_RESERVED_AT 12
#define COFFER__PYCAUSET_BLOCK_LENGTH_AT 16
#define COFFER__PYCAUSET_BLOCK_CRC_AT 24
#define COFFER__PYCAUSET_BLOCK_RESERVED_2_AT 28
#define COFFER__PYCAUSET_BLOCK_HEADER 32

#define COFFER__PYCAUSET_MAX_DEPTH 64     /* of a value below the map at the top */
#define COFFER__PYCAUSET_MAX_KEY 65535    /* its length is a u16 */
#define COFFER__PYCAUSET_UUID_SIZE 32     /* hexadecimal digits */
#define COFFER__PYCAUSET_BIT_ROW_BYTES 64 /* rows of a dense bit matrix are padded to a multiple of this */

/* CRC-32 checksums of the payload, a key of ours that other readers ignore:
 * {group_bytes: u64, length: u64 (bytes covered), crc32: bytes, a little-endian u32 for each group}. */
#define COFFER__PYCAUSET_CHECKSUMS_KEY "payload_checksums"
#define COFFER__PYCAUSET_CHECKSUM_GROUP (UINT64_C(1) << 20) /* COFFER__CHUNK_BYTES */
/* Keys of ours that describe the commit that wrote the block; the next commit replaces or removes them.
 * {generation: u64, time, message, author: texts}, and an array of {row, col, old, new} for each element that
 * it changed. */
#define COFFER__PYCAUSET_COMMIT_KEY "commit"
#define COFFER__PYCAUSET_ELEMENTS_KEY "element_changes"
#define COFFER__PYCAUSET_MAX_ELEMENTS 65536 /* that one commit may change */

#endif
