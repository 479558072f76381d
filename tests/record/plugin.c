/* A library that is loaded while the program runs; FUNCTION is the name of what it exports. */
#include <stdlib.h>

__attribute__((visibility("default"))) void *FUNCTION(size_t size);
void *FUNCTION(size_t size)
{
    void *volatile block = malloc(size);
    return block;
}
