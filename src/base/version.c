#include "coffer/coffer.h"

const char *coffer_version(void)
{
    return COFFER_VERSION_STRING;
}
