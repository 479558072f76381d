/* Captures of memray: a header, then records, mostly in an LZ4 frame. Version 13, which memray 1.20 writes:
 *
 *   header  "memray\0", i32 version, i32 version of Python, u8 native, u8 form (0: all allocations), u64
 * allocations, u64 frames, i64 start, i64 end (ms since the epoch), command\0, i32 pid, u64 main thread, u64
 * frames of memray itself, u8 allocator, u8 traces pymalloc, u8 tracks objects, path\0, paths\0…\0,
 * paths\0…\0 0x80 | cache << 3 | allocator   an allocation or a release, in the current thread 0x40 | entry
 * PUSH varint code, svarint instruction      0x20 | cache << 1 | created   an object 0x10 | n       POP of n
 * + 1 frames                        12  SWITCH u64 thread         10  NAME text\0 2  RSS varint bytes, varint
 * ms    14  CODE varint id, name\0, file\0, svarint line, varint length, line table 5, 6, 7, 8  native frames
 * and modules                     1  END                        0  filler
 *
 * Addresses, lines and native frames are differences to the ones before (zigzag). */
#ifndef COFFER_OUTSIDE_MEMRAY_H
#define COFFER_OUTSIDE_MEMRAY_H

#include "base/buffer.h"
#include "coffer/source.h"

#define COFFER__MEMRAY_VERSION 13
enum { COFFER__MEMRAY_CACHE = 15 };

typedef enum coffer__memray_type {
    COFFER__MEMRAY_ALLOC,
    COFFER__MEMRAY_FREE,
    COFFER__MEMRAY_MAP,
    COFFER__MEMRAY_UNMAP,
    COFFER__MEMRAY_PUSH,
    COFFER__MEMRAY_POP,
    COFFER__MEMRAY_SWITCH,
    COFFER__MEMRAY_NAME,
    COFFER__MEMRAY_CODE,
    COFFER__MEMRAY_RSS,
    COFFER__MEMRAY_END
} coffer__memray_type;

typedef struct coffer__memray_record {
    coffer__memray_type type;
    uint64_t address, size; /* RSS: bytes in `size` */
    uint64_t id;            /* code, thread, or frames to pop; milliseconds since the start */
    int64_t instruction;    /* PUSH */
} coffer__memray_record;

typedef struct coffer__memray {
    coffer_source *source;
    uint64_t offset; /* of what is read next */
    void *unpacker;  /* LZ4 */
    uint8_t *packed, *bytes;
    size_t packed_len, packed_at, len, at;
    uint64_t consumed;                /* unpacked bytes before `bytes` */
    coffer__buffer text, file, table; /* of NAME and CODE: name, file, line table */
    uint32_t python;                  /* as PY_VERSION_HEX */
    bool native, complete;            /* complete : the end was read */
    uint64_t start_ms, main_thread, skipped_frames;
    uint64_t last_address, last_native, last_pointer;
    int64_t last_line;
    uint64_t recent[COFFER__MEMRAY_CACHE];
    uint64_t left_out; /* records of native frames and objects */
    coffer__buffer command;
} coffer__memray;

bool coffer__memray_probe(const uint8_t *head, size_t len);
/* Reads the header. source : borrowed. Close it even on failure. */
coffer_status coffer__memray_open(coffer__memray *out, coffer_source *source, coffer_error *err);
void coffer__memray_close(coffer__memray *capture);
/* The next record; COFFER__MEMRAY_END at the end, also of a capture that was cut off after a whole record. */
coffer_status coffer__memray_next(coffer__memray_record *out, coffer__memray *capture, coffer_error *err);
/* The line of an instruction, from a line table of this version of Python; 0 = unknown. */
uint64_t coffer__memray_line(uint32_t python, const uint8_t *table, size_t len, int64_t first_line,
                             int64_t instruction);

#endif
