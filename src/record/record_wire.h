/* The memory that a recorded program shares with `coffer record`: a control page, a table of processes, and
 * one ring of 64-bit words for each thread. A thread writes to its own ring only and takes no lock; `coffer
 * record` merges the rings by time. What a thread published survives the death of its process. */
#ifndef COFFER_RECORD_WIRE_H
#define COFFER_RECORD_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#define COFFER__RECORD_MAGIC UINT64_C(0x3143455252464f43) /* "COFRREC1" */
#define COFFER__RECORD_ENVIRONMENT "COFFER_RECORD"        /* the path of the memory */

enum {
    COFFER__RECORD_RING_WORDS = 8192, /* 64 KiB: what may be lost when every process is killed at once */
    COFFER__RECORD_SLOTS = 4096,
    COFFER__RECORD_SESSIONS = 16384,
    COFFER__RECORD_DEPTH_MAX = 512,
    COFFER__RECORD_TEXT_MAX = 4096,
    COFFER__RECORD_BUILD_ID_MAX = 32
};

/* Flags of the control page. */
enum {
    COFFER__RECORD_WITH_STACKS = 1,
    COFFER__RECORD_FOLLOW_FORK = 2,
    COFFER__RECORD_WITH_MMAP = 4,
    COFFER__RECORD_CLOCK_TSC = 8, /* times are those of the processor's counter, else nanoseconds */
    COFFER__RECORD_PYTHON = 16,
    COFFER__RECORD_PYTHON_ALLOCATORS = 32,
    COFFER__RECORD_NATIVE = 64 /* native frames below Python frames */
};

/* Whether threads record; `coffer record` changes it. */
enum { COFFER__RECORD_PAUSED = 0, COFFER__RECORD_RUNS = 1, COFFER__RECORD_ENDED = 2 };

/* How a process came to be recorded. */
enum { COFFER__RECORD_STARTED = 0, COFFER__RECORD_FORKED = 1 };

typedef struct coffer__record_session {
    _Atomic uint32_t ready;
    uint32_t pid;
    uint32_t kind;
    uint32_t parent; /* session that forked it */
    uint64_t time;
    _Atomic uint32_t threads; /* numbers given to threads */
    _Atomic uint32_t dropped; /* events that could not be recorded */
    /* Heap snapshots that `coffer record` wants, those that the interpreter was asked for, and those of them
     * that it has dealt with. */
    _Atomic uint32_t snapshots_wanted, snapshots_asked, snapshots_answered;
} coffer__record_session;

typedef struct coffer__record_control {
    uint64_t magic;
    uint32_t flags;
    uint32_t depth;
    uint64_t sample_bytes; /* 0 = every allocation */
    uint64_t time_base;    /* subtracted from every time */
    uint32_t root_pid;     /* 0 until the program is known */
    uint32_t reader_pid;
    _Atomic uint32_t state;
    _Atomic uint32_t session_count;
    _Atomic uint32_t slot_count; /* slots that were ever used */
    _Atomic uint32_t refused;    /* processes that could not be recorded */
    _Alignas(64) _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t reader_wake; /* futex of the reader */
    _Atomic uint32_t heartbeat;
} coffer__record_control;

enum { COFFER__RECORD_SLOT_FREE = 0, COFFER__RECORD_SLOT_CLAIMED = 1, COFFER__RECORD_SLOT_USED = 2 };

typedef struct coffer__record_slot {
    _Atomic uint32_t state;
    uint32_t pid, tid, session, thread;
    _Alignas(64) _Atomic uint64_t head; /* words written since the slot was claimed */
    /* A lower bound of the time of an event that is being written; 0 = none. The reader emits nothing
     * later than it. */
    _Atomic uint64_t since;
    _Alignas(64) _Atomic uint64_t tail; /* words read */
    _Atomic uint32_t waits;             /* the writer waits for room */
    _Atomic uint32_t room;              /* futex of the writer */
    _Alignas(64) uint64_t ring[COFFER__RECORD_RING_WORDS];
} coffer__record_slot;

typedef struct coffer__record_memory {
    coffer__record_control control;
    _Alignas(4096) coffer__record_session sessions[COFFER__RECORD_SESSIONS];
    _Alignas(4096) coffer__record_slot slots[COFFER__RECORD_SLOTS];
} coffer__record_memory;

/* A record begins with a word: its kind in the low 8 bits, and above them
 *   ALLOC  time; address | stack << 48; size | (stack >> 16) << 48
 *   FREE   time; address
 *   MAPPED like ALLOC;  UNMAPPED time; address; length;  COLLECTION time; objects; bytes
 *   STACK  number of frames that follow; number of the stack in this ring | number of outer frames that are
 *          those of the STACK before << 32; hash; the other frames, innermost first
 *   MODULE number of words after this one; start; end; bias; length of the build-id; build-id; path
 *   MARKER time; number of bytes; text
 *   CODE   number of words after this one; number; length of the name << 32 | that of the file; name; file
 *   SNAPSHOT time; number << 1 | whether it ends
 *   OBJECT   time; address; size; number of its type's NAME
 *   REFERENCE time; address; number of a NAME, 0 = none: the object before refers to the address
 *   NAME   number of words after this one; number; number of bytes; text
 * Stack 0 is "no stack". Addresses are below 2^48. */
enum {
    COFFER__RECORD_ALLOC = 1,
    COFFER__RECORD_FREE = 2,
    COFFER__RECORD_STACK = 3,
    COFFER__RECORD_MODULE = 4,
    COFFER__RECORD_MARKER = 5,
    COFFER__RECORD_CODE = 6,
    COFFER__RECORD_MAPPED = 7,
    COFFER__RECORD_UNMAPPED = 8,
    COFFER__RECORD_COLLECTION = 9,
    COFFER__RECORD_SNAPSHOT = 10,
    COFFER__RECORD_OBJECT = 11,
    COFFER__RECORD_REFERENCE = 12,
    COFFER__RECORD_NAME = 13
};
#define COFFER__RECORD_ADDRESS_BITS 48
#define COFFER__RECORD_ADDRESS_MASK ((UINT64_C(1) << COFFER__RECORD_ADDRESS_BITS) - 1)
/* A frame with this bit is Python: the number of a CODE record, and the line from bit 40 on. */
#define COFFER__RECORD_PYTHON_FRAME (UINT64_C(1) << 63)
#define COFFER__RECORD_LINE_SHIFT 40

#endif
