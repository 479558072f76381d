/* The record of what an operation did to the files of a folder. */
#ifndef SUPPORT_CRASH_RECORD_H
#define SUPPORT_CRASH_RECORD_H

#include "support/shim.h"

enum { CRASH_MAX_NAMES = 32, CRASH_MAX_FILES = 256, CRASH_MAX_DESCRIPTORS = 1024, CRASH_NAME_SIZE = 256 };

typedef enum crash_kind {
    CRASH_WRITE,
    CRASH_TRUNCATE,
    CRASH_SYNC_FILE,
    CRASH_CREATE, /* also a second name for a file */
    CRASH_RENAME,
    CRASH_UNLINK,
    CRASH_SYNC_FOLDER
} crash_kind;

typedef struct crash_op {
    crash_kind kind;
    int file;
    uint64_t offset; /* or the new size */
    uint8_t *bytes;
    size_t len;
    char name[CRASH_NAME_SIZE], new_name[CRASH_NAME_SIZE];
} crash_op;

typedef struct crash_names {
    size_t count;
    struct {
        char name[CRASH_NAME_SIZE];
        int file;
    } entries[CRASH_MAX_NAMES];
} crash_names;

typedef struct crash_image {
    uint8_t *bytes;
    size_t len;
} crash_image;

typedef struct crash_record {
    const char *folder;
    crash_names first; /* as it was before the operation */
    crash_image files[CRASH_MAX_FILES];
    int file_count;
    crash_op *ops;
    size_t op_count;
    crash_names now;
    int descriptors[CRASH_MAX_DESCRIPTORS]; /* file, or one of the two below */
    shim_observer observer;
} crash_record;

enum { CRASH_OUTSIDE = -1, CRASH_FOLDER = -2 };

void crash_names_set(crash_names *names, const char *name, int file);
void crash_names_drop(crash_names *names, const char *name);
void crash_names_apply(crash_names *names, const crash_op *op);

/* Takes in the files of the folder and records what happens to them until crash_record_end. */
void crash_record_begin(crash_record *record, const char *folder);
void crash_record_end(crash_record *record);
void crash_record_free(crash_record *record);

#endif
