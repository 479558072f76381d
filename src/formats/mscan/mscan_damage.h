/* Where the records of a damaged file are (mscan_damage.c), and which of them a repair keeps and could verify
 * (mscan_pieces.c). */
#ifndef COFFER_FORMATS_MSCAN_DAMAGE_H
#define COFFER_FORMATS_MSCAN_DAMAGE_H

#include "formats/mscan/mscan_sums.h"

typedef struct coffer__mscan_area {
    uint64_t start;        /* file offset of the first complete record */
    uint64_t count;        /* complete records from there on */
    uint64_t lost;         /* records that the header counts and that are missing or incomplete */
    uint64_t trailing;     /* bytes after the last record */
    bool overwritten_head; /* the lost ones were in front: the metadata grew over them */
    /* Bytes are missing in the middle: these records follow the gap and end with the file. */
    uint64_t tail_start, tail_count;
    bool uncertain; /* records could start in several places, and nothing says which is right */
} coffer__mscan_area;

/* metadata : NULL when it could not be read. Reads all records if some are missing. */
coffer_status coffer__mscan_locate_records(coffer__mscan_area *out, coffer_source *src,
                                           const coffer__mscan_header *header,
                                           const coffer__mscan_metadata *metadata, coffer_error *err);

/* Reads metadata whose bytes are not all UTF-8: the others become U+FFFD. */
coffer_status coffer__mscan_read_replaced(coffer__mscan_metadata *out, coffer_source *src,
                                          const coffer__mscan_header *header, const coffer_limits *limits,
                                          coffer_report *found, coffer_error *err);
/* Reads metadata that is surrounded by a byte order mark, zeros or other bytes; COFFER_E_BAD_JSON when it is
 * not found. */
coffer_status coffer__mscan_read_surrounded(coffer__mscan_metadata *out, coffer_source *src,
                                            const coffer__mscan_header *header, const coffer_limits *limits,
                                            coffer_report *found, coffer_error *err);

/* ---- The records that are kept ---- */

/* Consecutive records. */
typedef struct coffer__mscan_piece {
    uint64_t offset;    /* in the damaged file */
    uint64_t count;     /* records */
    uint64_t old_first; /* number of its first record as the header counts */
    uint64_t new_first; /* and in the new file */
} coffer__mscan_piece;

typedef struct coffer__mscan_pieces {
    coffer_source *source;
    const coffer__mscan_header *header;
    const coffer__mscan_metadata *metadata;
    coffer__mscan_piece *list;
    size_t count, capacity;
    uint64_t total;   /* records */
    uint64_t unmoved; /* records at the front that keep their numbers */
    uint64_t dropped, dropped_offset;
    uint64_t past_count; /* records whose token is not in a sequence */
    uint32_t max_token;
    uint64_t used_ids[COFFER__MSCAN_PARAM_IDS / 64]; /* one bit for each param_id */

    coffer__mscan_mark *marks;
    size_t mark_count, mark_capacity;
    uint8_t *bad_sequences; /* by index: 1 where the records do not match the CRC; NULL = none */
} coffer__mscan_pieces;

/* Divides the records into pieces, without those whose token is not below token_limit. Everything but the
 * area is borrowed. */
coffer_status coffer__mscan_pieces_find(coffer__mscan_pieces *out, const coffer__mscan_area *area,
                                        coffer_source *src, const coffer__mscan_header *header,
                                        const coffer__mscan_metadata *metadata, uint64_t token_limit,
                                        coffer_error *err);
void coffer__mscan_pieces_free(coffer__mscan_pieces *pieces);

/* Marks the metadata as damaged. */
coffer_status coffer__mscan_pieces_mark_metadata(coffer__mscan_pieces *pieces, coffer_error *err);
/* Compares all checksums of the damaged file with the pieces, and marks what differs or has none while other
 * records have. Marks of the damaged file itself are kept. */
coffer_status coffer__mscan_pieces_verify(coffer__mscan_pieces *pieces, coffer_error *err);
/* The sums of the new file. */
coffer_status coffer__mscan_pieces_sum(coffer__chunk_counter *out, const coffer__mscan_pieces *pieces,
                                       coffer_error *err);

#endif
