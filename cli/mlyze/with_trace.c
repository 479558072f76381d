#include "base/fail.h"
#include "base/memory.h"
#include "mlyze_verbs.h"
#include "term.h"

#include <inttypes.h>
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

int mlyze_open_trace(coffer_mlyze **out, char **index, const cli_args *args, const char *path,
                     coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    opts.index_path = *index = index_path_of(path);
    if (cli_has(args, "stack-order"))
        opts.stack_order = cli_choice(args, "stack-order", 0) == 0 ? COFFER_MLYZE_ORDER_OUTERMOST_FIRST
                                                                   : COFFER_MLYZE_ORDER_INNERMOST_FIRST;
    if (coffer_mlyze_open(out, src, &opts, &err) == COFFER_OK)
        return CLI_OK;
    coffer__free(*index);
    *index = NULL;
    return cli_fail(path, &err, NULL);
}

static void tell_note(const char *path, const char *text)
{
    fputs("coffer: ", stderr);
    term_print_text(stderr, path, strlen(path), 0);
    fprintf(stderr, ": note: %s\n", text);
}

#define SEE_CHECK \
    "the numbers above are of the events that could be read; 'coffer check %' lists all that is wrong"

int mlyze_tell_damage(const char *path, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    int result = CLI_OK;
    coffer_mlyze_lost(&blocks, &events, trace);
    if (coffer_mlyze_damage(trace, &err))
        result = cli_fail(path, &err, SEE_CHECK);
    if (blocks > 0) {
        coffer__fail(&err, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                     "%" PRIu64 " event%s in %" PRIu64 " damaged block%s are lost", events,
                     term_plural(events), blocks, term_plural(blocks));
        result = cli_fail(path, &err, SEE_CHECK);
    }
    bool known;
    coffer_mlyze_stack_order(trace, &known);
    if (!known)
        tell_note(path,
                  "the order of frames is not known; frames are read outermost first, but a plain trace of "
                  "Coffer 0.1 lists the innermost first: --stack-order innermost-first");
    if (coffer_mlyze_version(trace) > 1)
        tell_note(path, "made by a newer version of the format; what it adds is ignored");
    if (coffer_mlyze_repaired(trace, &err))
        result = cli_fail(path, &err, "the numbers above are of the events that were kept");
    return result == CLI_OK ? CLI_OK : CLI_FINDINGS;
}

int mlyze_with_trace(const cli_args *args, coffer_source *src,
                     int (*work)(const cli_args *args, const coffer_mlyze *trace))
{
    const char *path = cli_operand(args, 0);
    coffer_mlyze *trace = NULL;
    char *index = NULL;
    int result = mlyze_open_trace(&trace, &index, args, path, src);
    if (result != CLI_OK)
        return result;
    result = work(args, trace);
    if (result == CLI_OK || result == CLI_FINDINGS)
        result = cli_worse(result, mlyze_tell_damage(path, trace));
    coffer_mlyze_close(trace);
    coffer__free(index);
    return result;
}
