/* ls -o: the entries as a picture. */
#ifndef COFFER_CLI_LS_PICTURE_H
#define COFFER_CLI_LS_PICTURE_H

#include "cli.h"

#define LS_PICTURE_OPTIONS                                                                          \
    { "output", 'o', "FILE", NULL, "draw the entries by size: a treemap, .png or .svg", "a list" }, \
        CLI_FORCE_OPTION, { "width", 0, "PIXELS", NULL, "width of the picture", "1200" },           \
    {                                                                                               \
        "height", 0, "PIXELS", NULL, "height of the picture", "700"                                 \
    }

/* 0, or the exit status after a message. */
int ls_draw(const cli_args *args, const char *file, const coffer_node *entries);

#endif
