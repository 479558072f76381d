/* set --add-field, set --field. */
#ifndef COFFER_CLI_ADD_FIELD_H
#define COFFER_CLI_ADD_FIELD_H

#include "files.h"

int mldf_add_field(const cli_args *args, const coffer_mldf *set, const cli_key *key);
int mldf_set_field(const cli_args *args, const coffer_mldf *set, const cli_key *key);

#endif
