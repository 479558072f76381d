/* Every allocation of the library goes through these four, so that the fault tests can make each one fail
 * (the test programs are linked with --wrap for them; nothing of that is in the library). */
#ifndef COFFER_BASE_MEMORY_H
#define COFFER_BASE_MEMORY_H

#include <stddef.h>

void *coffer__malloc(size_t size);               /* size 0 gives a pointer that can be freed */
void *coffer__calloc(size_t count, size_t size); /* NULL when count × size overflows */
void *coffer__realloc(void *old, size_t size);
void coffer__free(const void *pointer);

/* count × size, checked; NULL on overflow. Not zeroed. */
void *coffer__alloc_array(size_t count, size_t size);
char *coffer__strndup(const char *text, size_t len); /* adds a NUL */
char *coffer__strdup(const char *text);

#endif
