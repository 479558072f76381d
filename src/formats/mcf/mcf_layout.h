/* MCF byte by byte (docs/formats/mcf.md). Little-endian; load, never cast.
 *
 *   header, 40 bytes                          section directory entry, 24 bytes
 *   0   4 bytes  "MCF\0"                      0   u32  type
 *   4   u16      major, 1                     4   u32  version
 *   6   u16      minor, 1                     8   u64  offset in the file, a multiple of 8
 *   8   u32      header size, 40 or more      16  u64  size
 *   12  u32      section count
 *   16  u64      offset of the directory
 *   24  u64      file size
 *   32  u64      flags
 *
 *   TensorIndex, 48 bytes and three tables    TensorIndex entry, 40 bytes
 *   0   u32  version, 1                       0   u32  name: offset in the strings
 *   4   u32  flags                            4   u32  name: length
 *   8   u32  tensor count                     8   u32  dtype
 *   12  u32  dim count                        12  u32  rank
 *   16  u64  entries, from the section start  16  u32  first dim: index into the dims
 *   24  u64  dims (u64 each)                  20  u32  reserved, 0
 *   32  u64  strings                          24  u64  payload: offset in the file
 *   40  u64  size of the strings              32  u64  payload: size
 *
 *   ModelInfo, 88 bytes, then blobs           ModelInfo table entry, 24 bytes
 *   0   u32  version, 1                       0   u64  key: a string blob
 *   4   u32  flags, 0                         8   u32  type: 1 u32, 2 f32, 3 string
 *   8   u32  arch                             12  u32  pad
 *   12  u32  pad                              16  u64  value: 4 bytes, or a string blob
 *   16  u32  vocab size, hidden size, layers, heads, key-value heads, context, training context
 *   44  u32  rope type                        A string blob is u32 length and the bytes, 8-aligned,
 *   48  f32  rope frequency base, scale       its offset counted from the section's start; 0 = absent.
 *   56  u64  model name, base model: string blobs
 *   72  u32  count of the key-value table, u32 pad, u64 its offset
 *
 *   QuantInfo, 8 bytes and records            QuantInfo record, 24 bytes
 *   0   u32  version, 1                       0   u32  position of the tensor in the index
 *   4   u32  record count                     4   u8   method: the tensor's dtype
 *                                             5   u8   domain: 0 weights, 1 activations
 *                                             6   u16  block size
 *                                             8   u16  super-block size
 *                                             10  6 bytes reserved, 0
 *                                             16  f32  least and greatest value before quantizing
 *
 *   Checksums (type 0x434B0001, an extension of ours), 64 bytes, the ranges and the sums
 *   0   u32  version, 2                       Version 1 has the offset of TensorData at 8, its size at 16,
 *   4   u32  algorithm: 1 = CRC-32 as zlib    no ranges, and sums of TensorData only, counted from its
 *            counts it                        start.
 *   8   u64  size of the file
 *   16  u64  offset of this section
 *   24  u32  chunk size, 1048576
 *   28  u32  number of ranges
 *   32  32 bytes  SHA-256 over bytes 0 to 31, the ranges and the sums
 *   64  16 bytes for each range: u64 offset, u64 size; sorted, none overlapping
 *       u32 for each chunk of each range, counted from its start; the last may be shorter; then zeros
 *
 *   DirectoryCopy (type 0x434B0003, ours)     Damage (type 0x434B0004, ours)
 *   0   u32  0x434B0003                       0   u32  version, 1
 *   4   u32  version, 1                       4   u32  record count
 *   8   u32  entry count                      8   u32  size of the strings
 *   12  u32  CRC-32 of header and entries     12  u32  reserved, 0
 *   16  40 bytes  the header                  16  the records, then the strings without terminators
 *   56  24 bytes for each entry; then zeros
 *                                             Damage record, 40 bytes
 *   Files (type 0x434B0005, ours)             0   u32  name of the tensor or section: offset in the strings
 *   0   u32  version, 1                       4   u32  name: length
 *   4   u32  file count                       8   u32  section type; 0 = a tensor
 *   8   u64  size of the names                12  u32  reason: 1 wrong checksum, 2 unverified
 *   16  32 bytes for each file: u32 name      16  u64  first damaged byte, from the start of the payload
 *       offset, u32 name length, u64 offset   24  u64  number of bytes
 *       in the section, u64 size, u32 kind,   32  u32  CRC-32 of the bytes before the damage
 *       u32 0; sorted by name                 36  u32  CRC-32 of the damaged bytes
 *       the names, then the files, each on
 *       a multiple of 8
 *
 *   QuantQuality (type 0x434B0002, ours too)  QuantQuality record, 32 bytes
 *   0   u32  version, 1                       0   u32  name of the tensor: offset in the strings
 *   4   u32  record count                     4   u32  name: length
 *   8   u32  size of the strings              8   u32  source of the importances: offset in the strings
 *   12  u32  reserved, 0                      12  u32  source: length, 0 = none
 *   16  the records                           16  u16  dtype that the tensor was quantized to
 *       the strings, without terminators      18  u16  method: 0 fit … 3 calibrated
 *                                             20  f32  signal to noise in dB; +infinity: nothing was lost
 *                                             24  f32  largest difference of an element
 *                                             28  u32  reserved, 0
 */
