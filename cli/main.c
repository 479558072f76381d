/* How a command line finds its way to a verb, and a verb to the format of its file. */
#include "args.h"
#include "files.h"
#include "help.h"
#include "record/parts.h"
#include "term.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The kinds of file that the verb works with, in one line. */
static const char *kinds_of(char out[160], const cli_verb *verb)
{
    size_t len = 0;
    *out = '\0';
    for (size_t i = 0; cli_format_verbs[i] && len < 160; i++)
        if (strcmp(cli_format_verbs[i]->verb, verb->name) == 0)
            len += (size_t)snprintf(out + len, 160 - len, "%s%s", len > 0 ? ", " : "",
                                    cli_format_verbs[i]->format);
    return out;
}

static int run_row(cli_args *args, const cli_format_verb *row, coffer_source *src)
{
    int status = cli_bind(args, row);
    return status ? status : row->run(args, src);
}

/* A verb that means something else for each format: the first operand's format decides. */
static int run_by_format(cli_args *args)
{
    const char *path = cli_operand(args, 0);
    char known[160];
    coffer_file *file = NULL;
    int status = cli_file_open_known(&file, path);
    if (status)
        return status;
    const cli_format_verb *row = cli_find_format_verb(args->verb->name, coffer_file_kind(file));
    if (row && row->opens_file) {
        coffer_file_close(file);
        return run_row(args, row, NULL);
    }
    if (row)
        status = run_row(args, row, coffer_file_source(file));
    else
        status = cli_usage(args, "%s is a %s file; 'coffer %s' works with %s files%s", path,
                           coffer_file_kind(file), args->verb->name, kinds_of(known, args->verb),
                           cli_file_can_be_converted(file) ? ": convert it first with 'coffer convert'" : "");
    coffer_file_close(file);
    return status;
}

/* A verb that makes a file: the extension of its name decides. */
static int run_by_output(cli_args *args)
{
    const char *path = cli_operand(args, cli_operand_count(args) - 1), *dot = strrchr(path, '.');
    char known[160];
    const cli_format_verb *row = NULL;
    for (size_t i = 0; dot && !row && i < coffer_format_count(); i++) {
        const coffer_format *format = coffer_format_at(i);
        if (strcasecmp(dot, coffer_format_extension(format)) == 0)
            row = cli_find_format_verb(args->verb->name, coffer_format_name(format));
    }
    if (!row)
        return cli_usage(args, "cannot tell the output format from '%s'; known: %s", path,
                         kinds_of(known, args->verb));
    return run_row(args, row, NULL);
}

static int run_by_row(cli_args *args)
{
    return args->verb->makes_file ? run_by_output(args) : run_by_format(args);
}

/* `coffer get model.mcf -h`: only the options for the file at hand, where its kind has some. */
static void show_help(const cli_args *args)
{
    const char *path = cli_operand(args, 0);
    coffer_file *file = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    bool open =
        path && strcmp(path, "-") != 0 && !args->verb->makes_file && !coffer_file_open(&file, path, &err);
    const char *kind = open ? coffer_file_kind(file) : NULL;
    if (kind && !cli_find_format_verb(args->verb->name, kind))
        kind = NULL;
    cli_help_verb(stdout, args->verb, kind);
    coffer_file_close(file);
}

/* Data for programs, and values of a file, stay as they are in every locale. */
static bool prints_data(const cli_args *args)
{
    static const char *const verbs[] = { "get", "convert", "flame", "order", "completion", "generate" };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(args->verb->name, verbs[i]) == 0)
            return true;
    return cli_has(args, "json") || cli_has(args, "csv");
}

static void prepare_streams(const cli_args *args)
{
    if (term_is_ascii())
        term_make_ascii(!prints_data(args));
    if (args->verb->pages && !cli_has(args, "no-pager"))
        term_start_pager();
}

static int set_remote(const cli_args *args)
{
    coffer_remote_opts opts = COFFER_REMOTE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.cache_folder = cli_value(args, "cache-dir");
    opts.download = cli_has(args, "download");
    opts.one_version = true;
    /* A check reads payloads once for checksums and once for their values. */
    opts.spool = strcmp(args->verb->name, "check") == 0 && cli_has(args, "full");
    return coffer_remote_configure(&opts, &err) ? cli_fail(NULL, &err, NULL) : CLI_OK;
}

static int run_verb(const cli_verb *verb, int count, char *const *words)
{
    cli_args args;
    int status = cli_parse(&args, verb, count, words);
    if (status)
        goto out;
    if (cli_value(&args, "color"))
        term_set_color(cli_value(&args, "color"));
    term_set_quiet(cli_has(&args, "quiet"));
    prepare_streams(&args);
    if (cli_set_limits(&args)) {
        status = CLI_USAGE;
        goto out;
    }
    status = set_remote(&args);
    if (status)
        goto out;
    if (cli_has(&args, "help")) {
        show_help(&args);
        goto out;
    }
    status = cli_check_operands(&args);
    if (!status)
        status = cli_recover_operands(&args);
    if (!status)
        status = cli_check_files(&args);
    if (!status)
        status = cli_start_damaged(&args);
    if (!status) {
        int found = cli_look_at_operands(&args);
        status = cli_worse(verb->run ? verb->run(&args) : run_by_row(&args), found);
        status = cli_finish_damaged(status);
    }
out:
    cli_args_free(&args);
    return status;
}

/* From here on, nothing shows the passwords and signatures of addresses. The names live as long as argv. */
static int hide_secrets(int count, char **words)
{
    coffer_error err = COFFER_ERROR_INIT;
    for (int i = 0; i < count; i++) {
        char *name = NULL;
        if (!coffer_is_remote(words[i]))
            continue;
        if (coffer_remote_name(&name, words[i], &err))
            return cli_fail(NULL, &err, NULL);
        words[i] = name;
    }
    return CLI_OK;
}

/* A standard stream that is closed must not become the number of a file: "-" would be that file, and messages
 * would be written into it. Reading or writing the substitute fails. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        bool for_writing = fd == STDIN_FILENO || fd == STDERR_FILENO;
        if (open("/dev/null", for_writing ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_FAILED);
    }
}

int main(int argc, char **argv)
{
    occupy_closed_streams();
    cli_install_signals();
    /* The output of a verb never replaces its input, not even with --force. */
    coffer_protect_inputs();
    coffer_keep_streams();
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    else if (strcmp(name, "quantise") == 0)
        name = "quantize";
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        return cli_unknown_verb(name);
    int status = hide_secrets(argc - 2, argv + 2);
    if (!status)
        status = run_verb(verb, argc - 2, argv + 2);
    status = cli_finish(status);
    term_end_pager();
    return status;
}
