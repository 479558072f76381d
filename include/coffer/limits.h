#ifndef COFFER_LIMITS_H
#define COFFER_LIMITS_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* Limits on the resources that a reader may use for an untrusted file. NULL means the defaults, and so
 * does a struct_size of 0. */
typedef struct coffer_limits {
    uint32_t struct_size;
    uint32_t json_depth;   /* nesting of JSON and of typed maps */
    uint64_t json_bytes;   /* one JSON block */
    uint64_t entries;      /* tensors, sequences, stacks, fields … of one file */
    uint64_t string_bytes; /* one string */
    uint64_t memory_bytes; /* working memory of one call, beyond what the file's metadata needs */
    uint32_t findings;     /* findings that a report keeps */
    /* Bytes that a file compressed with gzip or zstd may give, where unpack_ratio times its size is not more.
     */
    uint64_t unpacked_bytes;
    /* Bytes that a conversion may write when they are more than 64 times its input: a few bytes can claim any
     * number of values. */
    uint64_t expanded_bytes;
    uint32_t unpack_ratio; /* what comes out of a compressed file may be this many times its size */
} coffer_limits;

#define COFFER_LIMITS_INIT                                                                   \
    {                                                                                        \
        sizeof(coffer_limits), 256, UINT64_C(1) << 30, UINT64_C(1) << 26, UINT64_C(1) << 30, \
            UINT64_C(1) << 30, 1000, UINT64_C(1) << 26, UINT64_C(1) << 32, 200               \
    }

/* Fills in the defaults of this process. */
COFFER_API void coffer_limits_init(coffer_limits *limits, uint32_t struct_size);
/* Changes the defaults of this process, which hold wherever limits are NULL. Not thread-safe: for a program
 * that starts, such as a command with an option for it. */
COFFER_API void coffer_limits_set_defaults(const coffer_limits *limits);

COFFER_END_DECLS

#endif
