/* A resumable writer writes payloads to PATH.partial, and rows and table entries to PATH.partial-rows, as
 * records that are added between samples:
 *
 *   "CFMP" | u32 version 2 | 16 bytes hash of fields and options | 16 bytes hash of the tag | 16 bytes file
 *   identifier | u32 CRC-32
 *   per record: u32 CRC-32 of the rest | u32 bytes of rows | u32 bytes of table entries | u32 CRC-32 of the
 *               data up to here | u64 samples | u64 mark | u64 end of the data | u64 bytes of rows, and u64
 * of entries, that are in recovery blocks | u64 offset of the last block | u64 its end | u64 end of the last
 * payload | u32 CRC-32 of the data up to there | u32 CRC-32 from there on | u32 bytes of origins | u32 0 |
 * rows | entries | origins, 40 bytes for each row: u64 size, i64 time, 16 bytes hash, u64 mark
 *
 * Nothing is synced: resuming accepts a record when its own checksum is right and the data up to its end has
 * the checksum that the record contains. */
#ifndef COFFER_FORMATS_MLDF_CHECKPOINT_H
#define COFFER_FORMATS_MLDF_CHECKPOINT_H

#include "formats/mldf/write/mldf_write.h"

#define CHECKPOINT_MAGIC "CFMP"
#define CHECKPOINT_VERSION 2
#define CHECKPOINT_SCHEMA_AT 8
#define CHECKPOINT_TAG_AT 24
#define CHECKPOINT_ID_AT 40
#define CHECKPOINT_HEADER_SUMMED 56
#define CHECKPOINT_HEADER_SIZE 60

/* Within a record. */
#define CHECKPOINT_ROWS_AT 4
#define CHECKPOINT_ENTRIES_AT 8
#define CHECKPOINT_DATA_CRC_AT 12
#define CHECKPOINT_SAMPLES_AT 16
#define CHECKPOINT_MARK_AT 24
#define CHECKPOINT_END_AT 32
#define CHECKPOINT_BLOCK_ROWS_AT 40
#define CHECKPOINT_BLOCK_ENTRIES_AT 48
#define CHECKPOINT_BLOCK_AT 56
#define CHECKPOINT_BLOCK_END_AT 64
#define CHECKPOINT_DATA_END_AT 72
#define CHECKPOINT_PAYLOAD_CRC_AT 80
#define CHECKPOINT_TAIL_CRC_AT 84
#define CHECKPOINT_ORIGINS_AT 88
#define CHECKPOINT_RECORD_SIZE 96

/* Within an origin. */
#define CHECKPOINT_ORIGIN_TIME_AT 8
#define CHECKPOINT_ORIGIN_HASH_AT 16
#define CHECKPOINT_ORIGIN_MARK_AT 32
#define CHECKPOINT_ORIGIN_SIZE 40

/* PATH with an ending, links resolved; the caller frees it. */
coffer_status coffer__mldf_checkpoint_path(char **out, const char *path, const char *ending,
                                           coffer_error *err);
/* Gives the writer a checkpoint and opens its file. */
coffer_status coffer__mldf_checkpoint_open(coffer_mldf_writer *writer, int flags, coffer_error *err);
void coffer__mldf_checkpoint_header(uint8_t out[CHECKPOINT_HEADER_SIZE],
                                    const coffer__mldf_checkpoint *checkpoint,
                                    const uint8_t id[COFFER__MLDF_ID_SIZE]);

#endif
