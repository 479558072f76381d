/* The map of the blocks of a trace. Built when it is first needed, from the index or by a walk over the file.
 */
#ifndef COFFER_FORMATS_MLYZE_BLOCKS_H
#define COFFER_FORMATS_MLYZE_BLOCKS_H

#include "coffer/mlyze.h"

/* coffer_mlyze_block without struct_size: a map has millions of them. */
typedef struct coffer__mlyze_block {
    uint64_t offset, first_event, time;
    uint32_t event_count, raw_size, stored_size;
} coffer__mlyze_block;

typedef struct coffer__mlyze_blocks coffer__mlyze_blocks;
typedef struct coffer__mlyze_built coffer__mlyze_built;

/* Immutable once it is built. */
typedef struct coffer__mlyze_map {
    coffer__mlyze_block *items;
    size_t count, capacity;
    uint64_t event_count;
    /* The error that ends the events before the end of the area; status COFFER_OK = none. */
    coffer_error damage;
    /* Offsets come from the index: raw_size is 0 until the header of the block is read, which also verifies
     * the entry. */
    bool from_index;
    coffer_mlyze_index_entry *entries; /* of that index, one per block; or NULL */
    struct coffer__mlyze_map *older;   /* the map it replaced, which other threads may still use */
} coffer__mlyze_map;

coffer_status coffer__mlyze_built_new(coffer__mlyze_built **out, coffer_error *err);
void coffer__mlyze_built_free(coffer__mlyze_built *built);
coffer_status coffer__mlyze_blocks_new(coffer__mlyze_blocks **out, coffer_error *err);
void coffer__mlyze_blocks_free(coffer__mlyze_blocks *blocks);
/* The map, built if necessary. Borrowed from the handle. */
coffer_status coffer__mlyze_get_map(const coffer__mlyze_map **out, const coffer_mlyze *trace,
                                    coffer_error *err);
/* A block of the current map; zeros past its end. raw_size is read from the file when the map came from an
 * index. */
coffer__mlyze_block coffer__mlyze_block_at(const coffer_mlyze *trace, size_t index);
/* A block of the map, confirmed by its header. A map from a wrong index is replaced by one from the file. */
coffer_status coffer__mlyze_find_block(coffer__mlyze_block *out, const coffer_mlyze *trace, size_t index,
                                       coffer_error *err);
/* The index was wrong about a block: builds a map from the file itself, if `wrong` is still in use. */
coffer_status coffer__mlyze_replace_map(const coffer_mlyze *trace, const coffer__mlyze_map *wrong,
                                        coffer_error *err);

/* A damaged block was met. Each counts once. */
void coffer__mlyze_note_lost(const coffer_mlyze *trace, size_t index);
/* False when the index of the map was wrong and another map has replaced it. */
bool coffer__mlyze_is_current_map(const coffer_mlyze *trace, const coffer__mlyze_map *map);

/* Walks over the blocks of the file, or the events of a plain one, from the end of the map on, and appends
 * the blocks. */
coffer_status coffer__mlyze_walk(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err);
/* Cuts a plain trace into pieces. A failure caused by the file is the end of its events. */
coffer_status coffer__mlyze_skim(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err);
coffer_status coffer__mlyze_map_add(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                    const coffer__mlyze_block *block, coffer_error *err);
void coffer__mlyze_map_free(coffer__mlyze_map *map);
/* Takes the blocks from the index file if it matches the trace; otherwise the map stays empty. */
coffer_status coffer__mlyze_map_from_index(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                           coffer_error *err);

/* Reads and checks the header of a block. crc : may be NULL. */
coffer_status coffer__mlyze_read_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err);
/* The same for a block that may extend past the end of the events. */
coffer_status coffer__mlyze_load_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err);

/* The checksum of a block. full : with the other fields of its header. */
uint32_t coffer__mlyze_block_sum(const coffer__mlyze_block *header, const uint8_t *stored, bool full);

/* Makes room in the columns for any block, and after them scratch for its bytes. */
coffer_status coffer__mlyze_events_reserve(coffer_mlyze_events *events, coffer_error *err);
/* The same for at least `rows` events. */
coffer_status coffer__mlyze_events_reserve_rows(coffer_mlyze_events *events, size_t rows, coffer_error *err);
/* Fails with what is wrong with a block, and the numbers of its events. */
coffer_status coffer__mlyze_fail_block(coffer_error *err, coffer_status status,
                                       const coffer__mlyze_block *block, const char *what);
/* Scratch for the raw and the stored bytes of a block, in the memory of reserved columns. */
uint8_t *coffer__mlyze_raw_scratch(const coffer_mlyze_events *events);
uint8_t *coffer__mlyze_stored_scratch(const coffer_mlyze_events *events);
/* The bytes of a block's events, decompressed and their checksum verified; borrowed from the source or from
 * the columns' scratch. *len is less than raw_size only for an event of a plain file that is larger than any
 * block. */
coffer_status coffer__mlyze_block_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                        const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                        coffer_error *err);
/* The raw bytes that the block->stored_size bytes of a truncated block give. */
coffer_status coffer__mlyze_cut_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                      const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                      coffer_error *err);

/* ---- Truncated blocks: the part before the cut is readable, but no checksum covers it ---- */

/* Decompresses the first `len` bytes of an LZ4 block, until `room` is full or the data is invalid. Returns
 * the number of bytes written. */
size_t coffer__mlyze_lz4_prefix(uint8_t *out, size_t room, const uint8_t *in, size_t len);

/* The truncated block at `offset`, whose header is complete, reduced to the whole events before the cut:
 * event_count, raw_size and stored_size are theirs, or 0 without any. */
coffer_status coffer__mlyze_find_cut_block(coffer__mlyze_block *out, const coffer_mlyze *trace,
                                           uint64_t offset, coffer_error *err);
/* Whether a block is such a truncated one. */
coffer_status coffer__mlyze_is_cut(bool *out, const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                   coffer_error *err);

/* ---- The index and its file ---- */

/* Loads the file at the trace's index_path; false when it does not belong to this trace or its entries cannot
 * be blocks of it. The caller frees *out. */
bool coffer__mlyze_index_load(coffer_mlyze_index_entry **out, size_t *count, const coffer_mlyze *trace);
/* Writes it there; failures are ignored. */
void coffer__mlyze_index_save(const coffer_mlyze *trace, const coffer_mlyze_index_entry *entries,
                              size_t count);
/* Loads or builds the index. Borrowed from the handle until it is closed. */
coffer_status coffer__mlyze_get_index(const coffer_mlyze_index_entry **out, size_t *count,
                                      const coffer_mlyze *trace, const coffer_progress *progress,
                                      coffer_error *err);
/* Whether a block from an index matches its own header; fills in raw_size. */
bool coffer__mlyze_block_agrees(const coffer_mlyze *trace, coffer__mlyze_block *block);

#endif
