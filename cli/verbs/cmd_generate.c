/* Writes man pages, completions and docs. For the build, not for users. */
#include "generate.h"

#include "args.h"
#include "base/fail.h"
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

static int complete(const cli_args *args, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        cli_complete_bash(stdout);
    else if (strcmp(shell, "zsh") == 0)
        cli_complete_zsh(stdout);
    else if (strcmp(shell, "fish") == 0)
        cli_complete_fish(stdout);
    else
        return cli_usage(args, "completions are made for bash, zsh and fish, not for '%s'", shell);
    return CLI_OK;
}

static int run(const cli_args *args)
{
    static const page_kind man = { cli_man_overview, cli_man_verb, "coffer", "coffer-", ".1" };
    static const page_kind docs = { cli_docs_overview, cli_docs_verb, "README", "", ".md" };
    const char *what = cli_operand(args, 0), *where = cli_operand(args, 1);
    if (strcmp(what, "man") == 0)
        return write_pages(&man, where);
    if (strcmp(what, "docs") == 0)
        return write_pages(&docs, where);
    if (strcmp(what, "completion") == 0)
        return complete(args, where);
    return cli_usage(args, "makes man, docs or completion, not '%s'", what);
}

const cli_verb cli_verb_generate = {
    .name = "generate",
    .usage = "man DIR | docs DIR | completion bash|zsh|fish",
    .summary = "write man pages, documentation and shell completions",
    .description = "Everything comes from the same tables as the help.",
    .examples = "  coffer generate completion bash > ~/.local/share/bash-completion/completions/coffer\n",
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
    .hidden = true,
};
