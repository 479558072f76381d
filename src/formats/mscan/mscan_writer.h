/* A scan that is being written. New files and appends differ in where records go and in how they are
 * committed (mscan_write.c, mscan_append.c); the rest is one. */
#ifndef COFFER_FORMATS_MSCAN_WRITER_H
#define COFFER_FORMATS_MSCAN_WRITER_H

#include "base/buffer.h"
#include "base/fail.h"
#include "base/table.h"
#include "formats/mscan/mscan_private.h"
#include "formats/mscan/mscan_sums.h"
#include "io/journal.h"
#include "io/sink.h"

/* Making the metadata of a scan that is written: everything the old metadata has, and what is new. */
typedef struct coffer__mscan_new_sequence {
    uint64_t sequence_id, num_tokens;
    char *source; /* owned by whoever holds the list; NULL = none */
    size_t source_len;
    const coffer__json_value *others; /* an entry whose other keys are copied; borrowed, NULL = none */
    bool has_extent;                  /* the three below */
    uint64_t first_record, num_records;
    uint32_t crc;
} coffer__mscan_new_sequence;

typedef struct coffer__mscan_draft {
    const coffer__mscan_metadata *base; /* its keys and their order are kept */
    const coffer__id_names *names;      /* all names with ids up to 65535, those of base included */
    const coffer__mscan_new_sequence *added;
    size_t added_count;
    bool renumber;         /* give the sequences of base the ids 0, 1, 2 … */
    uint64_t extent_limit; /* places of records of base's sequences are left out when they pass this count */
    const uint32_t *sums;  /* of each MiB of records */
    size_t sum_count;
    const coffer__mscan_mark *marks; /* the value of "damage"; base's is not copied */
    size_t mark_count;
    const uint8_t *bad_sequences; /* by index of base: 1 = leave its crc32 out; NULL = none */
} coffer__mscan_draft;

/* Begins with the names of `base`, which must outlive the table. */
coffer_status coffer__mscan_names_init(coffer__id_names *names, const coffer__mscan_metadata *base,
                                       coffer_error *err);

/* Appends the JSON, on one line; it ends with a seal that coffer__mscan_close_seal closes. */
coffer_status coffer__mscan_compose(coffer__buffer *out, const coffer__mscan_draft *draft, coffer_error *err);

/* The metadata of an empty scan. extra : an object whose keys are carried over, or NULL. */
coffer_status coffer__mscan_compose_empty(coffer__mscan_metadata *out, const coffer_mscan_writer_opts *opts,
                                          const coffer__json_value *extra, const coffer_limits *limits,
                                          coffer_error *err);

/* Where records start when metadata of json_len bytes gets `room` more to grow: COFFER_E_LIMIT when the
 * header cannot say it. */
coffer_status coffer__mscan_place_records(uint32_t *out, uint64_t json_len, uint64_t room, coffer_error *err);
/* Room to leave where the caller does not choose: 16 KiB or a quarter of the metadata. */
uint64_t coffer__mscan_default_room(uint64_t json_len);

struct coffer_mscan_writer {
    char *path;
    coffer__sticky sticky; /* the first failed write */

    coffer__mscan_metadata base; /* of the file appended to, or of an empty one */
    coffer__id_names names;
    coffer__mscan_new_sequence *sequences; /* new ones; the last is open while in_sequence */
    size_t sequence_count, sequence_capacity;
    bool in_sequence;
    uint64_t next_sequence_id;
    uint64_t total_tokens;       /* of the sequences before the open one */
    uint64_t tokens_in_sequence; /* 1 + the largest token_idx of the open one */
    uint64_t record_count;       /* old and new */
    uint64_t old_record_count;
    uint64_t extent_limit;      /* as in coffer__mscan_draft */
    coffer__chunk_counter sums; /* of the records, old and new */
    uint32_t area;              /* where the records start; 0 in a new file until the first is written */
    uint64_t reserve;           /* room the caller asked for, 0 = default */

    /* A new file. */
    bool rewrites; /* it replaces a file that is read and locked, and is locked when it appears */
    coffer__sink *sink;
    bool overwrite;
    int spool; /* records wait here when the sink cannot be patched, else −1 */

    /* An append. */
    coffer__update *update;
    bool begun;     /* the journal is written */
    bool edited;    /* the metadata was changed: commit even without new sequences */
    bool must_move; /* bytes of an unfinished append follow the last record */
    uint64_t old_size;
};

/* Begins a new file; rewrites : it takes the place of one that is read and locked. */
coffer_status coffer__mscan_writer_begin(coffer_mscan_writer **out, const char *path,
                                         const coffer_mscan_writer_opts *opts, bool rewrites,
                                         coffer_error *err);
/* Frees the writer and rolls back what was not committed. */
void coffer__mscan_writer_free(coffer_mscan_writer *writer);
coffer_mscan_writer *coffer__mscan_writer_new(const char *path, coffer_error *err);
/* The metadata with everything added so far. */
coffer_status coffer__mscan_writer_compose(coffer__buffer *out, coffer_mscan_writer *writer,
                                           coffer_error *err);
/* Closes the seal of the metadata; writes header, metadata and spaces up to where the records start. */
coffer_status coffer__mscan_write_front(coffer__sink *sink, uint32_t area, uint64_t record_count,
                                        coffer__buffer *json, coffer_error *err);

/* Writing and committing of an append. */
coffer_status coffer__mscan_append_records(coffer_mscan_writer *writer, const uint8_t *packed, size_t len,
                                           coffer_error *err);
coffer_status coffer__mscan_commit_append(coffer_mscan_writer *writer, coffer__buffer *json,
                                          coffer_error *err);

#endif
