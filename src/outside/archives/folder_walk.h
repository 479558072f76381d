/* The files below a folder, by name, and opening what is inside it. Symbolic links are never followed. */
#ifndef COFFER_CONVERT_FOLDER_WALK_H
#define COFFER_CONVERT_FOLDER_WALK_H

#include "base/arena.h"
#include "base/buffer.h"
#include "coffer/error.h"
#include "coffer/limits.h"

typedef struct coffer__folder_file {
    const char *path; /* relative to the folder */
    bool irregular;   /* a link, a device, a socket */
} coffer__folder_file;

typedef struct coffer__folder_list {
    coffer__arena paths;
    coffer__folder_file *files;
    size_t count, capacity;
} coffer__folder_list;

/* Adds every file below the folder, folder by folder and sorted by the bytes of their names. Hidden files and
 * folders, and what file managers leave behind (Thumbs.db, desktop.ini), are left out. */
coffer_status coffer__folder_list_read(coffer__folder_list *list, const char *folder,
                                       const coffer_limits *limits, coffer_error *err);
void coffer__folder_list_free(coffer__folder_list *list);

/* Opens a regular file by a path that comes from a file which is not trusted: COFFER_E_UNSAFE_PATH when it is
 * absolute, has "..", passes a link or is not a regular file. folder : a descriptor of the folder. */
coffer_status coffer__folder_open_inside(int *fd, int folder, const char *path, coffer_error *err);
/* The contents of an open regular file. max : COFFER_E_LIMIT beyond. name : for messages. */
coffer_status coffer__folder_read_file(coffer__buffer *out, int fd, uint64_t max, const char *name,
                                       coffer_error *err);

#endif
