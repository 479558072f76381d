/* Threads that pass blocks to each other, and many short-lived ones: threads COUNT EVENTS. Prints what a
 * trace of it must have. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BOXES = 64, HELD = 64 };

static void *boxes[BOXES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long events;
static unsigned long total;

static void *work(void *argument)
{
    unsigned state = *(unsigned *)argument * 7919 + 1;
    unsigned long bytes = 0;
    void *held[HELD] = { 0 };
    for (long i = 0; i < events; i++) {
        state = state * 1664525 + 1013904223;
        unsigned at = state >> 8 & (HELD - 1), size = (state >> 16) % 500 + 1;
        free(held[at]);
        held[at] = malloc(size);
        bytes += size;
        if (i % 8 != 0)
            continue;
        pthread_mutex_lock(&mutex);
        void *other = boxes[state >> 20 & (BOXES - 1)];
        boxes[state >> 20 & (BOXES - 1)] = held[at];
        held[at] = other;
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    __atomic_fetch_add(&total, bytes, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
    events = argc > 2 ? atol(argv[2]) : 1000;
    enum { AT_ONCE = 8 };
    for (unsigned done = 0; done < count; done += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        unsigned numbers[AT_ONCE], now = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (unsigned i = 0; i < now; i++) {
            numbers[i] = done + i;
            if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
                return 1;
        }
        for (unsigned i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < BOXES; i++)
        free(boxes[i]);
    printf("%lu %ld\n", total, (long)count * events);
    return 0;
}
