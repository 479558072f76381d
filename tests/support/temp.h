/* Temporary folders for tests. Every function fails the running test when it cannot do its work. */
#ifndef SUPPORT_TEMP_H
#define SUPPORT_TEMP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

/* A new empty folder, in memory where the system has /dev/shm. temp_remove frees the name. */
char *temp_make(void);
/* Removes the folder with all that is in it. NULL allowed. */
void temp_remove(char *folder);
/* Removes what is in it. */
void temp_empty(const char *folder);

/* A folder that lives as long as a test, or a group of them: give the two to cmocka. */
extern char *temp_folder;
int temp_setup(void **state);
int temp_teardown(void **state);

/* folder/name. Four results stay valid: they take turns in a ring. */
const char *temp_path(const char *folder, const char *name);

void temp_write(const char *path, const void *bytes, size_t len);
/* The whole file followed by a NUL (free()); len may be NULL. NULL when the file does not exist. */
uint8_t *temp_read(const char *path, size_t *len);
bool temp_exists(const char *path);
bool temp_holds(const char *path, const void *bytes, size_t len);
void temp_copy(const char *from, const char *to);

/* Fails unless the folder holds exactly the named files: temp_assert_only(folder, "a", "b", NULL). */
void temp_assert_only(const char *folder, ...);
/* Fails when the folder has a file other than those named. */
void temp_assert_no_litter(const char *folder, ...);

#endif
