/* The editor of a file: new states (pycauset_edit.c), commits (pycauset_commit.c) and the way back
 * (pycauset_history.c). */
#ifndef COFFER_FORMATS_PYCAUSET_EDITOR_H
#define COFFER_FORMATS_PYCAUSET_EDITOR_H

#include "base/fail.h"
#include "formats/pycauset/pycauset_private.h"

#include <pthread.h>

typedef struct coffer__pycauset_request coffer__pycauset_request;

struct coffer_pycauset_editor {
    int fd; /* holds the lock */
    char *path;
    coffer_durability durability;
    coffer_limits limits;
    char *message, *author; /* NULL or owned */
    int64_t time;           /* seconds since 1970; 0: not recorded */
    uint64_t size;          /* of the file, as we left it */
    coffer__pycauset_header header;
    uint8_t inactive[COFFER__PYCAUSET_SLOT_SIZE]; /* as stored in the file */
    coffer_pycauset_info info;
    coffer__pycauset_tree metadata;
    coffer__buffer block;   /* blocks that are about to be written; reused from commit to commit */
    coffer__sticky failure; /* of a write or sync */
    /* Commits of several threads. */
    pthread_mutex_t lock;
    pthread_cond_t written;
    coffer__pycauset_request *waiting; /* under the lock */
    bool is_writing;                   /* under the lock: one thread has everything above */
};

/* A state that is about to be written. */
typedef struct coffer__pycauset_next {
    coffer__arena memory;
    coffer__pycauset_patches patches;
    coffer__buffer sums;               /* of the payload with the patches; empty when they do not change */
    const coffer_pycauset_value *root; /* the new metadata */
    coffer_pycauset_changes *own[2];   /* changes that the tree refers to; NULL or owned */
} coffer__pycauset_next;

/* Whether the changes, or the checksums they ask for, need more than the metadata. */
bool coffer__pycauset_needs_payload(const coffer_pycauset_changes *changes);
/* The state after the changes: payload, then metadata. */
coffer_status coffer__pycauset_editor_compose(coffer__pycauset_next *next,
                                              const coffer_pycauset_editor *editor,
                                              const coffer_pycauset_changes *changes, coffer_error *err);
/* To be called before anything else: whether a commit is possible. */
coffer_status coffer__pycauset_editor_ready(const coffer_pycauset_editor *editor, coffer_error *err);
/* A source over the locked file. */
coffer_status coffer__pycauset_editor_source(coffer_source **out, const coffer_pycauset_editor *editor,
                                             coffer_error *err);
/* Adds the keys that describe this commit, and drops those of the one before. */
coffer_status coffer__pycauset_editor_sign(coffer__pycauset_next *next, const coffer_pycauset_editor *editor,
                                           coffer_error *err);
/* Writes the state. */
coffer_status coffer__pycauset_editor_write(uint64_t *generation, coffer_pycauset_editor *editor,
                                            coffer__pycauset_next *next, coffer_error *err);
void coffer__pycauset_next_free(coffer__pycauset_next *next);

#endif
