/* Allocates and frees blocks of mixed sizes as fast as it can: torture THREADS EVENTS. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HELD = 256, THREADS_MAX = 64 };

static long pairs;

static __attribute__((noinline)) void *take(size_t size)
{
    void *block = malloc(size);
    *(volatile char *)block = 1;
    return block;
}

/* Some depth, so that stacks cost something. */
static __attribute__((noinline)) void *descend(int depth, size_t size)
{
    void *block = depth > 0 ? descend(depth - 1, size) : take(size);
    *(volatile char *)block = 2;
    return block;
}

static void *work(void *argument)
{
    unsigned state = *(unsigned *)argument * 7919 + 1;
    void *held[HELD] = { 0 };
    for (long i = 0; i < pairs; i++) {
        state = state * 1664525 + 1013904223;
        unsigned at = state >> 8 & (HELD - 1);
        free(held[at]);
        held[at] = descend((int)(state >> 28), (state >> 16) % 512 + 1);
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    return NULL;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pairs = argc > 2 ? atol(argv[2]) / 2 / count : 1000000;
    pthread_t threads[THREADS_MAX];
    unsigned numbers[THREADS_MAX];
    double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < count && i < THREADS_MAX; i++) {
        numbers[i] = (unsigned)i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < count && i < THREADS_MAX; i++)
        pthread_join(threads[i], NULL);
    double events = 2.0 * (double)pairs * count;
    printf("%.1f %.1f\n", (seconds(CLOCK_MONOTONIC) - start) * 1e9 / events,
           (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e9 / events);
    return 0;
}
