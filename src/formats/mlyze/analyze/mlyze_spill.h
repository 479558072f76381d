/* The findings of pairing, in a temporary file, for when the table of live blocks does not fit into memory.
 * The addresses are divided into shares by their hash. For each share, one pass over the trace pairs only its
 * addresses and writes the findings to a stream, in order. A last pass reads all streams side by side: the
 * share of an event's address selects the stream. */
#ifndef COFFER_FORMATS_MLYZE_SPILL_H
#define COFFER_FORMATS_MLYZE_SPILL_H

#include "formats/mlyze/analyze/mlyze_live.h"

#include <pthread.h>

/* The result of pairing an allocation or a free. */
typedef struct coffer__mlyze_finding {
    enum {
        COFFER__MLYZE_FOUND_NOTHING, /* a new block, or a free of what is not live */
        COFFER__MLYZE_FOUND_AGAIN,   /* an allocation at an address that was freed before */
        COFFER__MLYZE_FOUND_BLOCK,   /* the block that it frees or replaces */
        COFFER__MLYZE_FOUND_BRIEF    /* a temporary one that it frees */
    } what;
    coffer__mlyze_held block;
} coffer__mlyze_finding;

/* One temporary file for all streams, which append pieces to it in any order. */
typedef struct coffer__mlyze_spool {
    int fd;
    uint64_t size;
    size_t piece_size;
    pthread_mutex_t lock;
} coffer__mlyze_spool;

typedef struct coffer__mlyze_stream {
    uint64_t low, high; /* hashes of its addresses, ends included */
    uint64_t *pieces;   /* where they are in the file */
    size_t piece_count, piece_capacity;
    size_t last_size; /* of the last piece; the others are full */
    uint8_t *buffer;
    size_t used, filled; /* bytes taken out or put in; bytes there when reading */
    size_t next_piece;
} coffer__mlyze_stream;

void coffer__mlyze_stream_free(coffer__mlyze_stream *stream);
coffer_status coffer__mlyze_stream_put(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool,
                                       const coffer__mlyze_finding *finding, coffer_error *err);
coffer_status coffer__mlyze_stream_get(coffer__mlyze_finding *out, coffer__mlyze_stream *stream,
                                       coffer__mlyze_spool *spool, coffer_error *err);

#endif
