/* The checksums of a scan: one over everything before the records (the seal), and one for each MiB of records
 * or, in files of Coffer 0.1, for each sequence. docs/formats/mscan.md describes the keys. */
#ifndef COFFER_FORMATS_MSCAN_SUMS_H
#define COFFER_FORMATS_MSCAN_SUMS_H

#include "base/buffer.h"
#include "base/json_write.h"
#include "coffer/report.h"
#include "formats/mscan/mscan_private.h"
#include "io/chunk_sums.h"

#define COFFER__MSCAN_SUMS_KEY "checksums"
#define COFFER__MSCAN_SEAL_KEY "front_crc32"
#define COFFER__MSCAN_DAMAGE_KEY "damage"
#define COFFER__MSCAN_TABLE_KEY "table_units" /* of metadata next to a table, never in a scan */

/* ---- The seal ---- */

/* The checksum that the front of a file has and the one it should have. text : the metadata and the spaces
 * after it. */
coffer__mscan_seal coffer__mscan_seal_of(const coffer__mscan_header *header, const char *text, size_t len);
/* Puts the checksum into metadata that ends with an empty seal, for a file with `area` bytes before its
 * records. */
void coffer__mscan_close_seal(coffer__buffer *json, uint32_t area, uint64_t record_count);
/* Whether front and seal agree. With a report, what is wrong is added to it and COFFER_OK returned. */
coffer_status coffer__mscan_check_seal(const coffer__mscan_metadata *metadata, uint64_t record_count,
                                       coffer_report *report, coffer_error *err);

/* ---- Sums in the metadata ---- */

/* The keys "checksums" and "front_crc32", the last of the metadata. */
void coffer__mscan_write_sums(coffer__json_writer *json, const uint32_t *sums, size_t count);
/* The sums of the metadata; false without usable ones. They are the caller's: coffer__free. *sums is NULL
 * when there are no records. */
coffer_status coffer__mscan_load_sums(bool *found, uint32_t **sums, const coffer__mscan_metadata *metadata,
                                      uint64_t record_count, coffer_error *err);

/* ---- Verified reads ---- */

/* Bytes of the record area that one checksum covers. */
typedef struct coffer__mscan_range {
    uint64_t offset, len; /* offset from the first record */
    uint32_t crc;
    size_t sequence; /* index, COFFER_INDEX_NONE for a MiB of the table */
} coffer__mscan_range;

/* Compares with the table, or without one with the checksums of the sequences; by_sequence : only with those.
 * *out is NULL when the file has no checksums of records. src : borrowed. area : offset of the records. */
coffer_status coffer__mscan_verifier_new(coffer__mscan_verifier **out, coffer_source *src, uint64_t area,
                                         uint64_t record_count, const coffer__mscan_metadata *metadata,
                                         bool by_sequence, coffer_error *err);
void coffer__mscan_verifier_free(coffer__mscan_verifier *verifier);
/* Verifies the checksums of all ranges that overlap these records, each once; COFFER_E_BAD_CHECKSUM for the
 * first that differs, unless the caller accepts damage (coffer_source_keep_damaged). verifier : NULL verifies
 * nothing. Any number of threads may call it. */
coffer_status coffer__mscan_verify(coffer__mscan_verifier *verifier, uint64_t first, uint64_t count,
                                   coffer_error *err);
/* The same for all records, also when the caller accepts damage: for records that are copied. */
coffer_status coffer__mscan_verify_all(coffer__mscan_verifier *verifier, uint64_t count, coffer_error *err);
size_t coffer__mscan_verifier_count(const coffer__mscan_verifier *verifier); /* ranges; NULL allowed */
const coffer__mscan_range *coffer__mscan_verifier_at(const coffer__mscan_verifier *verifier, size_t index);
/* The CRC-32 of a range as it is in the file. */
coffer_status coffer__mscan_range_crc(uint32_t *out, const coffer__mscan_verifier *verifier, size_t index,
                                      coffer_error *err);

#endif
