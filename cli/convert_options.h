/* The options of 'convert': those of the verb itself, and those of all conversions of the library. */
#ifndef COFFER_CLI_CONVERT_OPTIONS_H
#define COFFER_CLI_CONVERT_OPTIONS_H

#include "cli.h"

/* The table, built on the first call; it lives until the process ends. */
const cli_option *cli_convert_options(void);
/* Whether the option is one of a conversion. */
bool cli_is_convert_setting(const cli_option *option);

/* convert --list [KIND]: a table of all conversions, or those of a kind with their options. Returns the exit
 * status. */
int cli_convert_list(const cli_args *args);

#endif
