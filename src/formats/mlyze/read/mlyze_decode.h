/* Events from bytes into columns. */
#ifndef COFFER_FORMATS_MLYZE_DECODE_H
#define COFFER_FORMATS_MLYZE_DECODE_H

#include "formats/mlyze/read/mlyze_blocks.h"

/* No event takes less than this: type, delta and one varint. */
#define COFFER__MLYZE_EVENT_MIN 3

/* Why decoding stopped. */
typedef enum coffer__mlyze_stop {
    COFFER__MLYZE_STOP_END,       /* all bytes are used up */
    COFFER__MLYZE_STOP_TRUNCATED, /* the event goes on behind the end */
    COFFER__MLYZE_STOP_TYPE,      /* no event of this file has that type */
    COFFER__MLYZE_STOP_BODY,      /* an extension's body is too short for what it holds */
    COFFER__MLYZE_STOP_VARINT,
    COFFER__MLYZE_STOP_TIME /* past 64 bits */
} coffer__mlyze_stop;

typedef struct coffer__mlyze_decoder {
    const uint8_t *at, *end;  /* `at` moves to the first event that is not decoded */
    uint64_t beyond;          /* bytes that are known to follow `end`: a body that is skipped may lie there */
    uint64_t overrun;         /* how many of them the last event took */
    uint64_t time;            /* before the first event; afterwards of the last */
    bool extensions;          /* types over 3 are there to be skipped */
    bool time_wrapped;        /* the times may be no good */
    coffer_mlyze_events *out; /* counts on from out->count; room for an event per 3 bytes */
    uint64_t overlong;        /* varints that shorter bytes could say, when decoding with care */
    size_t first_overlong;    /* the number in `out` of the event with the first of them */
} coffer__mlyze_decoder;

/* Decodes as far as it can. */
coffer__mlyze_stop coffer__mlyze_decode_events(coffer__mlyze_decoder *decoder);
/* The same, slowly, and counts over-long varints. */
coffer__mlyze_stop coffer__mlyze_decode_with_care(coffer__mlyze_decoder *decoder);
/* Says why it stopped at decoder->at, which is at `offset`, after `whole` events. */
coffer_status coffer__mlyze_fail_stop(coffer_error *err, coffer__mlyze_stop stop,
                                      const coffer__mlyze_decoder *decoder, uint64_t offset, uint64_t whole);

/* Reads and decodes a block whose place and sizes are known; `decoder` says afterwards what was found. */
coffer_status coffer__mlyze_decode_block(coffer_mlyze_events *out, coffer__mlyze_decoder *decoder,
                                         const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                         bool with_care, coffer_error *err);

/* The inner loops: they take what is common and stop at the rest. */
void coffer__mlyze_decode_generic(coffer__mlyze_decoder *decoder);
void coffer__mlyze_decode_avx2(coffer__mlyze_decoder *decoder);

#endif
