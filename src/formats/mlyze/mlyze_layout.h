/* MLYZE byte by byte (docs/formats/mlyze.md). Little-endian; load, never cast.
 *
 *   header, 256 bytes                          event: u8 type, varint delta, then
 *   0   4 bytes  "MTRC"                        0  ALLOC   u64 address, varint size, varint stack, u16 thread
 *   4   u32      version, 1                    1  FREE    u64 address
 *   8   u64      start, µs since the epoch     2  GC      varint objects, varint bytes
 *   16  u32      metadata length               3  MARKER  varint name
 *   20  u32      flags                         >= 4       varint length and that many bytes:
 *   24  u32      CRC-32 of the metadata        4  OBJECT     u64 address, varint type name, [varint size]
 *   28  u32      CRC-32 of the other bytes     5  REFERENCE  u64 from, u64 to, varint edge name
 *   32  u64      event count, 0 = not known    6  SNAPSHOT   u8 0 begin 1 end, varint snapshot
 *   40  u64      length of the event area,     7  THREAD     u16 thread, varint name
 *                0 = to the end of the file    8  RSS        varint bytes
 *   48  zeros
 *   then the metadata (JSON, may end with spaces), then the event area: events, or blocks of them
 *
 *   block, 24 bytes and the LZ4 block          index NAME.mlyze.idx, 24 bytes and the entries of 56
 *   0   u32  raw size, at most 65536           0   4 bytes  "MIDX"
 *   4   u32  stored size; = raw: as it is      4   u32  version, 2
 *   8   u32  event count                       8   u64  size of the trace
 *   12  u32  CRC-32 of the other bytes         16  u32  CRC-32 of the trace's header
 *   16  u64  time before its first event       20  u32  entry count
 *                                              entry: u64 offset of the block, first event, time, live bytes,
 *                                              live allocations, high-water bytes and most allocations inside
 * the block
 *
 * Without flag 16, as version 0.1 wrote them, the CRC-32 of the header covers its bytes 0 to 27 and that of a
 * block its stored bytes.
 */
#ifndef COFFER_FORMATS_MLYZE_LAYOUT_H
#define COFFER_FORMATS_MLYZE_LAYOUT_H

#define COFFER__MLYZE_MAGIC "MTRC"
#define COFFER__MLYZE_MAGIC_SIZE 4
#define COFFER__MLYZE_VERSION 1
#define COFFER__MLYZE_HEADER_SIZE 256
#define COFFER__MLYZE_VERSION_AT 4
#define COFFER__MLYZE_START_AT 8
#define COFFER__MLYZE_METADATA_LENGTH_AT 16
#define COFFER__MLYZE_FLAGS_AT 20
#define COFFER__MLYZE_METADATA_CRC_AT 24
#define COFFER__MLYZE_HEADER_CRC_AT 28
#define COFFER__MLYZE_EVENT_COUNT_AT 32
#define COFFER__MLYZE_EVENT_LENGTH_AT 40
#define COFFER__MLYZE_RESERVED_AT 48

enum {
    COFFER__MLYZE_FLAG_BLOCKS = 1,
    COFFER__MLYZE_FLAG_CHECKSUMS = 2,
    COFFER__MLYZE_FLAG_EXTENSIONS = 4,
    COFFER__MLYZE_FLAG_COMPLETE = 8,   /* the metadata is */
    COFFER__MLYZE_FLAG_FULL_SUMS = 16, /* checksums cover the whole header and the headers of blocks */
    COFFER__MLYZE_FLAG_WAS_BARE = 32,  /* made from a plain trace without a checksum */
    COFFER__MLYZE_FLAG_ARCHIVE = 64,   /* the blocks are archive blocks; only with BLOCKS */
    COFFER__MLYZE_FLAG_TABLES = 128,   /* the metadata is compressed, its stacks are a call tree */
    COFFER__MLYZE_FLAGS_KNOWN = 255
};

/* A plain trace has its checksum at the end of the JSON: the CRC-32 of the whole file with zeros for these
 * digits. */
