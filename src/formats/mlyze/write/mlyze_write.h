/* Shared by the files of the writer. */
#ifndef COFFER_FORMATS_MLYZE_WRITE_H
#define COFFER_FORMATS_MLYZE_WRITE_H

#include "base/fail.h"
#include "base/json.h"
#include "formats/mlyze/archive/mlyze_archive.h"
#include "formats/mlyze/write/mlyze_encode.h"
#include "formats/mlyze/write/mlyze_parts.h"
#include "io/sink.h"

/* ---- Marks: moments that the metadata lists, so that a timeline has them without reading events ---- */

#define COFFER__MLYZE_MARKS_MAX 10000

typedef struct coffer__mlyze_moment {
    uint64_t event, time, id;
} coffer__mlyze_moment;

typedef struct coffer__mlyze_moments {
    coffer__mlyze_moment *items; /* the first COFFER__MLYZE_MARKS_MAX */
    size_t count, capacity;
} coffer__mlyze_moments;

typedef struct coffer__mlyze_marks {
    coffer__mlyze_moments markers, collections;
} coffer__mlyze_marks;

/* Adds the markers and collections of some events. first : number of the first event; time : before it. */
coffer_status coffer__mlyze_marks_add(coffer__mlyze_marks *marks, const coffer_mlyze_events *events,
                                      uint64_t first, uint64_t time, coffer_error *err);
void coffer__mlyze_marks_free(coffer__mlyze_marks *marks);

/* ---- The front of a trace: header and metadata ---- */

typedef struct coffer__mlyze_draft {
    const coffer__mlyze_pools *pools;
    const coffer__json_value *extra; /* an object, or NULL; keys that the writer itself writes are skipped */
    const coffer__mlyze_marks *marks;
    const char *repaired; /* a member to begin with, with its comma; NULL = none */
    bool summed;          /* a plain trace: the metadata ends with the checksum of the file */
    uint32_t sum;         /* that checksum; 0 while it is not known */
    bool quick;           /* somebody waits for the end of a recording */
} coffer__mlyze_draft;

/* Whether a key of the metadata is written from the tables and marks. */
bool coffer__mlyze_is_own_key(const char *key, size_t len);
/* Length and checksum of the metadata. COFFER_E_LIMIT when it exceeds the 4 GiB of the header field. */
coffer_status coffer__mlyze_measure(uint32_t *len, uint32_t *crc, const coffer__mlyze_draft *draft,
                                    coffer_error *err);

/* The metadata as compact tables. */
coffer_status coffer__mlyze_draft_tables(coffer__buffer *out, const coffer__mlyze_draft *draft,
                                         coffer_error *err);
/* Whether a trace with these flags has its metadata in that form. */
bool coffer__mlyze_wants_tables(const coffer__mlyze_draft *draft, uint32_t flags);

/* Writes the metadata to a sink: appended, or with `at` patched there. The checksum counts the digits of a
 * plain trace's sum as they are written. */
coffer_status coffer__mlyze_send_metadata(uint32_t *len, uint32_t *crc, coffer__sink *sink, uint64_t at,
                                          const coffer__mlyze_draft *draft, coffer_error *err);

typedef struct coffer__mlyze_front {
    uint64_t start_time;
    uint32_t version;        /* 0 = the current one */
    uint32_t flags;          /* 0 = a plain trace: the fields after byte 20 stay 0 */
    const uint8_t *reserved; /* the bytes from COFFER__MLYZE_RESERVED_AT on; NULL = zeros */
    uint32_t metadata_len, metadata_crc;
    uint32_t json_len; /* the metadata without the spaces after it */
    uint64_t event_count, area_len;
    bool area_is_known; /* area_len and area_crc are final: the sum of a plain trace can be computed */
    uint32_t area_crc;  /* of a plain trace */
} coffer__mlyze_front;

/* Eight hexadecimal digits. */
void coffer__mlyze_put_digits(char *out, uint32_t sum);
/* Patches the checksum of a plain trace into its metadata; area_len and area_crc must be known. */
coffer_status coffer__mlyze_settle_sum(coffer__sink *sink, const coffer__mlyze_front *front,
                                       coffer_error *err);

void coffer__mlyze_compose_header(uint8_t out[COFFER__MLYZE_HEADER_SIZE], const coffer__mlyze_front *front);
/* The flags of a trace that is written with these options. */
uint32_t coffer__mlyze_flags_of(const coffer_mlyze_writer_opts *opts, bool extensions, bool complete);
/* Header and metadata of a draft; the length and checksum of the metadata are filled in. */
coffer_status coffer__mlyze_write_front(coffer__sink *sink, coffer__mlyze_front *front,
                                        const coffer__mlyze_draft *draft, coffer_error *err);
