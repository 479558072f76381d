/* A program that eats memory in known ways: what the tools say about it is known beforehand. */
#include <stdlib.h>
#include <string.h>

static void *volatile kept[64];

static void *grab(size_t size)
{
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

static void leak(void)
{
    for (int i = 0; i < 10; i++)
        kept[i] = grab(1000);
}

static void churn(void)
{
    for (int i = 0; i < 100; i++)
        free(grab(64));
}

static void peak(void)
{
    void *blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = grab(20000);
    for (int i = 0; i < 5; i++)
        free(blocks[i]);
}

int main(void)
{
    leak();
    churn();
    peak();
    kept[60] = realloc(calloc(10, 30), 700);
    return 0;
}
