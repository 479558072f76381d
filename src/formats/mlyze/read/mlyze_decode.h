/* Events from bytes into columns. */
#ifndef COFFER_FORMATS_MLYZE_DECODE_H
#define COFFER_FORMATS_MLYZE_DECODE_H

#include "formats/mlyze/read/mlyze_blocks.h"

/* No event takes less than this: type, delta and one varint. */
#define COFFER__MLYZE_EVENT_MIN 3

/* Why decoding stopped. */
typedef enum coffer__mlyze_stop {
    COFFER__MLYZE_STOP_END,       /* all bytes are decoded */
    COFFER__MLYZE_STOP_TRUNCATED, /* the event extends past the end */
    COFFER__MLYZE_STOP_TYPE,      /* the type is not allowed in this file */
    COFFER__MLYZE_STOP_BODY,      /* the body of an extension is too short for its type */
    COFFER__MLYZE_STOP_VARINT,
    COFFER__MLYZE_STOP_TIME /* past 64 bits */
} coffer__mlyze_stop;

typedef struct coffer__mlyze_decoder {
    const uint8_t *at, *end;  /* `at` moves to the first event that is not decoded */
    uint64_t beyond;          /* bytes that follow `end`: a skipped body may extend into them */
    uint64_t overrun;         /* how many of them the last event took */
    uint64_t time;            /* before the first event; afterwards of the last */
    bool extensions;          /* types over 3 are extensions */
    bool time_wrapped;        /* the times may have wrapped */
    coffer_mlyze_events *out; /* appends from out->count on; room for an event per 3 bytes */
    uint64_t overlong;        /* over-long varints, when decoding with care */
    size_t first_overlong;    /* the number in `out` of the event with the first of them */
} coffer__mlyze_decoder;

/* Decodes the event at decoder->at and moves past it. */
coffer__mlyze_stop coffer__mlyze_decode_event(coffer__mlyze_decoder *decoder);
/* Decodes as far as it can. */
coffer__mlyze_stop coffer__mlyze_decode_events(coffer__mlyze_decoder *decoder);
/* The same, slowly, and counts over-long varints. */
coffer__mlyze_stop coffer__mlyze_decode_with_care(coffer__mlyze_decoder *decoder);
/* Fails with the reason why it stopped at decoder->at, which is at `offset`, after `whole` events. */
coffer_status coffer__mlyze_fail_stop(coffer_error *err, coffer__mlyze_stop stop,
                                      const coffer__mlyze_decoder *decoder, uint64_t offset, uint64_t whole);

/* Reads and decodes a block whose offset and sizes are known. decoder : its state afterwards. */
coffer_status coffer__mlyze_decode_block(coffer_mlyze_events *out, coffer__mlyze_decoder *decoder,
                                         const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                         bool with_care, coffer_error *err);

/* The inner loops: they decode common events and stop at any other. */
void coffer__mlyze_decode_generic(coffer__mlyze_decoder *decoder);
void coffer__mlyze_decode_avx2(coffer__mlyze_decoder *decoder);

#endif
