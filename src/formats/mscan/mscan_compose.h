/* Making the metadata of a scan that is written: everything the old metadata has, and what is new. */
#ifndef COFFER_FORMATS_MSCAN_COMPOSE_H
#define COFFER_FORMATS_MSCAN_COMPOSE_H

#include "base/buffer.h"
#include "base/table.h"
#include "formats/mscan/mscan_sums.h"

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

#endif
