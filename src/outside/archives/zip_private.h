#ifndef COFFER_CONVERT_ZIP_PRIVATE_H
#define COFFER_CONVERT_ZIP_PRIVATE_H

#include "outside/archives/zip.h"

struct coffer__zip {
    coffer_source *src;
    coffer_limits limits;
    char *names; /* of all members, each NUL-terminated */
    coffer__zip_member *members;
    size_t count;
    size_t *by_name; /* indices of members */
};

#endif
