/* Loses blocks of known sizes, and releases others: the leak sanitizer reports the lost ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *kept[3];

__attribute__((noinline)) static void lose(size_t size)
{
    void *volatile block = malloc(size);
    memset(block, 1, size);
    block = NULL;
}

__attribute__((noinline)) static void lose_list(int count)
{
    void **volatile first = NULL;
    for (int i = 0; i < count; i++) {
        void **node = malloc(48);
        *node = first;
        first = node;
    }
    first = NULL;
}

/* Registers and old frames must not refer to what is lost. */
__attribute__((noinline)) static int overwrite(void)
{
    volatile char room[8192];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = (char)i;
    return room[17];
}

int main(void)
{
    for (size_t i = 1; i <= 50; i++)
        lose(i * 10);
    lose_list(20);
    for (size_t i = 0; i < 3; i++)
        kept[i] = malloc(1000 + i);
    for (size_t i = 0; i < 3; i++)
        free(kept[i]);
    return overwrite() == 1;
}
