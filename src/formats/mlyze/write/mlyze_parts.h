/* The two files of a recording (docs/formats/mlyze.md, "Recording"). Both only grow, and both are good up to
 * the last record whose checksum holds, whenever the process dies.
 *
 *   both, 24 bytes                             PATH.strings, then chunks
 *   0   4 bytes  "MPRT" or "MSTR"              0  u32  length of the entries
 *   4   u32      version, 1 or 2               4  u32  CRC-32 of the entries
 *   8   u64      start, µs since the epoch     8  entries: u8 kind, varint length, and that many bytes:
 *   16  u32      CRC-32 of bytes 0 to 15       1  FILE      varint id, the text
 *   20  u32      0                             2  FUNCTION  varint id, the text
 *                                              3  CALL      varint caller, varint file, line, function
 *   PATH.part, then blocks as in a trace       4  STACK     varint id, varint call, varint flags (1 = list
 * it) 5  EXTRA     a JSON object for the metadata; the last counts 6  END       varint events, varint size of
 * PATH.part
 *
 * A call is known by its number: the first CALL of the file is 1, and caller 0 is nobody. */
#ifndef COFFER_FORMATS_MLYZE_PARTS_H
#define COFFER_FORMATS_MLYZE_PARTS_H

#include "base/buffer.h"
#include "formats/mlyze/write/mlyze_intern.h"

#define COFFER__MLYZE_PART_MAGIC "MPRT"
#define COFFER__MLYZE_STRINGS_MAGIC "MSTR"
#define COFFER__MLYZE_PARTS_VERSION 2 /* 1: the checksums of blocks do not cover their headers */
#define COFFER__MLYZE_PARTS_HEADER 24
#define COFFER__MLYZE_PARTS_VERSION_AT 4
#define COFFER__MLYZE_PARTS_START_AT 8
#define COFFER__MLYZE_PARTS_CRC_AT 16
#define COFFER__MLYZE_CHUNK_HEADER 8
#define COFFER__MLYZE_CHUNK_CRC_AT 4

enum {
    COFFER__MLYZE_ENTRY_FILE = 1,
    COFFER__MLYZE_ENTRY_FUNCTION = 2,
    COFFER__MLYZE_ENTRY_CALL = 3,
    COFFER__MLYZE_ENTRY_STACK = 4,
    COFFER__MLYZE_ENTRY_EXTRA = 5,
    COFFER__MLYZE_ENTRY_END = 6
};

/* ---- The files ---- */

typedef struct coffer__mlyze_parts {
    char *path; /* of the trace, with symbolic links resolved */
    char *part_path, *strings_path;
    int part, strings; /* −1 = not open */
    uint64_t part_size, strings_size;
    bool folder_synced;
} coffer__mlyze_parts;

#define COFFER__MLYZE_PARTS_INIT              \
    {                                         \
        NULL, NULL, NULL, -1, -1, 0, 0, false \
    }

/* Creates and locks both. COFFER_E_EXISTS when another recording left its parts. */
coffer_status coffer__mlyze_parts_create(coffer__mlyze_parts *parts, const char *path, uint64_t start_time,
                                         coffer_error *err);
/* Opens the parts of a recording that has ended; COFFER_E_LOCKED when it is running, COFFER_E_NOT_FOUND
 * without parts. */
coffer_status coffer__mlyze_parts_open(coffer__mlyze_parts *parts, const char *path, coffer_error *err);
coffer_status coffer__mlyze_parts_add_block(coffer__mlyze_parts *parts, const uint8_t *block, size_t len,
                                            coffer_error *err);
coffer_status coffer__mlyze_parts_add_strings(coffer__mlyze_parts *parts, const coffer__buffer *chunks,
                                              coffer_error *err);
/* Makes everything added so far survive a crash of the machine. */
coffer_status coffer__mlyze_parts_sync(coffer__mlyze_parts *parts, coffer_error *err);
/* Removes both files. */
coffer_status coffer__mlyze_parts_remove(coffer__mlyze_parts *parts, coffer_error *err);
/* Closes and unlocks. */
void coffer__mlyze_parts_close(coffer__mlyze_parts *parts);

/* ---- Contents of PATH.strings ---- */

/* How much of the tables has been written. */
typedef struct coffer__mlyze_logged {
    size_t files, functions, calls, stacks;
} coffer__mlyze_logged;

/* Appends chunks with all new entries. */
coffer_status coffer__mlyze_strings_log(coffer__buffer *out, coffer__mlyze_logged *logged,
                                        const coffer__mlyze_pools *tables, coffer_error *err);
/* A chunk with one entry. */
void coffer__mlyze_strings_put_extra(coffer__buffer *out, const char *json, size_t len);
void coffer__mlyze_strings_put_end(coffer__buffer *out, uint64_t events, uint64_t part_size);

typedef struct coffer__mlyze_strings {
    coffer__mlyze_pools pools;
    coffer__buffer extra; /* the JSON of the last EXTRA */
    bool has_header;
    uint64_t start_time;
    bool has_end;
    uint64_t end_events, end_part_size;
    uint64_t unknown_entries, bad_entries;
    uint64_t good_size; /* end of the last complete chunk */
} coffer__mlyze_strings;

/* Reads the chunks of a file (fd −1 = missing) up to the first incomplete one. */
coffer_status coffer__mlyze_strings_load(coffer__mlyze_strings *out, int fd, uint64_t size, const char *name,
                                         coffer_error *err);
void coffer__mlyze_strings_free(coffer__mlyze_strings *strings);

/* The version of a header, 0 when the header is incomplete. */
uint32_t coffer__mlyze_parts_header(uint64_t *start_time, const uint8_t header[COFFER__MLYZE_PARTS_HEADER],
                                    const char *magic);

#endif
