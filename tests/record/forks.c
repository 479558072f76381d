/* Fifty short-lived children, each with one allocation of its own: forks [system-call]. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 50 };

static void *volatile last;

int main(int argc, char **argv)
{
    (void)argv;
    int sum = 0, status;
    last = malloc(1000);
    for (int i = 0; i < CHILDREN; i++) {
        /* The system call passes by every handler that a library could install. */
        pid_t pid = argc > 1 ? (pid_t)syscall(SYS_fork) : fork();
        if (pid == 0) {
            last = malloc((size_t)i + 1);
            _exit(i);
        }
    }
    while (wait(&status) > 0)
        sum += WEXITSTATUS(status);
    printf("%d\n", sum);
    free(last);
    return 0;
}