#ifndef COFFER_FORMATS_MCF_LAYOUT_H
#define COFFER_FORMATS_MCF_LAYOUT_H

#include "base/bytes.h"

#define COFFER__MCF_MAGIC "MCF" /* followed by a NUL */
#define COFFER__MCF_MAGIC_SIZE 4
#define COFFER__MCF_MAJOR 1
#define COFFER__MCF_MINOR 1
#define COFFER__MCF_HEADER_SIZE 40
#define COFFER__MCF_MAJOR_AT 4
#define COFFER__MCF_MINOR_AT 6
#define COFFER__MCF_HEADER_SIZE_AT 8
#define COFFER__MCF_SECTION_COUNT_AT 12
#define COFFER__MCF_DIRECTORY_AT 16
#define COFFER__MCF_FILE_SIZE_AT 24
#define COFFER__MCF_FLAGS_AT 32

#define COFFER__MCF_FLAG_ALIGNED64 UINT64_C(1)

#define COFFER__MCF_DIRECTORY_ENTRY 24
#define COFFER__MCF_DIRECTORY_TYPE_AT 0
#define COFFER__MCF_DIRECTORY_VERSION_AT 4
#define COFFER__MCF_DIRECTORY_OFFSET_AT 8
#define COFFER__MCF_DIRECTORY_SIZE_AT 16
#define COFFER__MCF_SECTION_ALIGNMENT 8
#define COFFER__MCF_SECTION_VERSION 1

#define COFFER__MCF_INDEX_HEADER 48
#define COFFER__MCF_INDEX_VERSION 1
#define COFFER__MCF_INDEX_VERSION_AT 0
#define COFFER__MCF_INDEX_FLAGS_AT 4
#define COFFER__MCF_INDEX_COUNT_AT 8
#define COFFER__MCF_INDEX_DIM_COUNT_AT 12
#define COFFER__MCF_INDEX_ENTRIES_AT 16
#define COFFER__MCF_INDEX_DIMS_AT 24
#define COFFER__MCF_INDEX_STRINGS_AT 32
#define COFFER__MCF_INDEX_STRINGS_SIZE_AT 40
#define COFFER__MCF_INDEX_SORTED 1u
#define COFFER__MCF_INDEX_UTF8 2u
#define COFFER__MCF_ENTRY 40
#define COFFER__MCF_ENTRY_NAME_AT 0
#define COFFER__MCF_ENTRY_NAME_LEN_AT 4
#define COFFER__MCF_ENTRY_DTYPE_AT 8
#define COFFER__MCF_ENTRY_RANK_AT 12
#define COFFER__MCF_ENTRY_DIM_AT 16
#define COFFER__MCF_ENTRY_RESERVED_AT 20
#define COFFER__MCF_ENTRY_OFFSET_AT 24
#define COFFER__MCF_ENTRY_SIZE_AT 32

