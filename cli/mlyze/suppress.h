/* Stacks that nobody wants to hear of: patterns on functions and files, from options and from files. */
#ifndef COFFER_CLI_SUPPRESS_H
#define COFFER_CLI_SUPPRESS_H

#include "cli.h"

#define SUPPRESS_OPTIONS                                                                                 \
    { "suppress", 0, "GLOB", NULL,                                                                       \
      "leave out stacks with a function or file that matches, without a * anywhere in it; repeatable" }, \
    {                                                                                                    \
        "suppressions", 0, "FILE", NULL,                                                                 \
            "such patterns, one a line; # begins a comment, leak: before a pattern is allowed"           \
    }

typedef struct suppressions {
    char **patterns;
    size_t count, capacity;
} suppressions;

/* 0, or the exit status after a message. To be freed in both cases. */
int suppressions_read(suppressions *out, const cli_args *args);
void suppressions_free(suppressions *list);
/* stack : may be SIZE_MAX, which no pattern matches. */
bool suppressions_match(const suppressions *list, const coffer_mlyze *trace, size_t stack);

#endif
