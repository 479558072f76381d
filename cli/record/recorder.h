/* `coffer record` as the reader of the rings that a recorded program fills (src/record/record_wire.h). */
#ifndef COFFER_CLI_RECORDER_H
#define COFFER_CLI_RECORDER_H

#include "cli.h"
#include "record/record_wire.h"

#include <sys/types.h>

/* ---- record_map.c: a hash table from words to words ---- */

typedef struct record_map {
    uint64_t *keys, *values; /* key 0 = empty */
    size_t capacity, count;
} record_map;

/* NULL when the key is missing. Key 0 is not allowed. */
uint64_t *record_map_find(const record_map *map, uint64_t key);
bool record_map_put(record_map *map, uint64_t key, uint64_t value); /* false: out of memory */
void record_map_remove(record_map *map, uint64_t key);
void record_map_free(record_map *map);

/* ---- record_session.c: one recorded process, and its trace ---- */

typedef struct record_module {
    uint64_t start, end, bias;
    char *path;
    const char *name; /* the last part of the path */
    uint8_t build_id[COFFER__RECORD_BUILD_ID_MAX];
    size_t build_id_len;
    uint64_t file; /* id in the trace */
    bool unloaded; /* another module has its place */
} record_module;

typedef struct record_mapping {
    uint64_t start, end, stack;
    uint16_t thread;
} record_mapping;

enum { RECORD_BATCH = 4096, RECORD_FRAMES_MAX = 2 * COFFER__RECORD_DEPTH_MAX };

/* One event; the columns mean what those of coffer_mlyze_events mean. */
typedef struct record_event {
    uint64_t time, address, size, id;
    uint16_t thread;
    uint8_t type;
} record_event;

/* Events that the writer gets at once. */
typedef struct record_batch {
    size_t count;
    uint64_t time[RECORD_BATCH], address[RECORD_BATCH], size[RECORD_BATCH], id[RECORD_BATCH];
    uint16_t thread[RECORD_BATCH];
    uint8_t type[RECORD_BATCH];
} record_batch;

typedef struct record_session {
    uint32_t number, parent;
    pid_t pid;
    bool over;      /* the process has ended */
    bool committed; /* the trace exists */
    bool archive;   /* in its smallest form */
    char *path, *command;
    coffer_mlyze_writer *writer; /* NULL after the end */
    uint64_t start_us;           /* on the reader's clock */
    uint64_t epoch_us;
    record_module *modules;
    size_t module_count, module_capacity;
    record_map frames; /* address -> index in frame_list */
    coffer_mlyze_frame *frame_list;
    size_t frame_count, frame_capacity;
    record_map stacks; /* hash -> id */
    /* The stack that was added last, outermost frame first: most of the next one is the same. */
    uint64_t last_frames[RECORD_FRAMES_MAX], last_ids[RECORD_FRAMES_MAX];
    size_t last_count;
    record_map codes;        /* key of a Python function -> function id << 32 | file id */
    record_map names;        /* number of a name in a heap snapshot -> function id */
    uint64_t object;         /* of the heap snapshot, whose references follow */
    uint64_t snapshots;      /* complete ones */
    uint64_t snapshot_us;    /* when the last one was asked for */
    uint64_t snapshot_bytes; /* live bytes then */
    record_mapping *maps;    /* with --mmap */
    size_t map_count, map_capacity;
    uint64_t events, last_us, flushed_events;
    record_batch batch;
    record_map live; /* with --live and --snapshot-at-peak: address -> size */
    uint64_t live_bytes, peak_bytes, allocs;
    coffer_error err; /* why it stopped */
} record_session;

/* The options of the command line. */
typedef struct record_options {
    const char *output;
    bool force, quiet, live, symbols;
    bool archive; /* the finished trace is an archive */
    uint32_t depth, flags;
    uint64_t duration_us, max_size, sample_bytes;
    int toggle; /* signal, or 0 */
    bool snapshot_at_peak;
    uint64_t snapshot_every_us;
    int snapshot_signal; /* or 0 */
    char **program;
} record_options;

coffer_status record_session_open(record_session *session, const record_options *options);
coffer_status record_session_module(record_session *session, const uint64_t *words, size_t count);
/* The names of a Python function. */
coffer_status record_session_code(record_session *session, const uint64_t *words, size_t count);
/* frames : innermost first. */
coffer_status record_session_stack(uint64_t *id, record_session *session, uint64_t hash,
                                   const uint64_t *frames, size_t count);
