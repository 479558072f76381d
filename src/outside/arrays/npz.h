/* NumPy's .npz: a ZIP archive of .npy files, one for each array. */
#ifndef COFFER_CONVERT_NPZ_H
#define COFFER_CONVERT_NPZ_H

#include "outside/archives/zip.h"
#include "outside/arrays/npy.h"

typedef struct coffer__npz_array {
    const char *name; /* as numpy.load names it, without ".npy"; borrowed */
    size_t member;    /* index in the archive */
    coffer__npy npy;  /* data_offset counts from the start of the member */
} coffer__npz_array;

typedef struct coffer__npz {
    coffer__zip *zip;
    coffer__npz_array *arrays; /* in the order of the archive */
    size_t count;
    char *names;
} coffer__npz;

/* Reads the directory and the header of every array. Members other than .npy files are left out. src :
 * borrowed, must outlive the set. */
coffer_status coffer__npz_open(coffer__npz *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__npz_close(coffer__npz *npz);                          /* its members, not itself */
size_t coffer__npz_find(const coffer__npz *npz, const char *name); /* SIZE_MAX: none */
/* The .npy file of an array; coffer_source_close(). */
coffer_status coffer__npz_source(coffer_source **out, const coffer__npz *npz, size_t index,
                                 coffer__zip_access access, coffer_error *err);
/* Offset of an array's elements in the archive; COFFER_OFFSET_NONE when they are deflated. */
uint64_t coffer__npz_plain_offset(const coffer__npz *npz, size_t index);

#endif
