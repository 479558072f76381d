/* The members of a source, for the files of this folder that make and read them. */
#ifndef COFFER_IO_SOURCE_STRUCT_H
#define COFFER_IO_SOURCE_STRUCT_H

#include "io/source_private.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Identity of a file when it was opened, to detect changes. */
typedef struct coffer__file_facts {
    char *path; /* with symbolic links resolved; NULL when the source is not a file */
    struct stat file;
    coffer__journal_mark journal;
} coffer__file_facts;

struct coffer_source {
    coffer_source_ops ops;
    void *context;
    uint64_t size;
    char *name;
    int fd; /* borrowed from the context, or −1 */
    bool interrupted;
    bool watches_journal;
    bool other; /* not the file that the caller named: errors name it */
    coffer__file_facts facts;
    coffer_report *damage; /* damage is accepted and goes here; NULL = damage is an error */
};

/* A new source starts with this report. */
coffer_report *coffer__source_default_damage_report(void);

/* The SIGBUS handler of mapped sources. A page that a mapped file no longer has (it was truncated, or the
 * disk failed) becomes zeros, and the mapping is marked: its reader asks before it trusts what it computed.
 */

/* Guards a mapping. Returns its slot, or −1 when all are in use. */
int coffer__guard_add(const void *base, size_t len);
/* Must be called before the mapping is removed. */
void coffer__guard_remove(int slot);

#endif