#define COFFER__MCF_MODEL_INFO_SIZE 88
#define COFFER__MCF_MODEL_VERSION_AT 0
#define COFFER__MCF_MODEL_FLAGS_AT 4
#define COFFER__MCF_MODEL_ARCH_AT 8
#define COFFER__MCF_MODEL_PAD_AT 12
#define COFFER__MCF_MODEL_VOCAB_AT 16
#define COFFER__MCF_MODEL_HIDDEN_AT 20
#define COFFER__MCF_MODEL_LAYERS_AT 24
#define COFFER__MCF_MODEL_HEADS_AT 28
#define COFFER__MCF_MODEL_HEADS_KV_AT 32
#define COFFER__MCF_MODEL_CONTEXT_AT 36
#define COFFER__MCF_MODEL_TRAIN_CONTEXT_AT 40
#define COFFER__MCF_MODEL_ROPE_AT 44
#define COFFER__MCF_MODEL_ROPE_BASE_AT 48
#define COFFER__MCF_MODEL_ROPE_SCALE_AT 52
#define COFFER__MCF_MODEL_NAME_AT 56
#define COFFER__MCF_MODEL_BASE_AT 64
#define COFFER__MCF_MODEL_KV_COUNT_AT 72
#define COFFER__MCF_MODEL_KV_PAD_AT 76
#define COFFER__MCF_MODEL_KVS_AT 80

#define COFFER__MCF_KV_ENTRY 24
#define COFFER__MCF_KV_KEY_AT 0
#define COFFER__MCF_KV_TYPE_AT 8
#define COFFER__MCF_KV_PAD_AT 12
#define COFFER__MCF_KV_VALUE_AT 16

#define COFFER__MCF_QUANT_HEADER 8
#define COFFER__MCF_QUANT_VERSION_AT 0
#define COFFER__MCF_QUANT_COUNT_AT 4
#define COFFER__MCF_QUANT_RECORD 24
#define COFFER__MCF_QUANT_TENSOR_AT 0
#define COFFER__MCF_QUANT_METHOD_AT 4
#define COFFER__MCF_QUANT_DOMAIN_AT 5
#define COFFER__MCF_QUANT_BLOCK_AT 6
#define COFFER__MCF_QUANT_SUPER_AT 8
#define COFFER__MCF_QUANT_RESERVED_AT 10
#define COFFER__MCF_QUANT_RESERVED 6
#define COFFER__MCF_QUANT_MIN_AT 16
#define COFFER__MCF_QUANT_MAX_AT 20
#define COFFER__MCF_DOMAIN_WEIGHTS 0
#define COFFER__MCF_DOMAIN_ACTIVATIONS 1

#define COFFER__MCF_SUMS_HEADER 64
#define COFFER__MCF_SUMS_VERSION 2
#define COFFER__MCF_SUMS_VERSION_AT 0
#define COFFER__MCF_SUMS_ALGORITHM_AT 4
#define COFFER__MCF_SUMS_OFFSET_AT 8 /* version 1 */
#define COFFER__MCF_SUMS_SIZE_AT 16  /* version 1 */
#define COFFER__MCF_SUMS_FILE_SIZE_AT 8
#define COFFER__MCF_SUMS_PLACE_AT 16
#define COFFER__MCF_SUMS_CHUNK_AT 24
#define COFFER__MCF_SUMS_RANGES_AT 28
#define COFFER__MCF_SUMS_SHA_AT 32
#define COFFER__MCF_SUMS_RANGE 16
#define COFFER__MCF_SUMS_CRC32 1
#define COFFER__MCF_CHUNK ((uint32_t)1 << 20)

