/* The rollback journal: in-place updates that a crash at any byte leaves either undone or done.
 *
 *   "CFRJ" | u32 version 2 | u64 old file size | u32 range count | u32 CRC-32 of the whole, this field zero
 *   u32 bytes of the old file's head | u32 CRC-32 of them (version 1 has neither)
 *   per range: u64 offset | u32 length | the old bytes
 *
 * A journal is trusted when it belongs to the owner of the file, to us or to root, and when the head of the
 * file, with the old bytes in their places, is that of the file it was written for.
 *
 * It is stored next to the file as NAME-journal. Removing it is the commit. */
#ifndef COFFER_IO_JOURNAL_H
#define COFFER_IO_JOURNAL_H

#include "coffer/error.h"
#include "coffer/source.h"

typedef struct coffer__range {
    uint64_t offset, length;
} coffer__range;

enum { COFFER__JOURNAL_HEADER = 24, COFFER__JOURNAL_RANGE = 12 };
/* A larger one is neither written nor loaded. */
#define COFFER__JOURNAL_MAX (UINT64_C(2) << 30)

/* ---- For readers ---- */

typedef struct coffer__journal_entry {
    uint64_t offset;
    uint32_t length;
    const uint8_t *bytes;
} coffer__journal_entry;

typedef struct coffer__journal {
    uint64_t old_size;
    uint32_t head_size, head_crc; /* of the file that it was written for; 0 bytes: not known */
    size_t count;
    coffer__journal_entry *entries; /* sorted, none overlapping, all inside the old size */
    uint8_t *memory;
} coffer__journal;

/* Distinguishes states of the journal file, whose header is written last. */
typedef struct coffer__journal_mark {
    bool present;
    uint64_t size;
    uint8_t header[COFFER__JOURNAL_HEADER];
} coffer__journal_mark;

/* NAME-journal; coffer__free. NULL when out of memory. */
char *coffer__journal_path(const char *path);
/* *out is NULL without a journal, or with an incomplete one. mark : may be NULL. path : of the file, with
 * symbolic links resolved; fd : the file. COFFER_E_UNSAFE_PATH when somebody else put the journal there,
 * COFFER_E_INCONSISTENT when it was written for another file. */
coffer_status coffer__journal_load(coffer__journal **out, coffer__journal_mark *mark, const char *path,
                                   int fd, coffer_error *err);
void coffer__journal_free(coffer__journal *journal);
/* True when the journal file has not changed since it was loaded. */
bool coffer__journal_mark_holds(const coffer__journal_mark *mark, const char *path);
/* Puts the old bytes into a piece of the file that was read from offset. */
void coffer__journal_lay_over(const coffer__journal *journal, void *piece, uint64_t offset, size_t len);
/* COFFER_E_TRUNCATED when the file ends before the old size and the journal does not have the rest. */
coffer_status coffer__journal_covers(const coffer__journal *journal, uint64_t file_size, coffer_error *err);

/* ---- For writers ---- */

/* Rolls back an interrupted update of the locked file (*done, may be NULL), and removes an incomplete
 * journal.
 */
coffer_status coffer__journal_roll_back(bool *done, int fd, const char *path, coffer_error *err);
/* Before a new file takes the path: rolls back what an interrupted update left of the old one, or removes a
 * journal whose file is gone. Otherwise its bytes would be applied to the new file. COFFER_E_LOCKED while an
 * update is in progress. path : of the file, with symbolic links resolved. */
coffer_status coffer__journal_clear(const char *path, coffer_error *err);
/* Writes the journal of the ranges, sorted and inside the file, and makes it durable. What is left after a
 * failure must be removed. */
coffer_status coffer__journal_write(const char *journal_path, int fd, uint64_t old_size,
                                    const coffer__range *ranges, size_t count, coffer_error *err);

typedef struct coffer__update coffer__update;

/* Opens a regular file for updating: takes the write lock (COFFER_E_LOCKED) and rolls back what an
 * interrupted update left (*rolled_back, may be NULL). */
coffer_status coffer__update_open(coffer__update **out, const char *path, bool *rolled_back,
                                  coffer_error *err);
/* The current bytes of the file, read with pread. Borrowed. Its size is fixed at open. */
coffer_source *coffer__update_source(coffer__update *update);
int coffer__update_fd(const coffer__update *update);
/* Journals the old bytes of the ranges (inside the file, none overlapping) and the old size, durably. Only
 * then may the file be changed. COFFER_E_CHANGED when another file has taken the path. */
coffer_status coffer__update_begin(coffer__update *update, const coffer__range *ranges, size_t count,
                                   coffer_error *err);
/* Buffered, after the end of the file; offset counts from the old end. */
coffer_status coffer__update_append(coffer__update *update, const void *bytes, size_t len, coffer_error *err);
/* Only inside the ranges given to begin, or inside what was appended. */
coffer_status coffer__update_overwrite(coffer__update *update, uint64_t offset, const void *bytes, size_t len,
                                       coffer_error *err);
/* Syncs, removes the journal, syncs the folder; the handle can then begin another update. A failure before
 * the journal is gone rolls back; one of the last sync leaves the new state in the file, but a crash may
 * still bring the old one back. After a failed write or sync every call gives that error again. */
coffer_status coffer__update_commit(coffer__update *update, coffer_error *err);
/* Writes out what was appended, so that it can be read through coffer__update_fd. */
coffer_status coffer__update_flush(coffer__update *update, coffer_error *err);
/* Undoes what was begun and not committed; the file stays open and locked. */
coffer_status coffer__update_roll_back(coffer__update *update, coffer_error *err);
/* Rolls back what was begun and not committed, unlocks, frees. NULL allowed. */
void coffer__update_close(coffer__update *update);

#endif
