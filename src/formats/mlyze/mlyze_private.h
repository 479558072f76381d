/* Shared by the files of this folder. */
#ifndef COFFER_FORMATS_MLYZE_PRIVATE_H
#define COFFER_FORMATS_MLYZE_PRIVATE_H

#include "base/bytes.h"
#include "coffer/format.h"
#include "coffer/mlyze.h"
#include "formats/mlyze/mlyze_layout.h"
#include "formats/mlyze/read/mlyze_blocks.h"
#include "formats/mlyze/read/mlyze_metadata.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct coffer__mlyze_header {
    uint8_t bytes[COFFER__MLYZE_HEADER_SIZE];
    uint32_t version, flags, metadata_len;
    uint64_t start_time;
    uint64_t event_count;  /* 0 = not known */
    uint64_t event_length; /* of the event area; 0 = to the end of the file */
} coffer__mlyze_header;

/* Reads and checks the 256 bytes except the checksum. After success the metadata is inside the file. */
coffer_status coffer__mlyze_read_header(coffer__mlyze_header *out, coffer_source *src, coffer_error *err);
/* The checksum of a header under its flags. */
uint32_t coffer__mlyze_header_sum(const uint8_t header[COFFER__MLYZE_HEADER_SIZE], uint32_t flags);
/* COFFER_OK also without checksums. */
coffer_status coffer__mlyze_check_header_sum(const coffer__mlyze_header *header, coffer_error *err);
coffer_status coffer__mlyze_check_metadata_sum(const coffer__mlyze_header *header, const char *text,
                                               coffer_error *err);
/* Reads the header->metadata_len bytes of the metadata unchanged; coffer__free(). */
coffer_status coffer__mlyze_read_metadata(char **out, coffer_source *src, const coffer__mlyze_header *header,
                                          const coffer_limits *limits, coffer_error *err);

/* The checksum at the end of the JSON of a plain trace; false without one. len : without spaces after it. */
bool coffer__mlyze_find_plain_sum(uint32_t *out, const char *text, size_t len);
/* Compares a trace without checksums in its header with that checksum, if it has one. */
coffer_status coffer__mlyze_verify_plain(const coffer_mlyze *trace, coffer_error *err);

static inline bool coffer__mlyze_has_blocks(const coffer__mlyze_header *header)
{
    return header->flags & COFFER__MLYZE_FLAG_BLOCKS;
}

static inline bool coffer__mlyze_has_archive(const coffer__mlyze_header *header)
{
    const uint32_t both = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_ARCHIVE;
    return (header->flags & both) == both;
}

static inline bool coffer__mlyze_has_tables(const coffer__mlyze_header *header)
{
    return header->flags & COFFER__MLYZE_FLAG_TABLES;
}

static inline bool coffer__mlyze_has_sums(const coffer__mlyze_header *header)
{
    return header->flags & COFFER__MLYZE_FLAG_CHECKSUMS;
}

static inline bool coffer__mlyze_has_full_sums(const coffer__mlyze_header *header)
{
    return header->flags & COFFER__MLYZE_FLAG_FULL_SUMS;
}

static inline bool coffer__mlyze_has_extensions(const coffer__mlyze_header *header)
{
    return header->version >= 2 || header->flags & COFFER__MLYZE_FLAG_EXTENSIONS;
}

/* The JSON of a trace with compact tables, with its stacks. */
typedef struct coffer__mlyze_whole {
    pthread_mutex_t lock;
    char *text; /* NULL = not made so far */
    size_t len;
} coffer__mlyze_whole;

struct coffer_mlyze {
    coffer_source *source;     /* borrowed, or own_source */
    coffer_source *own_source; /* closed with the handle; NULL = none */
    coffer_limits limits;
    coffer__mlyze_header header;
    coffer__mlyze_metadata metadata;
    uint64_t area, area_end; /* the events, as far as the file has them */
    char *index_path;        /* or NULL */
    coffer__mlyze_blocks *blocks;
    coffer__mlyze_built *built; /* an index that had to be built */
    coffer__mlyze_whole *whole;
};