#define COFFER__MCF_COPY_PLACE 40 /* in the file: right after the header */
#define COFFER__MCF_COPY_TYPE_AT 0
#define COFFER__MCF_COPY_VERSION_AT 4
#define COFFER__MCF_COPY_COUNT_AT 8
#define COFFER__MCF_COPY_CRC_AT 12
#define COFFER__MCF_COPY_HEADER_AT 16
#define COFFER__MCF_COPY_ENTRIES_AT 56
#define COFFER__MCF_COPY_ROOM 24 /* entries that the writer leaves room for */
#define COFFER__MCF_COPY_SIZE \
    (COFFER__MCF_COPY_ENTRIES_AT + COFFER__MCF_COPY_ROOM * COFFER__MCF_DIRECTORY_ENTRY)

#define COFFER__MCF_DAMAGE_HEADER 16
#define COFFER__MCF_DAMAGE_VERSION_AT 0
#define COFFER__MCF_DAMAGE_COUNT_AT 4
#define COFFER__MCF_DAMAGE_STRINGS_SIZE_AT 8
#define COFFER__MCF_DAMAGE_RESERVED_AT 12
#define COFFER__MCF_DAMAGE_RECORD 40
#define COFFER__MCF_DAMAGE_NAME_AT 0
#define COFFER__MCF_DAMAGE_NAME_LEN_AT 4
#define COFFER__MCF_DAMAGE_TYPE_AT 8
#define COFFER__MCF_DAMAGE_REASON_AT 12
#define COFFER__MCF_DAMAGE_BEGIN_AT 16
#define COFFER__MCF_DAMAGE_SIZE_AT 24
#define COFFER__MCF_DAMAGE_EXPECTED_AT 32
#define COFFER__MCF_DAMAGE_FOUND_AT 36

#define COFFER__MCF_FILES_HEADER 16
#define COFFER__MCF_FILES_VERSION_AT 0
#define COFFER__MCF_FILES_COUNT_AT 4
#define COFFER__MCF_FILES_NAMES_SIZE_AT 8
#define COFFER__MCF_FILES_ENTRY 32
#define COFFER__MCF_FILES_NAME_AT 0
#define COFFER__MCF_FILES_NAME_LEN_AT 4
#define COFFER__MCF_FILES_OFFSET_AT 8
#define COFFER__MCF_FILES_SIZE_AT 16
#define COFFER__MCF_FILES_KIND_AT 24
#define COFFER__MCF_FILES_RESERVED_AT 28

#define COFFER__MCF_QUALITY_HEADER 16
#define COFFER__MCF_QUALITY_VERSION_AT 0
#define COFFER__MCF_QUALITY_COUNT_AT 4
#define COFFER__MCF_QUALITY_STRINGS_SIZE_AT 8
#define COFFER__MCF_QUALITY_RECORD 32
#define COFFER__MCF_QUALITY_NAME_AT 0
#define COFFER__MCF_QUALITY_NAME_LEN_AT 4
#define COFFER__MCF_QUALITY_IMPORTANCE_AT 8
#define COFFER__MCF_QUALITY_IMPORTANCE_LEN_AT 12
#define COFFER__MCF_QUALITY_DTYPE_AT 16
#define COFFER__MCF_QUALITY_METHOD_AT 18
#define COFFER__MCF_QUALITY_SNR_AT 20
#define COFFER__MCF_QUALITY_MAX_ERROR_AT 24
#define COFFER__MCF_QUALITY_RESERVED_AT 28

#define COFFER__MCF_PAYLOAD_ALIGNMENT 64 /* of quantized payloads, and of the regions inside them */
#define COFFER__MCF_MAX_ALIGNMENT ((uint32_t)2 << 20)

#endif
