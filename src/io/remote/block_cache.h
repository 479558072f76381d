/* Blocks of remote files in memory: a fixed number of frames for all files of the process, the least recently
 * used one goes first. Every call needs coffer__remote_lock. */
#ifndef COFFER_IO_REMOTE_BLOCK_CACHE_H
#define COFFER_IO_REMOTE_BLOCK_CACHE_H

#include "coffer/error.h"

#define COFFER__FRAME_NONE UINT32_MAX

typedef enum coffer__frame_state {
    COFFER__FRAME_FREE,
    COFFER__FRAME_LOADING, /* a fetch is on its way */
    COFFER__FRAME_READY,
    COFFER__FRAME_FAILED /* stays until nobody holds it */
} coffer__frame_state;

/* Makes the frames; once for the process. */
coffer_status coffer__cache_prepare(uint64_t bytes, coffer_error *err);
/* Frames in all. */
uint32_t coffer__cache_capacity(void);
/* The frame of a block, whatever its state; COFFER__FRAME_NONE for a block without one. */
uint32_t coffer__cache_find(uint64_t file, uint64_t block);
/* A frame for a block that has none, LOADING and held once; COFFER__FRAME_NONE when all frames are held. */
uint32_t coffer__cache_claim(uint64_t file, uint64_t block);
void coffer__cache_hold(uint32_t number);
/* The same for a block that is read once: its age stays. */
void coffer__cache_pin(uint32_t number);
/* A block that will be read soon is dropped last. */
void coffer__cache_refresh(uint32_t number);
void coffer__cache_release(uint32_t number);
coffer__frame_state coffer__cache_state(uint32_t number);
void coffer__cache_settle(uint32_t number, bool ready);
/* Its bytes; may be written by who claimed it while it is LOADING, without the lock. */
uint8_t *coffer__cache_bytes(uint32_t number);
/* Forgets the blocks of a file that is closed; those that are held go when they are released. */
void coffer__cache_forget(uint64_t file);

#endif
