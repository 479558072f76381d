#include "convert/datasets/mldf_tar.h"

#include <string.h>

static const coffer__tar_extension extensions[] = {
    { "jpg", COFFER__TAR_IMAGE, false },   { "jpeg", COFFER__TAR_IMAGE, false },
    { "png", COFFER__TAR_IMAGE, true },    { "wav", COFFER__TAR_AUDIO, false },
    { "flac", COFFER__TAR_AUDIO, true },   { "cls", COFFER__TAR_INT, false },
    { "cls2", COFFER__TAR_INT, false },    { "index", COFFER__TAR_INT, false },
    { "inx", COFFER__TAR_INT, false },     { "id", COFFER__TAR_INT, false },
    { "float", COFFER__TAR_FLOAT, false }, { "txt", COFFER__TAR_TEXT, false },
    { "text", COFFER__TAR_TEXT, false },   { "transcript", COFFER__TAR_TEXT, false },
    { "json", COFFER__TAR_JSON, false },   { "npy", COFFER__TAR_ARRAY, false },
};

const coffer__tar_extension *coffer__tar_extension_of(const char *extension)
{
    const char *dot = strrchr(extension, '.');
    const char *last = dot ? dot + 1 : extension;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (strcmp(extensions[i].name, last) == 0)
            return &extensions[i];
    }
    return NULL;
}
