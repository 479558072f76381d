#include "base/memory.h"
#include "mlyze_verbs.h"
#include "term.h"

#include <string.h>

/* Standard input has no path for an index. */
static char *index_path_of(const char *path)
{
    static const char ending[] = ".idx";
    size_t len = strlen(path);
    if (strcmp(path, "-") == 0)
        return NULL;
    char *index = coffer__malloc(len + sizeof ending);
    if (index) {
        memcpy(index, path, len);
        memcpy(index + len, ending, sizeof ending);
    }
    return index;
}

int mlyze_open_trace(coffer_mlyze **out, char **index, const char *path, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    opts.index_path = *index = index_path_of(path);
    if (coffer_mlyze_open(out, src, &opts, &err) == COFFER_OK)
        return CLI_OK;
    coffer__free(*index);
    *index = NULL;
    return cli_fail(path, &err, NULL);
}

int mlyze_tell_damage(const char *path, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mlyze_damage(trace, &err) == COFFER_OK)
        return CLI_OK;
    return cli_fail(path, &err,
                    "the numbers above are of the events that could be read; 'coffer check %' "
                    "lists all that is wrong");
}

int mlyze_with_trace(const cli_args *args, coffer_source *src,
                     int (*work)(const cli_args *args, const coffer_mlyze *trace))
{
    const char *path = cli_operand(args, 0);
    coffer_mlyze *trace = NULL;
    char *index = NULL;
    int result = mlyze_open_trace(&trace, &index, path, src);
    if (result != CLI_OK)
        return result;
    result = work(args, trace);
    if (result == CLI_OK || result == CLI_FINDINGS)
        result = cli_worse(result, mlyze_tell_damage(path, trace));
    coffer_mlyze_close(trace);
    coffer__free(index);
    return result;
}
