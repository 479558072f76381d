/* What pairing found out, written to a temporary file when the table of live blocks would be too large for
 * memory. The addresses are divided by their hash; for one share after the other the trace is gone through
 * with a table of that share alone, and what its events found out goes to a stream, in their order. A last
 * pass reads all streams side by side: the share of an event's address names the stream to read. */
#ifndef COFFER_FORMATS_MLYZE_SPILL_H
#define COFFER_FORMATS_MLYZE_SPILL_H

#include "formats/mlyze/analyze/mlyze_live.h"

#include <pthread.h>

/* What an allocation or free found out. */
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

coffer_status coffer__mlyze_spool_open(coffer__mlyze_spool *spool, size_t piece_size, coffer_error *err);
void coffer__mlyze_spool_close(coffer__mlyze_spool *spool);

void coffer__mlyze_stream_free(coffer__mlyze_stream *stream);
coffer_status coffer__mlyze_stream_put(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool,
                                       const coffer__mlyze_finding *finding, coffer_error *err);
/* Writes what is left in the buffer and gives it back. */
coffer_status coffer__mlyze_stream_end(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool,
                                       coffer_error *err);
coffer_status coffer__mlyze_stream_get(coffer__mlyze_finding *out, coffer__mlyze_stream *stream,
                                       coffer__mlyze_spool *spool, coffer_error *err);

#endif
