/* Archive blocks: up to a million events, each column coded by itself (docs/formats/mlyze.md, "Archive").
 *
 * The blocks that a free can name are numbered within the archive block: first the imports, blocks that were
 * allocated before it and are freed in it, in the order of their allocation, then its own allocations. */
#ifndef COFFER_FORMATS_MLYZE_ARCHIVE_H
#define COFFER_FORMATS_MLYZE_ARCHIVE_H

#include "base/buffer.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/archive/mlyze_archive_model.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/read/mlyze_decode.h"

/* ---- Reading ---- */

typedef struct coffer__mlyze_stream_cursor {
    const uint8_t *at, *end;
} coffer__mlyze_stream_cursor;

typedef struct coffer__mlyze_unpacker {
    const coffer_mlyze *trace;
    coffer__mlyze_block block;
    /* Give names of blocks + 1 instead of addresses, which are not decoded then; 0 for address 0, UINT64_MAX
     * for one that is not live. */
    bool by_name;
    uint8_t *raw;
    size_t raw_capacity;
    coffer__mlyze_stream_cursor streams[COFFER__MLYZE_STREAMS];
    uint64_t first_alloc;
    uint32_t alloc_count, import_count;
    uint32_t event; /* decoded so far */
    uint32_t known; /* imports and allocations so far */
    uint32_t named; /* the last block that was named by a distance */
    uint64_t time, place, stack;
    uint16_t thread;
    bool replaces;                /* an allocation at a live address was met */
    const uint8_t *others_before; /* OTHERS before the last call of coffer__mlyze_unpack_some */
    uint64_t *values;             /* of the known blocks: addresses, or numbers of the imports */
    uint16_t *classes;            /* of the known blocks; COFFER__MLYZE_CLASS_GONE = freed */
    size_t known_capacity;
    coffer__mlyze_model *model;
} coffer__mlyze_unpacker;

/* Reads the block and verifies its checksum. An unpacker of zeros may be opened, again and again; the caller
 * frees it even on failure. */
coffer_status coffer__mlyze_unpack_open(coffer__mlyze_unpacker *unpacker, const coffer_mlyze *trace,
                                        const coffer__mlyze_block *block, bool by_name, coffer_error *err);
/* Decodes the next `max` events, or all that are left, into the columns from row 0 on; they have the room.
 * After the last event everything is compared with the directory of the block. */
coffer_status coffer__mlyze_unpack_some(coffer_mlyze_events *out, coffer__mlyze_unpacker *unpacker,
                                        size_t max, coffer_error *err);
void coffer__mlyze_unpacker_free(coffer__mlyze_unpacker *unpacker);

/* The number of a named allocation. */
static inline uint64_t coffer__mlyze_number_of(const coffer__mlyze_unpacker *unpacker, uint64_t name)
{
    return name < unpacker->import_count ? unpacker->values[name]
                                         : unpacker->first_alloc + (name - unpacker->import_count);
}

/* The whole block. *time : of its last event. */
coffer_status coffer__mlyze_unpack_block(coffer_mlyze_events *out, uint64_t *time, const coffer_mlyze *trace,
                                         const coffer__mlyze_block *block, coffer_error *err);

/* ---- Writing ---- */

typedef struct coffer__mlyze_import {
    uint64_t number, address;
    uint16_t size_class;
} coffer__mlyze_import;

/* Events on their way into a block. */
typedef struct coffer__mlyze_pending {
    uint8_t *kind;
    uint16_t *thread;
    uint64_t *time, *address, *size, *id;
    uint64_t *names; /* the number of the block that a free names */
    size_t count;
} coffer__mlyze_pending;

/* Takes the bytes of a finished block. */
typedef coffer_status coffer__mlyze_put_bytes(void *context, const uint8_t *bytes, size_t len,
                                              coffer_error *err);

/* Where the bytes of extension events are, which columns do not have completely. */
typedef struct coffer__mlyze_bodies {
    const uint8_t *bytes; /* NULL = without extension events */
    size_t len;
    bool others_only; /* the bytes have no ALLOC and FREE events */
} coffer__mlyze_bodies;

typedef struct coffer__mlyze_packer {
    coffer__mlyze_put_bytes *put;
    void *put_context;
    int level;
    coffer__mlyze_live live;
    coffer__mlyze_budget budget;
    coffer__mlyze_pending pending;
    uint64_t alloc_count; /* of the whole trace */
    uint64_t first_alloc; /* of the block */
    uint64_t start, time; /* before the first event of the block; of the last event */
    coffer__mlyze_import *imports;
    size_t import_count, import_capacity;
    coffer__buffer streams[COFFER__MLYZE_STREAMS];
    coffer__buffer block;
    void *context; /* of zstd */
    coffer__mlyze_model *model;
} coffer__mlyze_packer;

/* Free it even on failure. level : of zstd, 0 = the default. */
coffer_status coffer__mlyze_packer_init(coffer__mlyze_packer *packer, coffer__mlyze_put_bytes *put,
                                        void *put_context, int level, const coffer_limits *limits,
                                        coffer_error *err);
void coffer__mlyze_packer_free(coffer__mlyze_packer *packer);
/* Adds events and writes the blocks that are full. Times that decrease are raised. */
coffer_status coffer__mlyze_packer_add(coffer__mlyze_packer *packer, const coffer_mlyze_events *events,
                                       const coffer__mlyze_bodies *bodies, coffer_error *err);
/* Writes the last block. */
coffer_status coffer__mlyze_packer_end(coffer__mlyze_packer *packer, coffer_error *err);

/* Steps through the bytes of events whose columns are known. */
typedef struct coffer__mlyze_body_walk {
    coffer__mlyze_decoder decoder;
    coffer_mlyze_events columns;
    uint64_t numbers[4]; /* one row of the columns */
    uint16_t thread;
    uint8_t type;
    bool walks, others_only;
} coffer__mlyze_body_walk;

void coffer__mlyze_body_walk_begin(coffer__mlyze_body_walk *walk, const coffer__mlyze_bodies *bodies);
/* The bytes of the next event, which is of this type, from after its delta on. Call it for every event. */
const uint8_t *coffer__mlyze_body_walk_next(size_t *len, coffer__mlyze_body_walk *walk, uint8_t type);

/* Compresses the streams into packer->block: directory and streams, without the header of the block. */
coffer_status coffer__mlyze_pack_streams(coffer__mlyze_packer *packer, uint32_t *raw_size, coffer_error *err);

#endif
