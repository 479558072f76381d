/* The files that an operation reads, by device and inode, whatever path leads to them. A sink refuses to
 * replace one of them, also when overwriting is allowed: this is the one place that keeps inputs safe. */
#ifndef COFFER_IO_INPUTS_H
#define COFFER_IO_INPUTS_H

#include "coffer/source.h"

#include <sys/stat.h>

/* Adds an open file. Does nothing unless coffer_protect_inputs was called. */
void coffer__inputs_note(int fd);
/* A file that this process has just created: an input with its inode does not exist any more. */
void coffer__inputs_forget(int fd);
/* A file that a verb rewrites in place: it is no longer an input. */
void coffer__inputs_allow(const char *path);

/* Protects one file for as long as an operation runs. The struct is the caller's and must not move. */
typedef struct coffer__inputs_scope {
    dev_t device;
    ino_t inode;
    bool entered;
    struct coffer__inputs_scope *next;
} coffer__inputs_scope;
void coffer__inputs_enter(coffer__inputs_scope *scope, const coffer_source *src);
void coffer__inputs_leave(coffer__inputs_scope *scope);

/* COFFER_E_INVALID_ARGUMENT when the file is an input. */
coffer_status coffer__inputs_check_output(const struct stat *output, coffer_error *err);

#endif
