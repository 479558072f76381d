#include "cli.h"

#include "io/sink.h"
#include "term.h"

#include <string.h>
#include <sys/stat.h>

/* Text of a file on a terminal keeps its lines and nothing that could do more than show. */
static int show(const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        term_print_text(stdout, text, (size_t)((stop ? stop : end) - text), 0);
        text = stop ? stop + 1 : end;
        if (stop || text == end)
            putchar('\n');
    }
    return CLI_OK;
}

int cli_write_out(const char *path, bool replace, const void *bytes, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !replace };
    const char *output = path ? path : "-";
    if (strcmp(output, "-") == 0 && term_is_terminal(stdout))
        return show(bytes, len);
    coffer_status status = coffer__sink_create(&sink, output, &opts, &err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, bytes, len, &err);
    if (status == COFFER_OK)
        status = coffer__sink_commit(sink, &err);
    else
        coffer__sink_discard(sink);
    return status == COFFER_OK ? CLI_OK
                               : cli_fail(strcmp(output, "-") == 0 ? "standard output" : output, &err, NULL);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}
