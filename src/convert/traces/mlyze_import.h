/* Builds traces from files of other profilers: names, stacks, and events for profiles that have none. */
#ifndef COFFER_CONVERT_MLYZE_IMPORT_H
#define COFFER_CONVERT_MLYZE_IMPORT_H

#include "base/json_write.h"
#include "coffer/mlyze.h"
#include "convert/convert.h"
#include "outside/profiles/heaptrack.h"
#include "outside/profiles/profile_text.h"

typedef struct coffer__mlyze_import {
    const coffer__convert_job *job;
    coffer_mlyze_writer *writer;
    coffer__buffer metadata;
    coffer__json_writer json;
    coffer__buffer name; /* the current text, cleaned */
    uint64_t stacks;     /* ids from here on are new */
    uint64_t frames;     /* in the stacks so far: limits.entries bounds them */
    uint64_t walked;     /* frames visited, including repeated ones */
    uint64_t next_address;
    uint64_t max_events; /* for the blocks of a profile */
} coffer__mlyze_import;

/* Opens the object "source" of the metadata: until the trace is created, the caller adds keys to it through
 * `json`. synthetic : the events are made up to fit a profile. */
void coffer__mlyze_import_open(coffer__mlyze_import *out, const coffer__convert_job *job, bool synthetic);
/* Adds the unit of times to the source, unless it is time. unit : as the file names it. Returns the factor by
 * which times become microseconds, 1 for other units. */
uint64_t coffer__mlyze_import_unit(coffer__mlyze_import *import, const char *unit);
/* Before the trace is created: the blocks that the samples of a profile count in all. More than the setting
 * "max-events" are COFFER_E_LIMIT, or with "merge" the source says how many blocks an event represents. */
coffer_status coffer__mlyze_import_expect(coffer__mlyze_import *import, uint64_t blocks, coffer_error *err);
/* command : of the profiled program; NULL = unknown. start_time_us : since the epoch. */
coffer_status coffer__mlyze_import_create(coffer__mlyze_import *import, const char *command,
                                          size_t command_len, uint64_t start_time_us, coffer_error *err);
coffer_status coffer__mlyze_import_commit(coffer__mlyze_import *import, coffer_error *err);
void coffer__mlyze_import_close(coffer__mlyze_import *import); /* drops what was not committed */

/* Opens the lines of the input, with the limits, progress and "partial" setting of the job. */
coffer_status coffer__mlyze_import_lines(coffer__packed_lines *lines, const coffer__convert_job *job,
                                         coffer_error *err);

/* Foreign texts may not be UTF-8: invalid bytes and NULs become \xNN, so that different names stay different.
 */
coffer_status coffer__mlyze_import_function(uint64_t *id, coffer__mlyze_import *import, const char *text,
                                            size_t len, coffer_error *err);
coffer_status coffer__mlyze_import_file(uint64_t *id, coffer__mlyze_import *import, const char *text,
                                        size_t len, coffer_error *err);
/* Call before building a stack: bounds the work by a multiple of limits.entries for files that repeat frames
 * many times. */
coffer_status coffer__mlyze_import_walk(coffer__mlyze_import *import, uint64_t depth, coffer_error *err);
/* Innermost frame first. depth 0 gives a stack with one frame named as unknown. */
coffer_status coffer__mlyze_import_stack(uint64_t *id, coffer__mlyze_import *import,
                                         const coffer_mlyze_frame *frames, size_t depth, coffer_error *err);

/* A frame as valgrind's tools write it: "0x109190: grab (grow.c:9)", "0x48417B4: malloc (in /usr/lib/x.so)".
 */
coffer_status coffer__mlyze_import_label(coffer_mlyze_frame *frame, coffer__mlyze_import *import,
                                         const char *text, size_t len, coffer_error *err);
/* "grab (grow.c:9)" or "grab". */
coffer_status coffer__mlyze_import_place(coffer_mlyze_frame *frame, coffer__mlyze_import *import,
                                         const char *text, size_t len, coffer_error *err);

/* Whether a label names a function that allocates for its caller: malloc, operator new. */
bool coffer__mlyze_is_allocator(const char *label, size_t len);

/* ---- Profiles: sums by stack instead of events (mlyze_import_profile.c) ---- */

typedef struct coffer__mlyze_blocks {
    uint64_t count, bytes;
} coffer__mlyze_blocks;

typedef struct coffer__mlyze_sample {
    uint64_t stack;
    coffer__mlyze_blocks total, peak,
        end; /* allocated in all; live at the high-water mark; live at the end */
} coffer__mlyze_sample;

/* Writes allocations and frees whose statistics equal the sums of the samples: first the blocks that no
 * moment of the profile shows, then those live at the peak, then the changes until the end. Bytes are exact,
 * and so are counts, unless there are more blocks than import->max_events: then each event represents
 * several. */
coffer_status coffer__mlyze_import_samples(coffer__mlyze_import *import, const coffer__mlyze_sample *samples,
                                           size_t count, uint64_t peak_time, uint64_t end_time,
                                           coffer_error *err);

/* ---- DHAT (mlyze_from_dhat.c): the JSON of valgrind's dynamic heap analysis tool ---- */

#define COFFER__DHAT_VERSION 2

bool coffer__dhat_probe(const uint8_t *head, size_t len);

/* Strings, instructions and traces of a heaptrack file, as names and stacks of the trace that is made of it.
 */
typedef struct coffer__heaptrack_string {
    size_t at, len;
    uint64_t function, file; /* ids in the trace, UINT64_MAX until it is used as such */
} coffer__heaptrack_string;

typedef struct coffer__heaptrack_trace {
    uint64_t parent; /* from 1, smaller than its own; 0 = none */
    uint64_t frame_at;
    uint32_t frame_count;
    uint64_t depth; /* frames up to the outermost */
    uint64_t stack; /* id in the trace, UINT64_MAX until it is used */
} coffer__heaptrack_trace;

/* The frames of an instruction, innermost first. */
typedef struct coffer__heaptrack_ip {
    uint64_t frame_at;
    uint32_t frame_count;
} coffer__heaptrack_ip;

typedef struct coffer__heaptrack_stacks {
    coffer__mlyze_import *import;
    const coffer__packed_lines *lines;
    coffer__heaptrack_modules modules;
    coffer__buffer texts;
    coffer__heaptrack_string *strings;
    size_t string_count, string_capacity;
    coffer_mlyze_frame *frames;
    size_t frame_count, frame_capacity;
    coffer__heaptrack_ip *ips;
    size_t ip_count, ip_capacity;
    coffer__heaptrack_trace *traces;
    size_t trace_count, trace_capacity;
    coffer_mlyze_frame *stack; /* the current one */
    size_t stack_capacity;
} coffer__heaptrack_stacks;

void coffer__heaptrack_stacks_free(coffer__heaptrack_stacks *stacks);
coffer_status coffer__heaptrack_take_string(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                            bool sized, coffer_error *err);
coffer_status coffer__heaptrack_take_ip(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                        coffer_error *err);
coffer_status coffer__heaptrack_take_trace(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                           bool raw, coffer_error *err);
/* The stack of a trace, by its number; 0 = none. */
coffer_status coffer__heaptrack_stack(uint64_t *id, coffer__heaptrack_stacks *stacks, uint64_t trace,
                                      coffer_error *err);

#endif