coffer_status record_session_put(record_session *session, const record_event *event);
coffer_status record_session_marker(record_session *session, uint64_t time, const char *text, size_t len);
coffer_status record_session_collection(record_session *session, uint64_t time, uint64_t objects,
                                        uint64_t bytes);
/* At the time of the last event. */
coffer_status record_session_thread(record_session *session, uint16_t thread, const char *name);
coffer_status record_session_rss(record_session *session, uint64_t bytes);
/* Writes what is buffered to the part files. */
coffer_status record_session_flush(record_session *session);
/* Makes the trace. */
coffer_status record_session_finish(record_session *session, const record_options *options);
void record_session_free(record_session *session);

/* ---- record_maps.c ---- */

coffer_status record_session_map(record_session *session, uint64_t time, const record_mapping *mapping);
coffer_status record_session_unmap(record_session *session, uint64_t time, uint64_t start, uint64_t len);

/* ---- record_drain.c: from the rings to the sessions ---- */

typedef struct record_slot {
    uint32_t session, thread;
    bool used;
    record_map stacks;  /* number in the ring -> id in the trace */
    record_map pending; /* number in the ring -> offset in raw + 1 */
    uint64_t *raw;      /* hash, count, frames */
    size_t raw_len, raw_capacity;
    uint64_t *last; /* the stack that came last, with room for RECORD_FRAMES_MAX */
    size_t last_count;
    char name[16];
    uint64_t head, next_time;
} record_slot;

typedef struct record_reader {
    const record_options *options;
    coffer__record_memory *memory;
    record_session **sessions;
    size_t session_count;
    record_slot *slots;
    uint64_t first_tick, first_us;
    double us_per_tick;
    uint64_t events;
    bool stopped; /* nothing more is recorded */
} record_reader;

uint64_t record_clock_us(void);
uint64_t record_tick(const record_reader *reader);
/* One pass over all rings; true when it found something. */
bool record_drain(record_reader *reader);
/* Everything that a process which has ended left. */
void record_drain_ended(record_reader *reader, const record_session *session);
/* Frees what was collected for one slot. */
void record_slot_free(record_slot *slot);
/* Frees slots of threads that have ended, and learns their names. */
void record_keep_house(record_reader *reader);
/* Stops recording with a message; the programs continue. */
void record_stop(record_reader *reader, const record_session *session, const coffer_error *err);

/* The word at a place of a ring. */
static inline uint64_t record_word(const coffer__record_slot *ring, uint64_t at)
{
    return ring->ring[at & (COFFER__RECORD_RING_WORDS - 1)];
}

/* ---- record_snapshots.c: snapshots of a Python heap ---- */

/* The name that types and references have in the snapshot. */
coffer_status record_snapshot_name(record_session *session, const uint64_t *words, size_t count);
/* Whether a record belongs to a snapshot; returns its words, or 0. */
uint64_t record_snapshot_words(uint8_t kind);
coffer_status record_snapshot_event(record_session *session, const coffer__record_slot *ring, uint64_t tail,
                                    uint64_t time);
/* Asks a process for a snapshot, unless one that it was asked for is still missing. */
void record_snapshot_ask(record_reader *reader, record_session *session);
/* Asks for a snapshot when memory has grown since the last one (--snapshot-at-peak). */
void record_snapshot_at_peak(record_reader *reader, record_session *session);
/* Asks for those that are due by time (--snapshot-every). */
void record_snapshot_by_time(record_reader *reader, uint64_t now);
/* Says why no snapshot was taken although the options ask for them. */
void record_snapshot_report(const record_reader *reader);

/* ---- record_symbols.c ---- */

/* Rewrites a trace with the names of functions instead of addresses. */
coffer_status record_symbolize(const record_session *session, const char *extra_json, coffer_error *err);
char *record_metadata(const record_session *session, bool modules, uint64_t sample_bytes);

/* ---- record_summary.c ---- */

void record_summarize(const record_session *session, const record_options *options);

/* ---- record_target.c ---- */

/* Whether the program can be recorded: 0, or the exit status after a message. out : its path, PATH_MAX. */
int record_check_target(char *out, const cli_args *args, const char *program);

/* ---- record_run.c ---- */

int record_run(const cli_args *args, const record_options *options);

#endif
