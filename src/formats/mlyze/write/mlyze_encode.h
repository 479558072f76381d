/* Events to bytes, and bytes to blocks. */
#ifndef COFFER_FORMATS_MLYZE_ENCODE_H
#define COFFER_FORMATS_MLYZE_ENCODE_H

#include "coffer/mlyze.h"
#include "formats/mlyze/mlyze_layout.h"

/* The longest event of a known type: ALLOC. */
#define COFFER__MLYZE_EVENT_MAX 41
/* Encoding may write this far past the end of an event. */
#define COFFER__MLYZE_ENCODE_SLACK 64

/* One event, as a row of the columns. */
typedef struct coffer__mlyze_event_row {
    uint64_t time, address, size, id;
    uint16_t thread;
    uint8_t type;
} coffer__mlyze_event_row;

/* Whole events on their way into a block. */
typedef struct coffer__mlyze_raw {
    uint8_t bytes[COFFER__MLYZE_BLOCK_RAW_MAX + COFFER__MLYZE_ENCODE_SLACK];
    size_t len;
    uint32_t count;
    uint64_t start; /* time before the first of them */
    uint64_t time;  /* of the last of them */
} coffer__mlyze_raw;

/* Removes the events, keeps the time. */
void coffer__mlyze_raw_clear(coffer__mlyze_raw *raw);
/* Adds the columns from row `from` on until one does not fit, and returns how many it added. All types are
 * known ones. */
size_t coffer__mlyze_raw_add(coffer__mlyze_raw *raw, const coffer_mlyze_events *events, size_t from);

/* Compresses events into blocks. */
typedef struct coffer__mlyze_sealer {
    int level;
    void *state;    /* of LZ4 */
    uint8_t *block; /* header and stored bytes of the last one */
    size_t len;
} coffer__mlyze_sealer;

coffer_status coffer__mlyze_sealer_init(coffer__mlyze_sealer *sealer, int level, coffer_error *err);
void coffer__mlyze_sealer_free(coffer__mlyze_sealer *sealer);
/* Fills sealer->block with a block of `len` bytes of whole events, at most COFFER__MLYZE_BLOCK_RAW_MAX. */
void coffer__mlyze_seal(coffer__mlyze_sealer *sealer, const uint8_t *events, size_t len, uint32_t count,
                        uint64_t start);

#endif
