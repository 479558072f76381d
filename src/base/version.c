#include "coffer/coffer.h"

const char *coffer_version(void)
{
    return COFFER_VERSION_STRING;
}

int coffer_version_number(void)
{
    return COFFER_VERSION_NUMBER;
}
