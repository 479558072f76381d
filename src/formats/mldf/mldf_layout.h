/* MLDF byte by byte (docs/formats/mldf.md). Little-endian, unaligned: load, never cast. Pointers are offsets
 * in the file.
 *
 *   magic, 9 bytes: 89 "MLDF" 0D 0A 1A 0A
 *   header, 64 bytes at offset 9               field descriptor, 208 bytes (or 204, without the last four)
 *   0   u16  major, 1                          0    64 bytes  name, UTF-8, NUL-padded
 *   2   u16  minor, 0                          64   u16  type
 *   4   u32  flags                             66   u16  flags
 *   8   u64  samples                           68   u32  bytes in the row
 *   16  u16  fields                            72   u32  pad
 *   18  u16  pad                               76   128 bytes  arguments
 *   20  u32  page size                         204  4 zeros
 *   24  u64  field descriptors
 *   32  u64  metadata table (the rows)         arguments: array descriptor, or u8 JPEG quality, or u32 sample
 *   40  u64  data region                       rate; the last 16 bytes are the dictionary:
 *   48  u64  allocation table                  112  u64  its place, 0 = none
 *   56  u32  CRC-32 of the data region         120  u32  its size
 *   60  u32  CRC-32 of descriptors, rows       124  u32  0
 *            and allocation table
 *                                              array descriptor, 112 bytes
 *   allocation table entry, 16 bytes           0    u8   dtype, MCF's number
 *   0   u64  payload                           1    u8   ndim, at most 13
 *   8   u32  size                              2    u16  0, u32 0
 *   12  u32  CRC-32 of the stored bytes, or 0  8    u64  dims[13], 0 = varies: then each payload begins with
 *                                                        ndim × u64
 *   row entries
 *   scalar  i64 or f64
 *   bytes   u64 ptr, u32 size, u32 pad
 *   image   u64 ptr, u32 size, u16 height, u16 width, u8 channels, u8 mode, u16 pad, 4 bytes pad
 *   audio   u64 ptr, u32 size, u32 samples, u32 sample rate, u16 channels, u8 bit depth, u8 codec
 *   text    u64 ptr, u32 size, u16 tokens, u8 encoding, u8 pad
 *
 * Ours, in bytes that the format leaves free:
 *
 *   guard, 256 bytes: before the data region   mark, 24 bytes: what a repair could not verify
 *   and again before the allocation table      0    u64  first sample
 *   0   8 bytes  "CFMLGARD"                    8    u64  number of samples
 *   8   u32  version, 1                        16   u16  field, 65535 = the whole row
 *   12  u32  0                                 18   u16  kind: 1 unverified, 2 lost
 *   16  u64  size of the file                  20   u32  0
 *   24  u64  end of the last payload
 *   32  u64  recovery blocks begin here or     recovery block: a second copy of rows and table entries,
 *            later, 0 = the file has none      between payloads, at a multiple of 64
 *   40  u64  marks                             0    8 bytes  "CFMLROWS"
 *   48  u64  number of marks                   8    u32  version, 1
 *   56  u32  CRC-32 of all before the first    12   u32  CRC-32 of the rest of the block
 *            guard                             16   u64  offset of the block
 *   60  u32  CRC-32 from the end of the last   24   u64  offset of the block before, 0 = none
 *            payload to the second guard       32   u64  first sample
 *   64  16 bytes  file identifier, 0 = none    40   u32  number of rows
 *   80  73 bytes  copy of magic and header     44   u32  number of table entries
 *   153 99 zeros                               48   u32  bytes of the body
 *   252 u32  CRC-32 of the 252 bytes before    52   u32  bytes of a row
 *                                              56   u64  0
 *                                              64   a zstd frame: rows, then table entries
 */
#ifndef COFFER_FORMATS_MLDF_LAYOUT_H
#define COFFER_FORMATS_MLDF_LAYOUT_H

#define COFFER__MLDF_MAGIC "\x89MLDF\r\n\x1a\n"
#define COFFER__MLDF_MAGIC_SIZE 9
#define COFFER__MLDF_HEADER_AT 9
#define COFFER__MLDF_HEADER_SIZE 64
#define COFFER__MLDF_HEAD_SIZE 73 /* magic and header */
#define COFFER__MLDF_MAJOR 1
#define COFFER__MLDF_MINOR 0

/* Within the header. */
#define COFFER__MLDF_MINOR_AT 2
#define COFFER__MLDF_FLAGS_AT 4
#define COFFER__MLDF_SAMPLES_AT 8
#define COFFER__MLDF_FIELDS_AT 16
#define COFFER__MLDF_PAGE_SIZE_AT 20
#define COFFER__MLDF_DESCRIPTORS_AT 24
#define COFFER__MLDF_METADATA_AT 32
#define COFFER__MLDF_DATA_AT 40
#define COFFER__MLDF_TABLE_AT 48
#define COFFER__MLDF_DATA_CRC_AT 56
#define COFFER__MLDF_TABLE_CRC_AT 60

