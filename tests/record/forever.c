/* Allocates until it is killed, with pauses that keep its trace small. */
#include <stdlib.h>
#include <unistd.h>

static void *volatile last;

int main(void)
{
    for (unsigned i = 1;; i++) {
        if (i % 64 == 0)
            usleep(20);
        last = malloc(100);
        free(last);
    }
}
