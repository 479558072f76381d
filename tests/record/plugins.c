/* Loads libraries one after the other, often at the same address, and lets each allocate: plugins [LIBRARY
 * FUNCTION SIZE]… */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    for (int i = 1; i + 2 < argc; i += 3) {
        void *(*function)(size_t);
        void *library = dlopen(argv[i], RTLD_NOW);
        void *found = library ? dlsym(library, argv[i + 1]) : NULL;
        if (!found)
            return 1;
        memcpy(&function, &found, sizeof function);
        void *block = function((size_t)atoi(argv[i + 2]));
        printf("%d\n", block != NULL);
        free(block);
        dlclose(library);
    }
    return 0;
}
