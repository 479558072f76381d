/* What the files of the writing side share. */
#ifndef COFFER_FORMATS_MLYZE_WRITE_H
#define COFFER_FORMATS_MLYZE_WRITE_H

#include "base/json.h"
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

/* Takes in the markers and collections of some events. first : number of the first of them; time : before it.
 */
coffer_status coffer__mlyze_marks_add(coffer__mlyze_marks *marks, const coffer_mlyze_events *events,
                                      uint64_t first, uint64_t time, coffer_error *err);
void coffer__mlyze_marks_free(coffer__mlyze_marks *marks);

/* ---- The front of a trace: header and metadata ---- */

typedef struct coffer__mlyze_draft {
    const coffer__mlyze_pools *pools;
    const coffer__json_value *extra; /* an object, or NULL; keys of ours in it are passed over */
    const coffer__mlyze_marks *marks;
} coffer__mlyze_draft;

/* Whether a key of the metadata is written from the tables and marks. */
bool coffer__mlyze_is_own_key(const char *key, size_t len);
/* Length and checksum of the metadata. COFFER_E_LIMIT when it passes the 4 GiB that a header can say. */
coffer_status coffer__mlyze_measure(uint32_t *len, uint32_t *crc, const coffer__mlyze_draft *draft,
                                    coffer_error *err);

typedef struct coffer__mlyze_front {
    uint64_t start_time;
    uint32_t flags; /* 0 = a plain trace: nothing after byte 20 is said */
    uint32_t metadata_len, metadata_crc;
    uint64_t event_count, area_len;
} coffer__mlyze_front;

void coffer__mlyze_compose_header(uint8_t out[COFFER__MLYZE_HEADER_SIZE], const coffer__mlyze_front *front);
/* The flags of a trace that is written with these options. */
uint32_t coffer__mlyze_flags_of(const coffer_mlyze_writer_opts *opts, bool extensions, bool complete);
/* Header and metadata of a draft; the length and checksum of the metadata are filled in. */
coffer_status coffer__mlyze_write_front(coffer__sink *sink, coffer__mlyze_front *front,
                                        const coffer__mlyze_draft *draft, coffer_error *err);
/* The same over the spaces that a file begins with: the metadata was measured, and fits. */
coffer_status coffer__mlyze_patch_front(coffer__sink *sink, coffer__mlyze_front *front, uint32_t room,
                                        const coffer__mlyze_draft *draft, coffer_error *err);

/* Checks the options and fills in the defaults. */
coffer_status coffer__mlyze_take_opts(coffer_mlyze_writer_opts *out, const coffer_mlyze_writer_opts *given,
                                      coffer_error *err);

/* Writes PATH.idx beside a finished trace, unless the options or the path say otherwise. Derived data: when
 * it cannot be written, the trace is none the worse. */
void coffer__mlyze_write_index(const char *path, const coffer_mlyze_writer_opts *opts);

/* ---- The event area, while the metadata before it is not known ---- */

/* Few events wait in memory. When they become too many, the file begins with room for the metadata, and the
 * events go where they will be; or, where nothing can be put in afterwards, into a file without a name. */
typedef struct coffer__mlyze_area {
    coffer__sink *sink; /* borrowed */
    uint8_t *buffer;
    size_t buffered;
    uint64_t room; /* for the metadata; 0 = not decided */
    int fd;        /* of a stream; −1 = not needed so far */
    uint64_t written;
} coffer__mlyze_area;

coffer_status coffer__mlyze_area_init(coffer__mlyze_area *area, coffer__sink *sink, coffer_error *err);
void coffer__mlyze_area_free(coffer__mlyze_area *area);
/* Whether so many bytes more need a decision about the room first. */
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
    coffer_error failure; /* the first one; sticks */
    coffer__json *extra;
    coffer__mlyze_pools pools;
    coffer__mlyze_marks marks;
    uint64_t event_count;
    bool extensions;
    coffer__mlyze_raw *raw;
    coffer__mlyze_sealer sealer;
    coffer__sink *sink;        /* the trace; of a recording, only from its end on */
    coffer__mlyze_area area;   /* not of a recording */
    coffer__mlyze_parts parts; /* of a recording */
    coffer__mlyze_logged logged;
};

/* Sends off the events that wait. */
coffer_status coffer__mlyze_close_block(coffer_mlyze_writer *writer, coffer_error *err);
/* What the metadata would say now. */
coffer__mlyze_draft coffer__mlyze_draft_of(const coffer_mlyze_writer *writer);
void coffer__mlyze_writer_free(coffer_mlyze_writer *writer);

#endif
