/* The rollback journal: in-place updates that a crash at any byte leaves either undone or done.
 *
 *   "CFRJ" | u32 version 1 | u64 old file size | u32 range count | u32 CRC-32 of the whole journal, this
 * field zero per range: u64 offset | u32 length | the bytes that stood there
 *
 * It lies beside the file as NAME-journal. Removing it is the commit. */
#ifndef COFFER_IO_JOURNAL_H
#define COFFER_IO_JOURNAL_H

#include "coffer/error.h"
#include "coffer/source.h"

typedef struct coffer__range {
    uint64_t offset, length;
} coffer__range;

/* ---- For readers ---- */

typedef struct coffer__journal_entry {
    uint64_t offset;
    uint32_t length;
    const uint8_t *bytes;
} coffer__journal_entry;

typedef struct coffer__journal {
    uint64_t old_size;
    size_t count;
    coffer__journal_entry *entries;
    uint8_t *memory;
} coffer__journal;

/* *out is NULL when there is no journal, or one that was never finished. */
coffer_status coffer__journal_load(coffer__journal **out, const char *path, coffer_error *err);
void coffer__journal_free(coffer__journal *journal);

/* ---- For writers ---- */

typedef struct coffer__update coffer__update;

/* Opens a regular file for updating: takes the write lock (COFFER_E_LOCKED) and rolls back what an
 * interrupted update left
 * (*rolled_back, may be NULL). */
coffer_status coffer__update_open(coffer__update **out, const char *path, bool *rolled_back,
                                  coffer_error *err);
/* The file as it stands, by pread. Borrowed. Its size is fixed at open. */
coffer_source *coffer__update_source(coffer__update *update);
int coffer__update_fd(const coffer__update *update);
/* Journals the old bytes of the ranges (inside the file, none overlapping) and the old size, durably. Only
 * then may the file be changed. */
coffer_status coffer__update_begin(coffer__update *update, const coffer__range *ranges, size_t count,
                                   coffer_error *err);
/* Buffered, after the end of the file; offset counts from the old end. */
coffer_status coffer__update_append(coffer__update *update, const void *bytes, size_t len, coffer_error *err);
/* Only inside the ranges given to begin, or inside what was appended. */
coffer_status coffer__update_overwrite(coffer__update *update, uint64_t offset, const void *bytes, size_t len,
                                       coffer_error *err);
/* Syncs, removes the journal, syncs the folder. On failure the update is rolled back. The handle can begin
 * another update. */
coffer_status coffer__update_commit(coffer__update *update, coffer_error *err);
/* Flushes what was appended, so that it can be read through coffer__update_fd. */
coffer_status coffer__update_flush(coffer__update *update, coffer_error *err);
/* Undoes what was begun and not committed; the file stays open and locked. */
coffer_status coffer__update_roll_back(coffer__update *update, coffer_error *err);
/* Rolls back what was begun and not committed, unlocks, frees. NULL allowed. */
void coffer__update_close(coffer__update *update);

#endif
