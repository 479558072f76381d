/* A batch being read: what the files of the batch reader share.
 *
 * A call goes through these steps, each on all threads: the rows of the samples give the place of every
 * value; where values are contiguous, their sizes give the place they go to (a frame that does not
 * tell is decoded at once and waits); values are read in the order of their places in the file. */
#ifndef COFFER_FORMATS_MLDF_BATCH_H
#define COFFER_FORMATS_MLDF_BATCH_H

#include "base/work.h"
#include "formats/mldf/mldf_private.h"

typedef enum coffer__mldf_wanted_state {
    COFFER__MLDF_ABSENT,
    COFFER__MLDF_WANTED, /* to be read */
    COFFER__MLDF_STAGED, /* decoded, in the memory of a worker */
    COFFER__MLDF_DONE,
    COFFER__MLDF_DAMAGED,
    COFFER__MLDF_TOO_LARGE /* for the room that the caller gave */
} coffer__mldf_wanted_state;

/* One value that is asked for. */
typedef struct coffer__mldf_wanted {
    uint64_t offset;     /* of the payload in the file */
    uint64_t to;         /* where it goes in the target's memory */
    uint64_t staged_at;  /* in the memory of the worker that decoded it */
    uint32_t size;       /* stored */
    uint32_t value_size; /* decoded, once it is known */
    uint32_t room;       /* bytes it may take there */
    uint32_t index;      /* of the sample in the call */
    uint32_t staged_by;
    uint16_t target;
    uint8_t state;
} coffer__mldf_wanted;

/* A number to sort by, and what it belongs to. */
typedef struct coffer__mldf_key {
    uint64_t key;
    uint64_t index;
} coffer__mldf_key;

/* Neighboring values in the order of the file. */
typedef struct coffer__mldf_run {
    size_t first, count; /* of the sorted keys */
    uint64_t from, to;   /* bytes of the file */
} coffer__mldf_run;

typedef struct coffer__mldf_batch_worker {
    coffer__mldf_decoder *decoder;
    coffer_bytes bytes;  /* of the file, where it is not mapped */
    coffer_bytes value;  /* a decoded value whose size was not known */
    coffer_bytes staged; /* those that wait for their place; size = used */
} coffer__mldf_batch_worker;

struct coffer_mldf_batch {
    const coffer_mldf *set;
    coffer_mldf_batch_opts opts;
    coffer__pool *pool;
    coffer__mldf_batch_worker *workers;
    bool mapped; /* views are to be had */

    /* Arguments of the call. */
    const uint64_t *samples;
    size_t count;
    size_t target_count;

    /* Kept from call to call. */
    coffer_mldf_target *targets;
    size_t target_capacity;
    coffer__mldf_wanted *wanted; /* target_count for each sample */
    coffer__mldf_key *keys, *spare_keys;
    coffer__mldf_run *runs;
    size_t wanted_capacity, key_count, key_capacity, run_count;
    coffer_bytes scratch; /* of the calling thread */
    _Atomic(bool) any_damaged;
};

/* Sorts by key; equal keys keep their order. spare : as many. */
void coffer__mldf_sort_keys(coffer__mldf_key *keys, coffer__mldf_key *spare, size_t count);

/* Tells a remote source which runs come next, so that it fetches them together. */
void coffer__mldf_batch_announce(const coffer_mldf_batch *batch);

/* mldf_batch_rows.c: fills `wanted` from the rows, and the targets whose values are in the row. */
coffer_status coffer__mldf_batch_rows(coffer_mldf_batch *batch, coffer_error *err);
/* mldf_batch_sizes.c: value sizes of the targets without a stride. */
coffer_status coffer__mldf_batch_sizes(coffer_mldf_batch *batch, coffer_error *err);
/* mldf_batch_values.c: reads what is wanted to where it belongs. */
coffer_status coffer__mldf_batch_values(coffer_mldf_batch *batch, coffer_error *err);
/* One value out of its stored bytes into room; *size gets its length. */
coffer_status coffer__mldf_batch_value(coffer__mldf_room *room, size_t *size, coffer_mldf_batch *batch,
                                       coffer__mldf_batch_worker *worker, const coffer__mldf_wanted *wanted,
                                       const uint8_t *stored, uint32_t crc, coffer_error *err);
/* Marks a value that could not be read, or passes the failure on, as the policy and its kind ask for. */
coffer_status coffer__mldf_batch_failed(coffer_mldf_batch *batch, coffer__mldf_wanted *wanted,
                                        const coffer_error *failure, coffer_error *err);

static inline const coffer_mldf_field *coffer__mldf_batch_field(const coffer_mldf_batch *batch,
                                                                const coffer__mldf_wanted *wanted)
{
    return &batch->set->schema.fields[batch->targets[wanted->target].field];
}

#endif
