/* A minimal program that uses the installed library. */
#include <coffer/coffer.h>

#include <stdio.h>

int main(void)
{
    puts(coffer_version());
    return 0;
}
