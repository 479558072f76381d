/* Blocks of one trace into another. */
#ifndef COFFER_FORMATS_MLYZE_WRITE_COPY_H
#define COFFER_FORMATS_MLYZE_WRITE_COPY_H

#include "formats/mlyze/archive/mlyze_archive.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/write/mlyze_write.h"

typedef struct coffer__mlyze_copy {
    coffer__sink *sink;
    const coffer_mlyze *from;
    const coffer_mlyze_writer_opts *opts;
    bool keep_packed;   /* copy compressed blocks unchanged */
    bool keep_unpacked; /* copy uncompressed blocks unchanged */
    bool sorts;         /* raise times that decrease between blocks */
    coffer__mlyze_sealer sealer;
    coffer__mlyze_packer packer;     /* into an archive */
    coffer__mlyze_unpacker unpacker; /* out of one */
    coffer_mlyze_events columns;     /* of the last block */
    coffer__mlyze_raw *raw;
    uint64_t run, run_end; /* of the source, copied unchanged */
    uint64_t time;         /* of the last event */
    uint64_t start;        /* where the area begins in the sink */
    bool extensions;
    uint64_t dropped; /* extension events that opts->drop_extensions left out */
} coffer__mlyze_copy;

/* Zero `copy` before; free it even on failure. The sink must be at the start of the events. */
coffer_status coffer__mlyze_copy_init(coffer__mlyze_copy *copy, coffer__sink *sink, const coffer_mlyze *from,
                                      const coffer_mlyze_writer_opts *opts, coffer_error *err);
void coffer__mlyze_copy_free(coffer__mlyze_copy *copy);
coffer_status coffer__mlyze_copy_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                       coffer_error *err);
/* Writes the rest and returns the length of the area. */
coffer_status coffer__mlyze_copy_end(coffer__mlyze_copy *copy, uint64_t *area_len, coffer_error *err);

/* Copies a block of an archive; the others are copied by coffer__mlyze_copy_block (mlyze_archive_copy.c). */
coffer_status coffer__mlyze_copy_archive_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                               coffer_error *err);
/* Leaves out extension events; returns their number. */
size_t coffer__mlyze_drop_extensions(coffer_mlyze_events *columns);
/* Writes the events that were collected in copy->raw. */
coffer_status coffer__mlyze_copy_flush(coffer__mlyze_copy *copy, coffer_error *err);
coffer_status coffer__mlyze_fail_extension(coffer_error *err, uint64_t offset, uint64_t event, uint8_t type);

/* PATH.part as if it were the events of a trace. full_sums : its version is 2. */
void coffer__mlyze_part_as_trace(coffer_mlyze *out, coffer_source *part, bool full_sums,
                                 const coffer_limits *limits);

#endif
