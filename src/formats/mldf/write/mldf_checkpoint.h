/* A resumable writer writes payloads to PATH.partial, and rows and table entries to PATH.partial-rows, as
 * records that are added between samples:
 *
 *   "CFMP" | u32 version 1 | 16 bytes hash of fields and options | 16 bytes hash of the tag | u32 CRC-32
 *   per record: u32 CRC-32 of the rest | u32 bytes of rows | u32 bytes of table entries | u32 CRC-32 of the
 *               data up to here | u64 samples | u64 mark | u64 end of the data | rows | entries
 *
 * Nothing is synced: resuming accepts a record when its own checksum is right and the data up to its end has
 * the checksum that the record contains. */
#ifndef COFFER_FORMATS_MLDF_CHECKPOINT_H
#define COFFER_FORMATS_MLDF_CHECKPOINT_H

#include "formats/mldf/write/mldf_write.h"

#define CHECKPOINT_MAGIC "CFMP"
#define CHECKPOINT_VERSION 1
#define CHECKPOINT_SCHEMA_AT 8
#define CHECKPOINT_TAG_AT 24
#define CHECKPOINT_HEADER_SUMMED 40
#define CHECKPOINT_HEADER_SIZE 44

/* Within a record. */
#define CHECKPOINT_ROWS_AT 4
#define CHECKPOINT_ENTRIES_AT 8
#define CHECKPOINT_DATA_CRC_AT 12
#define CHECKPOINT_SAMPLES_AT 16
#define CHECKPOINT_MARK_AT 24
#define CHECKPOINT_END_AT 32
#define CHECKPOINT_RECORD_SIZE 40

/* PATH with an ending, links resolved; the caller frees it. */
coffer_status coffer__mldf_checkpoint_path(char **out, const char *path, const char *ending,
                                           coffer_error *err);
/* Gives the writer a checkpoint and opens its file. */
coffer_status coffer__mldf_checkpoint_open(coffer_mldf_writer *writer, int flags, coffer_error *err);
void coffer__mldf_checkpoint_header(uint8_t out[CHECKPOINT_HEADER_SIZE],
                                    const coffer__mldf_checkpoint *checkpoint);

#endif
