/* The files below a folder, by name, and opening what is inside it. Symbolic links are followed only on
 * request. */
#ifndef COFFER_CONVERT_FOLDER_WALK_H
#define COFFER_CONVERT_FOLDER_WALK_H

#include "base/buffer.h"
#include "coffer/error.h"
#include "coffer/limits.h"

typedef enum coffer__folder_entry {
    COFFER__ENTRY_FILE = 0,
    COFFER__ENTRY_LINK, /* symbolic, and not followed */
    COFFER__ENTRY_PIPE,
    COFFER__ENTRY_SOCKET,
    COFFER__ENTRY_DEVICE,
    COFFER__ENTRY_UNREADABLE /* a folder that cannot be listed */
} coffer__folder_entry;

typedef struct coffer__folder_file {
    const char *path; /* relative to the folder */
    coffer__folder_entry entry;
    bool hidden;   /* it, or a folder above it, begins with a dot, or a file manager left it behind */
    uint32_t root; /* which folder of several */
} coffer__folder_file;

typedef struct coffer__folder_list {
    coffer__arena paths;
    coffer__folder_file *files;
    size_t count, capacity;
} coffer__folder_list;

typedef struct coffer__folder_walk_opts {
    bool follow_links;    /* a link counts as what it leads to; a folder is never entered inside itself */
    bool keep_unreadable; /* a folder that cannot be listed becomes an entry instead of an error */
    uint32_t root;        /* of the files that are added */
} coffer__folder_walk_opts;

/* Adds everything below the folder that is not a folder, folder by folder and sorted by the bytes of their
 * names. opts : NULL = defaults. */
coffer_status coffer__folder_list_read(coffer__folder_list *list, const char *folder,
                                       const coffer__folder_walk_opts *opts, const coffer_limits *limits,
                                       coffer_error *err);
/* "a symbolic link" */
const char *coffer__folder_entry_name(coffer__folder_entry entry);
void coffer__folder_list_free(coffer__folder_list *list);

/* Opens a regular file by a path that comes from a file which is not trusted: COFFER_E_UNSAFE_PATH when it is
 * absolute, has "..", passes a link or is not a regular file. folder : a descriptor of the folder. */
coffer_status coffer__folder_open_inside(int *fd, int folder, const char *path, coffer_error *err);
/* The contents of an open regular file. max : COFFER_E_LIMIT beyond. name : for messages. */
coffer_status coffer__folder_read_file(coffer__buffer *out, int fd, uint64_t max, const char *name,
                                       coffer_error *err);

#endif
