/* A signal handler that allocates, a jump out of it, and an exit by a signal. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static jmp_buf back;
static void *volatile last;

static void handle(int number)
{
    last = malloc(333);
    free(last);
    siglongjmp(back, number);
}

int main(void)
{
    signal(SIGUSR1, handle);
    for (int i = 0; i < 100; i++)
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
    last = malloc(10);
    raise(SIGTERM);
    return 0;
}
