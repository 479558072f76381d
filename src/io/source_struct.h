/* The members of a source, for the files of this folder that make and read them. */
#ifndef COFFER_IO_SOURCE_STRUCT_H
#define COFFER_IO_SOURCE_STRUCT_H

#include "io/source_private.h"

#include <sys/stat.h>

/* What a file was when it was opened, to tell whether it still is. */
typedef struct coffer__file_facts {
    char *path; /* behind symbolic links; NULL for what is no file */
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
};

#endif