/* A handle without metadata: every table is empty. coffer_mlyze_close(). */
coffer_status coffer__mlyze_open_events(coffer_mlyze **out, coffer_source *src,
                                        const coffer__mlyze_header *header, const coffer_limits *limits,
                                        const char *index_path, coffer_error *err);

/* "PATH.idx" for a source that is a file, coffer__free(); NULL for others and when out of memory. */
char *coffer__mlyze_index_path(const coffer_source *src);
/* Opens a trace with the index PATH.idx of its file. */
coffer_status coffer__mlyze_open_beside_index(coffer_mlyze **out, coffer_source *src,
                                              const coffer_limits *limits, coffer_error *err);

/* ---- Losses of repairs, in the key "repaired" of the metadata ---- */

typedef struct coffer__mlyze_losses {
    uint64_t blocks, events, bytes; /* lost; events as far as headers count them */
    uint64_t unverified_events;     /* of a truncated block */
    bool header, metadata, file;    /* kept, but no checksum vouches for it */
    bool lost_metadata, interrupted;
} coffer__mlyze_losses;

/* As a member of the metadata with a comma after it; "" without losses. */
#define COFFER__MLYZE_LOSSES_TEXT 400
const char *coffer__mlyze_losses_member(char out[COFFER__MLYZE_LOSSES_TEXT],
                                        const coffer__mlyze_losses *losses);
/* Adds what the metadata of a trace says to *out. root : may be NULL. */
void coffer__mlyze_losses_read(coffer__mlyze_losses *out, const coffer__json_value *root);
/* The text without its "repaired", which is its first member if Coffer wrote it; len is updated. */
void coffer__mlyze_losses_cut(char *text, size_t *len);
/* A finding for each kind of loss. */
void coffer__mlyze_losses_report(coffer_report *report, const coffer__mlyze_losses *losses,
                                 const coffer_mlyze *trace);

/* The functions of the format table. */
coffer_status coffer__mlyze_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                     coffer_error *err);
coffer_status coffer__mlyze_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err);
coffer_status coffer__mlyze_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err);
coffer_status coffer__mlyze_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                 const coffer_diff_opts *opts, coffer_error *err);

coffer_status coffer__mlyze_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                   const coffer_repair_opts *opts, coffer_error *err);

/* coffer_mlyze_rewrite, and the number of extension events that were left out. */
coffer_status coffer__mlyze_rewrite(uint64_t *dropped, const coffer_mlyze *trace, const char *out_path,
                                    const coffer_mlyze_writer_opts *opts, coffer_error *err);
coffer_status coffer__mlyze_compress(coffer_node *out, const char *path, const char *out_path,
                                     const coffer_compress_opts *opts, coffer_error *err);
coffer_status coffer__mlyze_recover_parts(coffer_report *out, const char *path,
                                          const coffer_repair_opts *opts, coffer_error *err);

/* ---- Check ---- */

typedef struct coffer__mlyze_checker {
    coffer_report *report;
    coffer_mlyze *trace;
    bool understood; /* the tables could be read */
    bool lost_names; /* an earlier repair lost them */
    const coffer_progress *progress;
} coffer__mlyze_checker;

/* Files and functions that frames refer to. */
void coffer__mlyze_check_stacks(const coffer__mlyze_checker *check);
/* Blocks and events. */
coffer_status coffer__mlyze_check_events(const coffer__mlyze_checker *check, coffer_error *err);

/* Whether a stack matches one of the patterns of `focus` (NULL or empty = all) and none of `ignore`. */
bool coffer__mlyze_is_selected(const coffer_mlyze_suppressions *focus,
                               const coffer_mlyze_suppressions *ignore, const coffer_mlyze *trace,
                               size_t stack);

/* True for empty tables, which the program memlyze writes. */
bool coffer__mlyze_has_empty_tables(const coffer_mlyze *trace);

#endif
