/* Where the blocks of a trace are. Found when first asked for: from the index, or by a walk over the file. */
#ifndef COFFER_FORMATS_MLYZE_BLOCKS_H
#define COFFER_FORMATS_MLYZE_BLOCKS_H

#include "coffer/mlyze.h"

/* coffer_mlyze_block without the size that versions it: maps have millions of them. */
typedef struct coffer__mlyze_block {
    uint64_t offset, first_event, time;
    uint32_t event_count, raw_size, stored_size;
} coffer__mlyze_block;

typedef struct coffer__mlyze_blocks coffer__mlyze_blocks;
typedef struct coffer__mlyze_built coffer__mlyze_built;

/* Never changes once it is made. */
typedef struct coffer__mlyze_map {
    coffer__mlyze_block *items;
    size_t count, capacity;
    uint64_t event_count;
    /* What ends the events before the area does; status COFFER_OK when nothing does. */
    coffer_error damage;
    /* Places are what the index says: raw_size is 0 until the block's own header was asked, and reading finds
     * out whether it was right. */
    bool from_index;
    coffer_mlyze_index_entry *entries; /* of that index, one per block; NULL without */
    struct coffer__mlyze_map *older;   /* the one it took the place of: somebody may still look at it */
} coffer__mlyze_map;

coffer_status coffer__mlyze_built_new(coffer__mlyze_built **out, coffer_error *err);
void coffer__mlyze_built_free(coffer__mlyze_built *built);
coffer_status coffer__mlyze_blocks_new(coffer__mlyze_blocks **out, coffer_error *err);
void coffer__mlyze_blocks_free(coffer__mlyze_blocks *blocks);
/* The map, made when there is none. Borrowed from the handle. */
coffer_status coffer__mlyze_get_map(const coffer__mlyze_map **out, const coffer_mlyze *trace,
                                    coffer_error *err);
/* A block of the map that was made last; zeros past its end. raw_size is read from the file where the map
 * came from an index. */
coffer__mlyze_block coffer__mlyze_block_at(const coffer_mlyze *trace, size_t index);
/* A block of an index turned out to lie elsewhere: makes a map from the file itself, if `wrong` is still the
 * one in use. */
coffer_status coffer__mlyze_replace_map(const coffer_mlyze *trace, const coffer__mlyze_map *wrong,
                                        coffer_error *err);

/* False when the index behind the map was wrong and another map has replaced it. */
bool coffer__mlyze_is_current_map(const coffer_mlyze *trace, const coffer__mlyze_map *map);

/* Walks the blocks of the file, or skims the events of a plain one, from the end of what the map has on, and
 * appends what it finds. */
coffer_status coffer__mlyze_walk(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err);
/* The pieces of a plain trace. A failure that is about the file is what ends its events. */
coffer_status coffer__mlyze_skim(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err);
coffer_status coffer__mlyze_map_add(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                    const coffer__mlyze_block *block, coffer_error *err);
void coffer__mlyze_map_free(coffer__mlyze_map *map);
/* Takes the blocks from the index file, when there is one and it fits the trace: else the map stays empty. */
coffer_status coffer__mlyze_map_from_index(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                           coffer_error *err);

/* What the header of a block says. Fails when it cannot be one. crc : may be NULL. */
coffer_status coffer__mlyze_read_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err);
/* The same of a block that may go on behind the end of the events. */
coffer_status coffer__mlyze_load_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err);

/* Columns with room for every block, and behind them scratch for its bytes. */
coffer_status coffer__mlyze_events_reserve(coffer_mlyze_events *events, coffer_error *err);
/* Room for the bytes of a block, in the memory of columns that were reserved: raw, and as they are stored. */
uint8_t *coffer__mlyze_raw_scratch(const coffer_mlyze_events *events);
uint8_t *coffer__mlyze_stored_scratch(const coffer_mlyze_events *events);
/* The bytes of a block's events, decompressed and their checksum verified; borrowed from the source or from
 * the columns' scratch. *len is less than raw_size only for an event of a plain file that is larger than any
 * block. */
coffer_status coffer__mlyze_block_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                        const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                        coffer_error *err);
/* The bytes of events that block->stored_size bytes give, of a block that the end of the file cuts off. */
coffer_status coffer__mlyze_cut_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                      const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                      coffer_error *err);

#endif
