#include "outside/profiles/dhat.h"

#include <string.h>

bool coffer__dhat_probe(const uint8_t *head, size_t len)
{
    static const char key[] = "\"dhatFileVersion\"";
    size_t at = 0;
    if (len == 0 || head[at++] != '{')
        return false;
    while (at < len && head[at] && strchr(" \t\r\n", head[at]))
        at++;
    return len - at >= sizeof key - 1 && memcmp(head + at, key, sizeof key - 1) == 0;
}