/* The same over the spaces reserved at the start of the file: the measured metadata fits. */
coffer_status coffer__mlyze_patch_front(coffer__sink *sink, coffer__mlyze_front *front, uint32_t room,
                                        const coffer__mlyze_draft *draft, coffer_error *err);

/* ---- Metadata of an existing trace, for its copy ---- */

typedef struct coffer__mlyze_copied_text {
    char *text; /* coffer__free() */
    size_t len, json_len;
    bool summed;           /* ends with the checksum of a plain trace, whose digits are zeros */
    coffer__buffer tables; /* the same as compact tables, which are written instead; empty = not */
} coffer__mlyze_copied_text;
void coffer__mlyze_copied_text_free(coffer__mlyze_copied_text *text);
/* Makes the tables of a text whose trace will have these flags, if it wants them. */
coffer_status coffer__mlyze_copied_tables(coffer__mlyze_copied_text *text, uint32_t flags,
                                          const coffer_limits *limits, coffer_error *err);

/* members : JSON to insert, such as "\"a\":1,"; "" = none. Of a plain copy (sums): the text ends with a
 * checksum; otherwise it stays as it is, or (strip) loses it. */
typedef enum coffer__mlyze_text_sum {
    COFFER__MLYZE_SUM_ADD,
    COFFER__MLYZE_SUM_KEEP,
    COFFER__MLYZE_SUM_STRIP
} coffer__mlyze_text_sum;
coffer_status coffer__mlyze_copy_text(coffer__mlyze_copied_text *out, const char *text, size_t len,
                                      const char *members, coffer__mlyze_text_sum sum, coffer_error *err);
/* Writes header and text. */
coffer_status coffer__mlyze_write_text_front(coffer__sink *sink, coffer__mlyze_front *front,
                                             const coffer__mlyze_copied_text *text, coffer_error *err);

/* Checks the options and fills in the defaults. */
coffer_status coffer__mlyze_take_opts(coffer_mlyze_writer_opts *out, const coffer_mlyze_writer_opts *given,
                                      coffer_error *err);

/* Writes PATH.idx for a finished trace, unless the options exclude it or the path is not a file. Failures are
 * ignored: the index is derived data. */
void coffer__mlyze_write_index(const char *path, const coffer_mlyze_writer_opts *opts);

/* ---- The event area, while the metadata before it is not known ---- */

/* Few events stay in memory. When there are too many, the file gets room for the metadata and the events go
 * to their final offset; a stream, which cannot be patched, uses an unnamed temporary file. */
typedef struct coffer__mlyze_area {
    coffer__sink *sink; /* borrowed */
    uint8_t *buffer;
    size_t buffered;
    uint64_t room; /* for the metadata; 0 = not decided */
    int fd;        /* of a stream; −1 = not needed so far */
    uint64_t written;
    uint32_t crc; /* of all bytes */
} coffer__mlyze_area;

coffer_status coffer__mlyze_area_init(coffer__mlyze_area *area, coffer__sink *sink, coffer_error *err);
void coffer__mlyze_area_free(coffer__mlyze_area *area);
/* Whether adding `len` bytes requires the room to be decided first. */
bool coffer__mlyze_area_needs_room(const coffer__mlyze_area *area, size_t len);
coffer_status coffer__mlyze_area_place(coffer__mlyze_area *area, uint64_t metadata_len, coffer_error *err);
coffer_status coffer__mlyze_area_add(coffer__mlyze_area *area, const uint8_t *bytes, size_t len,
                                     coffer_error *err);
uint64_t coffer__mlyze_area_size(const coffer__mlyze_area *area);
/* Appends all events to a sink that has the metadata before them. */
coffer_status coffer__mlyze_area_copy(coffer__sink *sink, const coffer__mlyze_area *area, coffer_error *err);

/* ---- The writer ---- */

struct coffer_mlyze_writer {
    char *path;
    coffer_mlyze_writer_opts opts;
    coffer_limits limits;
    coffer__sticky sticky;
    coffer__json *extra;
    coffer__mlyze_pools pools;
    coffer__mlyze_marks marks;
    uint64_t event_count;
    bool extensions;
    coffer__mlyze_raw *raw;
    coffer__mlyze_sealer sealer;
    coffer__mlyze_packer *packer; /* of an archive; a recording becomes one during commit */
    coffer_mlyze_events columns;  /* for the packer */
    coffer__sink *sink;           /* the trace; of a recording, only during commit */
    coffer__mlyze_area area;      /* unused by a recording */
    coffer__mlyze_parts parts;    /* used by a recording */
    coffer__mlyze_logged logged;
};

/* Writes the pending events as a block. */
coffer_status coffer__mlyze_close_block(coffer_mlyze_writer *writer, coffer_error *err);
/* The metadata as of now. */
coffer__mlyze_draft coffer__mlyze_draft_of(const coffer_mlyze_writer *writer);
void coffer__mlyze_writer_free(coffer_mlyze_writer *writer);

#endif
