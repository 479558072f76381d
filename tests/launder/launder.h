/* The cases of the laundering test: a small file of each format, and what is done with a damaged copy of it.
 */
#ifndef COFFER_TESTS_LAUNDER_H
#define COFFER_TESTS_LAUNDER_H

#include <stddef.h>

enum { MOST_WORDS = 12 };

/* A command line without "coffer". The damaged file is "f.EXT", the good one "good.EXT", another good one
 * that verbs may change "other.EXT". */
typedef struct launder_verb {
    const char *name; /* in the lists of known failures */
    const char *words[MOST_WORDS];
} launder_verb;

/* A text that a command of the setup reads. */
typedef struct launder_input {
    const char *name, *text;
} launder_input;

typedef struct launder_format {
    const char *name;
    const char *file;            /* "f.mscan" */
    const launder_input *inputs; /* ends with a name that is NULL */
    const launder_verb *setup;   /* makes good.EXT; ends with a name that is NULL */
    const launder_verb *verbs;   /* ends with a name that is NULL */
} launder_format;

extern const launder_format launder_formats[]; /* ends with a name that is NULL */

#endif
