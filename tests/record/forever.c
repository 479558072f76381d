/* Allocates blocks of known sizes until it is killed, or a number of times: forever [COUNT]. Pauses keep its
 * trace small. */
#include <stdlib.h>
#include <unistd.h>

static void *volatile last;

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    for (unsigned i = 1; count == 0 || i <= count; i++) {
        if (i % 64 == 0)
            usleep(20);
        last = malloc(i % 1000 + 1);
        free(last);
    }
    return 0;
}