#define COFFER__MLYZE_PLAIN_SUM "\"coffer_checksum\":\"crc32\",\"coffer_crc32\":\"00000000\"}"
#define COFFER__MLYZE_PLAIN_SUM_LENGTH (sizeof COFFER__MLYZE_PLAIN_SUM - 1)
#define COFFER__MLYZE_PLAIN_SUM_DIGITS 8
#define COFFER__MLYZE_PLAIN_SUM_FROM_END 10 /* the digits, from the end of the JSON */
#define COFFER__MLYZE_PLAIN_SUM_KIND_KEY "coffer_checksum"
#define COFFER__MLYZE_PLAIN_SUM_KEY "coffer_crc32"

/* Records losses of an earlier repair. */
#define COFFER__MLYZE_REPAIRED_KEY "repaired"

#define COFFER__MLYZE_ORDER_KEY "stack_order"
#define COFFER__MLYZE_OUTERMOST_FIRST "outermost-first"
#define COFFER__MLYZE_INNERMOST_FIRST "innermost-first"

#define COFFER__MLYZE_BLOCK_HEADER 24
#define COFFER__MLYZE_BLOCK_RAW_MAX 65536
#define COFFER__MLYZE_BLOCK_STORED_AT 4
#define COFFER__MLYZE_BLOCK_COUNT_AT 8
#define COFFER__MLYZE_BLOCK_CRC_AT 12
#define COFFER__MLYZE_BLOCK_TIME_AT 16

/* An archive block has the same header, then: "MARC", u32 number of streams, u64 number of the first
 * allocation, u32 allocations, u32 imports, for each stream u32 raw and u32 stored size, and the streams. */
#define COFFER__MLYZE_ARCHIVE_MAGIC "MARC"
#define COFFER__MLYZE_ARCHIVE_STREAMS_AT 4
#define COFFER__MLYZE_ARCHIVE_FIRST_AT 8
#define COFFER__MLYZE_ARCHIVE_ALLOCS_AT 16
#define COFFER__MLYZE_ARCHIVE_IMPORTS_AT 20
#define COFFER__MLYZE_ARCHIVE_SIZES_AT 24
#define COFFER__MLYZE_ARCHIVE_STREAM 8 /* the two sizes of a stream */
#define COFFER__MLYZE_ARCHIVE_EVENTS_MAX (1 << 20)
#define COFFER__MLYZE_ARCHIVE_RAW_MAX (1 << 26)

/* The streams of an archive block. */
enum {
    COFFER__MLYZE_KINDS,
    COFFER__MLYZE_DELTAS,
    COFFER__MLYZE_GUESSES,
    COFFER__MLYZE_STACKS,
    COFFER__MLYZE_SIZES,
    COFFER__MLYZE_THREAD_NUMBERS,
    COFFER__MLYZE_PLACES,
    COFFER__MLYZE_FAR_PLACES,
    COFFER__MLYZE_FREES,
    COFFER__MLYZE_FAR_FREES,
    COFFER__MLYZE_IMPORT_NUMBERS,
    COFFER__MLYZE_IMPORT_ADDRESSES,
    COFFER__MLYZE_IMPORT_CLASSES,
    COFFER__MLYZE_OTHERS,
    COFFER__MLYZE_STREAMS
};
#define COFFER__MLYZE_ARCHIVE_DIRECTORY \
    (COFFER__MLYZE_ARCHIVE_SIZES_AT + COFFER__MLYZE_STREAMS * COFFER__MLYZE_ARCHIVE_STREAM)

/* A byte of KINDS. */
enum {
    COFFER__MLYZE_KIND_ALLOC,
    COFFER__MLYZE_KIND_FREE,     /* of a live block */
    COFFER__MLYZE_KIND_OTHER,    /* its bytes, with delta 0, are in OTHERS */
    COFFER__MLYZE_KIND_REPLACE,  /* ALLOC at a live address; FREES says which block was there */
    COFFER__MLYZE_KIND_STRAY,    /* FREE of an address that is not live */
    COFFER__MLYZE_KIND_NO_PLACE, /* ALLOC at address 0 */
    COFFER__MLYZE_KIND_NO_FREE,  /* FREE of address 0 */
    COFFER__MLYZE_KIND_COUNT
};

