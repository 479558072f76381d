/* The arguments of get. */
#ifndef COFFER_CLI_PYCAUSET_GET_H
#define COFFER_CLI_PYCAUSET_GET_H

#include "cli.h"

typedef struct get_job {
    const cli_args *args;
    const char *path, *what, *output, *as;
    bool force, stale;
} get_job;

/* "3,4", "10..20,0..5", "7", "..,2" or "values"; keys do not begin with a digit. */
bool get_is_tile(const char *what);
int get_tile(const get_job *job, coffer_source *src);
/* Options that apply to values only. */
enum { GET_VALUE_OPTIONS = 3 };
extern const char *const get_value_options[GET_VALUE_OPTIONS];

#endif
