/* Blocks of one trace into another. */
#ifndef COFFER_FORMATS_MLYZE_WRITE_COPY_H
#define COFFER_FORMATS_MLYZE_WRITE_COPY_H

#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/write/mlyze_write.h"

typedef struct coffer__mlyze_copy {
    coffer__sink *sink;
    const coffer_mlyze *from;
    const coffer_mlyze_writer_opts *opts;
    bool keep_packed;   /* blocks that are compressed stay as they are */
    bool keep_unpacked; /* so do those that are not */
    bool sorts;         /* no event is earlier than the one before it, whatever the blocks say */
    coffer__mlyze_sealer sealer;
    coffer_mlyze_events columns; /* of the last block */
    coffer__mlyze_raw *raw;
    uint64_t run, run_end; /* of the source, to be copied as it is */
    uint64_t time;         /* of the last event */
    uint64_t start;        /* where the area begins in the sink */
    bool extensions;
} coffer__mlyze_copy;

/* Zeroed before; free it whether this succeeds or not. The sink is where the events begin. */
coffer_status coffer__mlyze_copy_init(coffer__mlyze_copy *copy, coffer__sink *sink, const coffer_mlyze *from,
                                      const coffer_mlyze_writer_opts *opts, coffer_error *err);
void coffer__mlyze_copy_free(coffer__mlyze_copy *copy);
coffer_status coffer__mlyze_copy_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                       coffer_error *err);
/* Writes what is left, and gives the length of the area. */
coffer_status coffer__mlyze_copy_end(coffer__mlyze_copy *copy, uint64_t *area_len, coffer_error *err);

/* PATH.part as if it were the events of a trace. */
void coffer__mlyze_part_as_trace(coffer_mlyze *out, coffer_source *part, const coffer_limits *limits);

#endif
