/* What a user of the installed library writes first. */
#include <coffer/coffer.h>

#include <stdio.h>

int main(void)
{
    puts(coffer_version());
    return 0;
}
