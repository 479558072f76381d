/* Dropping what nothing refers to any more. */
#include "verbs.h"

#include "mcf/mcf_verbs.h"

#include "term.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_for_people(const char *written, const coffer_node *root)
{
    const coffer_node *after = coffer_node_find(root, "size_after");
    uint64_t before = coffer_node_get_u64(coffer_node_find(root, "size_before"));
    uint64_t left = coffer_node_get_u64(after);
    term_text old_size, new_size, gone;
    term_print_text(stdout, written, strlen(written), 0);
    if (left >= before) {
        puts(": nothing to drop");
        return;
    }
    printf(": %s instead of %s, %s dropped\n", term_bytes(new_size, left), term_bytes(old_size, before),
           term_bytes(gone, before - left));
    cli_print_nodes(stdout, coffer_node_next(after));
}

/* Signals wait until the new file is in its place; one that comes before then cancels the work here. */
static int step(void *context, uint64_t done, uint64_t total)
{
    term_progress *bar = context;
    return bar->progress.step(bar->progress.context, done, total) || cli_signal_waits();
}

/* In a terminal, older states are dropped only when somebody agrees to it. */
static bool is_agreed(const cli_args *args, const char *path, uint64_t keep)
{
    coffer_pycauset_history *history = NULL;
    size_t states = 0, dropped;
    char answer[16] = "";
    if (cli_has(args, "yes") || cli_value(args, "output") || !term_is_terminal(stderr) ||
        !isatty(STDIN_FILENO))
        return true;
    if (coffer_pycauset_history_open_path(&history, path, NULL, NULL) == COFFER_OK)
        states = coffer_pycauset_history_count(history);
    coffer_pycauset_history_close(history);
    if (states <= keep)
        return true;
    dropped = states - (size_t)keep;
    fprintf(stderr, "%zu older state%s of ", dropped, dropped == 1 ? "" : "s");
    term_print_text(stderr, path, strlen(path), 0);
    fprintf(stderr, " will be deleted and cannot be restored ('coffer log' lists them). Continue? [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static coffer_status compact(coffer_node *root, const char *path, const char *output, const cli_args *args,
                             uint64_t keep, coffer_error *err)
{
    term_progress bar;
    coffer_progress progress = { sizeof progress, step, &bar };
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    opts.overwrite = cli_has(args, "force");
    opts.allow_damaged = cli_choice(args, "damaged", 0) == 1;
    opts.keep = keep;
    opts.progress = &progress;
    term_progress_start(&bar, "compacting", NULL);
    cli_hold_signals();
    coffer_status status = coffer_compact(root, path, output, &opts, err);
    term_progress_end(&bar);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return status;
}

static void print_damage(const char *path, const coffer_node *root)
{
    const coffer_node *list = coffer_node_find(root, "damaged");
    fflush(stdout);
    for (const coffer_node *map = list ? coffer_node_first(list) : NULL; map; map = coffer_node_next(map))
        cli_warn(path, "%s; kept", coffer_node_get_text(coffer_node_find(map, "text"), NULL));
}

static int run(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0), *output = cli_value(args, "output");
    if (strcmp(path, "-") == 0)
        return cli_usage(args, "a file is compacted where it is: standard input cannot be");
    uint64_t keep;
    if (!cli_number(&keep, args, "keep", 1, 1, UINT64_MAX))
        return CLI_USAGE;
    if (!is_agreed(args, path, keep)) {
        fputs("nothing was changed\n", stderr);
        return CLI_FINDINGS;
    }
    coffer_status status = cli_begin_rewrite(&root, path, output, &err);
    if (status == COFFER_OK)
        status = compact(root, path, output, args, keep, &err);
    if (status == COFFER_OK)
        status = coffer_node_status(root, &err);
    int result = CLI_OK;
    if (status != COFFER_OK)
        result = cli_fail_rewriting(args, path, output, &err);
    else if (cli_has(args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_for_people(output ? output : path, root);
    if (status == COFFER_OK)
        print_damage(path, root);
    if (status == COFFER_OK && (coffer_node_find(root, "damage") || coffer_node_find(root, "damaged")))
        result = cli_worse(result, CLI_FINDINGS);
    coffer_node_free(root);
    return status ? result : cli_worse(result, cli_report_damage(output ? output : path));
}

static const cli_option options[] = {
    { "output", 'o', "OUT", NULL, "write to OUT and leave FILE unchanged" },
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "damaged", 0, "MODE", "stop|keep",
      "data whose checksum is wrong: stop, or keep it and record the damage", "stop" },
    { "keep", 'k', "N", NULL, "number of states to keep of a file with a history (see 'coffer log')", "1" },
    { "yes", 'y', NULL, NULL, "delete older states without asking" },
    { "json", 0, NULL, NULL, "one JSON object: file, output, size_before, size_after, what was dropped" },
    { 0 },
};

const cli_verb cli_verb_compact = {
    .name = "compact",
    .usage = "FILE",
    .summary = "rewrite a file without unused bytes",
    .group = CLI_GROUP_CHANGE,
    .description =
        "Formats that are changed by appending keep what was there before. This drops it, and with "
        "it the older states of the file, except for those that --keep names; in a terminal it asks before. "
        "The "
        "new file takes the place of the old one when it is "
        "complete; writers are kept away meanwhile, readers are not.",
    .examples = "  coffer compact m.pycauset                  # in place, atomically\n"
                "  coffer compact m.pycauset --keep 3         # the newest state and two before it\n"
                "  coffer compact m.pycauset -o small.pycauset\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
