/* Shell completions for users; man pages and docs for the build. */
#include "help.h"

#include "args.h"
#include "base/fail.h"
#include "term.h"
#include "verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void cli_each_option(FILE *out, const cli_verb *verb, cli_option_visitor each, const void *context)
{
    cli_tables tables;
    cli_tables_of(&tables, verb, NULL);
    for (size_t t = 0; t < tables.count; t++)
        for (const cli_option *option = tables.at[t]; option->name; option++)
            /* Two formats may share an option: the first one speaks for both. */
            if (cli_tables_find(&tables, option->name, strlen(option->name)) == option)
                each(out, option, context);
}

bool cli_takes_file(const cli_option *option)
{
    return option->argument &&
           (strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "OUT") == 0);
}

bool cli_takes_name(const cli_option *option)
{
    return strcmp(option->name, "field") == 0 || strcmp(option->name, "param") == 0;
}

static int fail(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__fail_errno(&err, "cannot write", errno);
    return cli_fail(path, &err, NULL);
}

typedef struct page_kind {
    void (*overview)(FILE *out);
    void (*verb)(FILE *out, const cli_verb *verb);
    const char *overview_name, *prefix, *extension;
} page_kind;

static int write_page(const page_kind *kind, const char *folder, const cli_verb *verb)
{
    char path[4096];
    if (verb)
        snprintf(path, sizeof path, "%s/%s%s%s", folder, kind->prefix, verb->name, kind->extension);
    else
        snprintf(path, sizeof path, "%s/%s%s", folder, kind->overview_name, kind->extension);
    FILE *out = fopen(path, "w");
    if (!out)
        return fail(path);
    if (verb)
        kind->verb(out, verb);
    else
        kind->overview(out);
    bool failed = ferror(out);
    return fclose(out) != 0 || failed ? fail(path) : CLI_OK;
}

static int write_pages(const page_kind *kind, const char *folder)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail(folder);
    int status = write_page(kind, folder, NULL);
    for (size_t i = 0; cli_verbs[i] && !status; i++)
        if (!cli_verbs[i]->hidden)
            status = write_page(kind, folder, cli_verbs[i]);
    return status;
}

/* Names with control characters cannot be typed, and could harm the terminal. */
static bool is_one_line(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return len > 0;
}

/* Prints the names inside a file (tensors, fields, parameters), one per line, for the completions. */
static int print_names(const char *path)
{
    coffer_file *file = NULL;
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_file_open(&file, path, &err))
        return CLI_FAILED;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        status = coffer_file_list(root, file, NULL, &err);
    const coffer_node *list = status ? NULL : coffer_node_find(root, "entries");
    for (const coffer_node *entry = list ? coffer_node_first(list) : NULL; entry;
         entry = coffer_node_next(entry)) {
        const coffer_node *name = coffer_node_find(entry, "name");
        size_t len = 0;
        const char *text = name ? coffer_node_get_text(name, &len) : "";
        if (is_one_line(text, len))
            puts(text);
    }
    coffer_node_free(root);
    coffer_file_close(file);
    return status ? CLI_FAILED : CLI_OK;
}

static int run_completion(const cli_args *args)
{
    const char *shell = cli_operand(args, 0);
    if (strcmp(shell, "bash") == 0)
        cli_complete_bash(stdout);
    else if (strcmp(shell, "zsh") == 0)
        cli_complete_zsh(stdout);
    else if (strcmp(shell, "fish") == 0)
        cli_complete_fish(stdout);
    else
        return cli_usage(args, "'%s' must be one of bash, zsh, fish", shell);
    return CLI_OK;
}

const cli_verb cli_verb_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "print a completion script for a shell",
    .description = "The script completes verbs, options, their values, and the names of tensors, fields and "
                   "parameters inside a file. Installed packages have it in place already.",
    .examples = "  source <(coffer completion bash)\n"
                "  coffer completion zsh > ~/.zfunc/_coffer\n"
                "  coffer completion fish > ~/.config/fish/completions/coffer.fish\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = run_completion,
    .group = CLI_GROUP_HELP,
};

static int run_generate(const cli_args *args)
{
    static const page_kind man = { cli_man_overview, cli_man_verb, "coffer", "coffer-", ".1" };
    static const page_kind docs = { cli_docs_overview, cli_docs_verb, "README", "", ".md" };
    const char *what = cli_operand(args, 0), *where = cli_operand(args, 1);
    if (strcmp(what, "man") == 0)
        return write_pages(&man, where);
    if (strcmp(what, "docs") == 0)
        return write_pages(&docs, where);
    if (strcmp(what, "names") == 0)
        return print_names(where);
    return cli_usage(args, "'%s' must be one of man, docs, names", what);
}

const cli_verb cli_verb_generate = {
    .name = "generate",
    .usage = "man DIR | docs DIR | names FILE",
    .summary = "write man pages and documentation, or list names for completion",
    .description = "Everything comes from the same tables as the help.",
    .examples = "  coffer generate man /tmp/man\n",
    .min_operands = 2,
    .max_operands = 2,
    .run = run_generate,
    .hidden = true,
    .group = CLI_GROUP_HELP,
};
