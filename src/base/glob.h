/* Shell patterns on names: * ? [a-z] [!a-z] \x, and * crosses dots and slashes. Time is at most
 * pattern × text. ? and sets take a whole UTF-8 character. */
#ifndef COFFER_BASE_GLOB_H
#define COFFER_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool coffer__glob_match(const char *pattern, const char *text, size_t len);

#endif