#define COFFER__MLDF_STRIDE 208
#define COFFER__MLDF_STRIDE_TUTORIAL 204
#define COFFER__MLDF_NAME_SIZE 64
#define COFFER__MLDF_FIELD_TYPE_AT 64
#define COFFER__MLDF_FIELD_FLAGS_AT 66
#define COFFER__MLDF_FIELD_ROW_SIZE_AT 68
#define COFFER__MLDF_ARGUMENTS_AT 76
#define COFFER__MLDF_ARGUMENTS_SIZE 128
#define COFFER__MLDF_DIMS_AT 8         /* within the arguments */
#define COFFER__MLDF_DICTIONARY_AT 112 /* within the arguments */

#define COFFER__MLDF_TABLE_ENTRY 16
#define COFFER__MLDF_TABLE_SIZE_AT 8
#define COFFER__MLDF_TABLE_ENTRY_CRC_AT 12

/* Within a row entry. */
#define COFFER__MLDF_PAYLOAD_SIZE_AT 8
#define COFFER__MLDF_IMAGE_HEIGHT_AT 12
#define COFFER__MLDF_IMAGE_WIDTH_AT 14
#define COFFER__MLDF_IMAGE_CHANNELS_AT 16
#define COFFER__MLDF_IMAGE_MODE_AT 17
#define COFFER__MLDF_AUDIO_SAMPLES_AT 12
#define COFFER__MLDF_AUDIO_RATE_AT 16
#define COFFER__MLDF_AUDIO_CHANNELS_AT 20
#define COFFER__MLDF_AUDIO_BIT_DEPTH_AT 22
#define COFFER__MLDF_AUDIO_CODEC_AT 23
#define COFFER__MLDF_TEXT_TOKENS_AT 12
#define COFFER__MLDF_TEXT_ENCODING_AT 14
#define COFFER__MLDF_PAGE_SIZE_DEFAULT (2u << 20)
#define COFFER__MLDF_PAGE_SIZE_MIN 4096u
#define COFFER__MLDF_METADATA_ALIGNMENT 64u
#define COFFER__MLDF_PAYLOAD_MAX UINT32_MAX

#define COFFER__MLDF_GUARD_MAGIC "CFMLGARD"
#define COFFER__MLDF_GUARD_SIZE 256
#define COFFER__MLDF_GUARD_VERSION 1
#define COFFER__MLDF_GUARD_VERSION_AT 8
#define COFFER__MLDF_GUARD_FILE_SIZE_AT 16
#define COFFER__MLDF_GUARD_DATA_END_AT 24
#define COFFER__MLDF_GUARD_RECOVERY_AT 32
#define COFFER__MLDF_GUARD_MARKS_AT 40
#define COFFER__MLDF_GUARD_MARK_COUNT_AT 48
#define COFFER__MLDF_GUARD_FRONT_CRC_AT 56
#define COFFER__MLDF_GUARD_TAIL_CRC_AT 60
#define COFFER__MLDF_GUARD_ID_AT 64
#define COFFER__MLDF_GUARD_HEAD_AT 80
#define COFFER__MLDF_GUARD_CRC_AT 252
#define COFFER__MLDF_ID_SIZE 16

#define COFFER__MLDF_MARK_SIZE 24
#define COFFER__MLDF_MARK_COUNT_AT 8
#define COFFER__MLDF_MARK_FIELD_AT 16
#define COFFER__MLDF_MARK_KIND_AT 18
#define COFFER__MLDF_MARK_ROW 65535u
#define COFFER__MLDF_MARK_MAX 65536u /* marks of a file */

#define COFFER__MLDF_RECOVERY_MAGIC "CFMLROWS"
#define COFFER__MLDF_RECOVERY_HEAD 64
#define COFFER__MLDF_RECOVERY_ALIGNMENT 64u
#define COFFER__MLDF_RECOVERY_VERSION 1
#define COFFER__MLDF_RECOVERY_VERSION_AT 8
#define COFFER__MLDF_RECOVERY_CRC_AT 12
#define COFFER__MLDF_RECOVERY_SUMMED_AT 16
#define COFFER__MLDF_RECOVERY_OFFSET_AT 16
#define COFFER__MLDF_RECOVERY_BEFORE_AT 24
#define COFFER__MLDF_RECOVERY_SAMPLE_AT 32
#define COFFER__MLDF_RECOVERY_ROWS_AT 40
#define COFFER__MLDF_RECOVERY_ENTRIES_AT 44
#define COFFER__MLDF_RECOVERY_BODY_AT 48
#define COFFER__MLDF_RECOVERY_ROW_SIZE_AT 52
#define COFFER__MLDF_RECOVERY_MAX \
    ((uint64_t)1 << 20) /* bytes of rows, and of table entries; one row may be more */

#define COFFER__MLDF_NONCE_SIZE 24
#define COFFER__MLDF_TAG_SIZE 16

#endif