/* Bits of a byte of GUESSES: what is the same as predicted. */
enum { COFFER__MLYZE_GUESS_STACK = 1, COFFER__MLYZE_GUESS_SIZE = 2, COFFER__MLYZE_GUESS_THREAD = 4 };

/* A byte of PLACES: after the previous new place, at a distance from there, or a freed address. */
enum {
    COFFER__MLYZE_PLACE_NEXT,
    COFFER__MLYZE_PLACE_FAR,   /* FAR_PLACES has the distance in units of 16 */
    COFFER__MLYZE_PLACE_ODD,   /* FAR_PLACES has the distance in bytes */
    COFFER__MLYZE_PLACE_FREED, /* the address freed last of this size class; + n : the n-th before it */
    COFFER__MLYZE_FREED_DEPTH = 64
};

/* A byte of FREES: 0 = FAR_FREES has the distance from the last block that was named by a distance; up to
 * AGE_MAX the age; otherwise NEAR_ZERO + the distance. */
enum {
    COFFER__MLYZE_AGE_MAX = 100,
    COFFER__MLYZE_NEAR_MIN = -64,
    COFFER__MLYZE_NEAR_MAX = 63,
    COFFER__MLYZE_NEAR_ZERO = 180
};

/* Compact tables: "MTAB", u32 length of the JSON, u32 offset of the empty object in it that replaces the
 * stacks (NO_HOLE = they are in the JSON), u32 spaces after the JSON, u32 calls, u32 stacks, for each stream
 * u32 raw and u32 stored size, and the streams. */
#define COFFER__MLYZE_TABLES_MAGIC "MTAB"
#define COFFER__MLYZE_TABLES_JSON_AT 4
#define COFFER__MLYZE_TABLES_HOLE_AT 8
#define COFFER__MLYZE_TABLES_SPACES_AT 12
#define COFFER__MLYZE_TABLES_CALLS_AT 16
#define COFFER__MLYZE_TABLES_STACKS_AT 20
#define COFFER__MLYZE_TABLES_SIZES_AT 24
#define COFFER__MLYZE_NO_HOLE UINT32_MAX

enum {
    COFFER__MLYZE_TABLE_JSON,
    COFFER__MLYZE_TABLE_CALLERS,
    COFFER__MLYZE_TABLE_FILES,
    COFFER__MLYZE_TABLE_LINES,
    COFFER__MLYZE_TABLE_FUNCTIONS,
    COFFER__MLYZE_TABLE_STACKS,
    COFFER__MLYZE_TABLE_STREAMS
};
#define COFFER__MLYZE_TABLES_DIRECTORY (COFFER__MLYZE_TABLES_SIZES_AT + COFFER__MLYZE_TABLE_STREAMS * 8)
/* The least that a frame takes in the JSON: {"file_id":0,"line":0,"func_id":0}, */
#define COFFER__MLYZE_FRAME_TEXT_MIN 35

#define COFFER__MLYZE_INDEX_SUFFIX ".idx" /* appended to the name of the trace */
#define COFFER__MLYZE_INDEX_MAGIC "MIDX"
#define COFFER__MLYZE_INDEX_VERSION 2
#define COFFER__MLYZE_INDEX_HEADER 24
#define COFFER__MLYZE_INDEX_VERSION_AT 4
#define COFFER__MLYZE_INDEX_SIZE_AT 8
#define COFFER__MLYZE_INDEX_CRC_AT 16
#define COFFER__MLYZE_INDEX_COUNT_AT 20
#define COFFER__MLYZE_INDEX_ENTRY 56
#define COFFER__MLYZE_ENTRY_EVENT_AT 8
#define COFFER__MLYZE_ENTRY_TIME_AT 16
#define COFFER__MLYZE_ENTRY_BYTES_AT 24
#define COFFER__MLYZE_ENTRY_ALLOCS_AT 32
#define COFFER__MLYZE_ENTRY_HIGH_AT 40
#define COFFER__MLYZE_ENTRY_MOST_AT 48

#endif
