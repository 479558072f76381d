/* revert, for matrices: an older generation becomes the newest one. */
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    { "message", 'm', "TEXT", NULL, "what it is for; 'coffer log' shows it", "\"revert to generation N\"" },
    { "author", 0, "NAME", NULL, "who makes the change; 'coffer log' shows it" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, generation, restored" },
    { 0 },
};

/* The generation before the active one. */
static coffer_status find_previous(uint64_t *out, const char *path, coffer_error *err)
{
    coffer_pycauset_history *history = NULL;
    coffer_status status = coffer_pycauset_history_open_path(&history, path, NULL, err);
    if (status)
        return status;
    *out = 0;
    for (size_t i = 0; i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(history, i);
        if (state->active)
            break;
        if (state->committed)
            *out = state->generation;
    }
    coffer_pycauset_history_close(history);
    return COFFER_OK;
}

static int report(const cli_args *args, uint64_t generation, uint64_t to)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": generation %" PRIu64 " is generation %" PRIu64 " again\n", generation, to);
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err))
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "pycauset");
    coffer_node_add_u64(root, "generation", generation, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "restored", to, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int revert_to(const cli_args *args, uint64_t to)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_editor_opts opts = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
    coffer_pycauset_editor *editor = NULL;
    uint64_t generation = 0;
    char message[64];
    snprintf(message, sizeof message, "revert to generation %" PRIu64, to);
    opts.message = cli_has(args, "message") ? cli_value(args, "message") : message;
    opts.author = cli_value(args, "author");
    opts.time = pycauset_now();
    coffer_status status = coffer_pycauset_editor_open(&editor, cli_operand(args, 0), &opts, &err);
    cli_hold_signals();
    if (!status)
        status = coffer_pycauset_editor_revert(&generation, editor, to, &err);
    coffer_pycauset_editor_close(editor);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    if (status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(args, "%s", err.text);
    if (status)
        return cli_fail(cli_operand(args, 0), &err,
                        status == COFFER_E_NOT_FOUND ? "'coffer log' lists the generations" : NULL);
    return report(args, generation, to);
}

static int run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *path = cli_operand(args, 0), *word = cli_operand(args, 1);
    uint64_t to = 0;
    (void)src; /* NULL: the editor opens the file, to lock it */
    if (strcmp(path, "-") == 0)
        return cli_usage(args, "standard input cannot be changed in place; name a file");
    if (word) {
        char *end = NULL;
        errno = 0;
        to = isdigit((unsigned char)*word) ? strtoull(word, &end, 10) : 0;
        if (to == 0 || *end || errno)
            return cli_usage(args, "'%s' is not a generation; 'coffer log' lists them", word);
    } else if (find_previous(&to, path, &err)) {
        return cli_fail(path, &err, NULL);
    } else if (to == 0) {
        return cli_usage(args, "%s has no older generation to go back to", path);
    }
    return revert_to(args, to);
}

const cli_format_verb cli_pycauset_revert = {
    .format = "pycauset",
    .verb = "revert",
    .options = options,
    .examples = "  coffer revert m.pycauset                       # undo the last change\n"
                "  coffer revert m.pycauset 3 -m 'wrong label'    # back to generation 3\n",
    .run = run,
    .opens_file = true,
};
