/* convert: a file as another kind of file, by the library's table of conversions. */
#include "verbs.h"

#include "args.h"
#include "cli.h"
#include "files.h"
#include "mcf/mcf_verbs.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In the order of the command line, since options are repeatable. */
static size_t collect_settings(coffer_setting *settings, const cli_args *args)
{
    size_t count = 0;
    for (size_t i = 0; i < args->given_count; i++) {
        const cli_given *given = &args->given[i];
        if (cli_is_convert_setting(given->option))
            settings[count++] = (coffer_setting){ given->option->name, given->value };
    }
    return count;
}

/* Whether a file that an option names is the output too. */
static bool names_input(const cli_args *args, const char *out)
{
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].value && cli_same_file(args->given[i].value, out))
            return true;
    return false;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Notes go to standard error, since the output may be standard output. */
static int report(const cli_args *args, const char *in, const char *out, const coffer_report *notes)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    bool to_stream = strcmp(out, "-") == 0;
    if (!cli_has(args, "json")) {
        cli_print_notes(out, notes);
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(out, &err, NULL);
    coffer_node_add_text(root, "file", in);
    coffer_node_add_text(root, "output", out);
    if (to_stream)
        coffer_node_add_null(root, "size");
    else
        coffer_node_add_u64(root, "size", size_of(out), COFFER_UNIT_BYTES);
    cli_add_notes(root, notes);
    cli_add_damaged(root);
    int status = cli_print_json(to_stream ? stderr : stdout, root);
    coffer_node_free(root);
    return status;
}

/* The options of the conversions from this kind that raise a limit of their own. */
static const char *limit_hint(char out[204], coffer_source *src)
{
    size_t len = 0;
    const char *kind;
    out[0] = '\0';
    if (coffer_convert_kind(&kind, src, NULL) != COFFER_OK)
        return NULL;
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (strcmp(coffer_conversion_from(conversion), kind) != 0)
            continue;
        for (size_t j = 0; j < coffer_conversion_option_count(conversion); j++) {
            const coffer_convert_option *option = coffer_conversion_option_at(conversion, j);
            char name[40];
            snprintf(name, sizeof name, "--%s %s, ", option->name, option->argument ? option->argument : "");
            if (strncmp(option->name, "max-", 4) == 0 && !strstr(out, name) && len + strlen(name) < 120)
                len += (size_t)snprintf(out + len, 120 - len, "%s", name);
        }
    }
    if (len == 0)
        return NULL;
    snprintf(out + len - 2, 84,
             " and --limit (such as memory=4G) raise limits that protect against malicious files");
    return out;
}

/* NULL : chosen by status. */
static const char *choose_hint(char limits[204], const cli_args *args, coffer_source *src, const char *out,
                               const coffer_error *err)
{
    const coffer_format *format;
    bool about_arguments = err->status == COFFER_E_INVALID_ARGUMENT;
    bool about_key = err->status == COFFER_E_KEY_NEEDED || err->status == COFFER_E_AUTHENTICATION_FAILED;
    if (err->status == COFFER_E_LIMIT)
        return limit_hint(limits, src);
    if (err->system_error || about_key || (err->status == COFFER_E_BAD_CHECKSUM && cli_offers_damaged()) ||
        (err->subject == COFFER_SUBJECT_OUTPUT && !about_arguments))
        return NULL;
    if (about_arguments && (err->subject == COFFER_SUBJECT_OTHER || names_input(args, out)))
        return "name another output file";
    if (about_arguments)
        return "'coffer convert --list KIND' shows the conversions of a kind and their options";
    if (err->status == COFFER_E_NOT_RECOGNISED)
        return "--from says what it is; 'coffer convert --list' shows what can be converted";
    /* Check and repair know the library's own formats, and nothing of those of others. */
    return coffer_identify(&format, src, NULL) == COFFER_OK ? NULL : "";
}

static int convert(const cli_args *args, coffer_source *src, const char *in, const char *out)
{
    coffer_setting *settings = calloc(args->given_count + 1, sizeof *settings);
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    int result = CLI_OK;
    if (!settings || coffer_report_new(&opts.notes, 0, NULL) != COFFER_OK) {
        free(settings);
        return cli_fail("convert",
                        &(coffer_error){ .status = COFFER_E_NO_MEMORY,
                                         .offset = COFFER_OFFSET_NONE,
                                         .text = "out of memory" },
                        "");
    }
    /* The conversion reads a file that --key-file names itself; a pipe can be read only once. */
    cli_key key = { .at = NULL };
    if (!cli_has(args, "key-file")) {
        result = cli_key_read(&key, args);
        if (result)
            goto out;
    }
    opts.key = key.at;
    opts.from = cli_value(args, "from");
    opts.to = cli_value(args, "to");
    opts.overwrite = cli_has(args, "force");
    opts.settings = settings;
    opts.setting_count = collect_settings(settings, args);
    term_progress_start(&bar, "converting", NULL);
    bar.amount = coffer_source_size(src);
    opts.progress = &bar.progress;
    char limits[204];
    coffer_status status = coffer_convert(src, out, &opts, &err);
    term_progress_end(&bar);
    cli_key_wipe(&key);
    if (status == COFFER_OK) {
        result = cli_worse(report(args, in, out, opts.notes), cli_report_damage(out));
        goto out;
    }
    result = cli_fail_between(in, out, &err, choose_hint(limits, args, src, out, &err));
out:
    free(settings);
    coffer_report_free(opts.notes);
    return result;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int run(const cli_args *args)
{
    const char *in = cli_operand(args, 0), *out = cli_operand(args, 1), *to = cli_value(args, "to");
    coffer_source *src = NULL;
    if (cli_has(args, "list"))
        return cli_convert_list(args);
    if (!in || !out)
        return cli_usage(args, "requires two files: the input and the output");
    if (strcmp(out, "-") == 0 && !to)
        return cli_usage(args, "standard output has no extension: --to says what to write");
    if (strcmp(out, "-") == 0 && term_is_terminal(stdout) && !coffer_convert_is_text(to))
        return cli_usage(args, "%s is nothing to look at: name a file, or pipe it into a program", to);
    if (is_folder(in))
        return cli_usage(args, "%s is a folder; 'coffer pack' makes one file of what is in it", in);
    int status = cli_open(&src, in);
    if (!status)
        status = convert(args, src, in, out);
    coffer_source_close(src);
    return status;
}

const cli_verb cli_verb_convert = {
    .name = "convert",
    .usage = "IN OUT",
    .summary = "convert a file to another format",
    .writes = CLI_WRITES_LAST,
    .group = CLI_GROUP_CONVERT,
    .description =
        "What comes in is recognized by its content, text without a magic by its name; what goes out by the "
        "extension of OUT. '--list' lists the kinds and what each can be converted to, '--list KIND' the "
        "options of these conversions.\n"
        "OUT appears whole or not at all. '-' is a standard stream. What OUT does not keep as it was "
        "(decoded, converted, left out) is reported on standard error.",
    .examples = "  coffer convert scan.mscan scan.npy                          # numpy.load(\"scan.npy\")\n"
                "  coffer convert scan.mscan scan.csv --metadata scan.json     # nothing is lost\n"
                "  coffer convert scan.csv again.mscan --metadata scan.json    # and back\n"
                "  coffer convert scan.mscan - --to jsonl --tokens 0..10 --names\n"
                "  coffer convert measured.csv scan.mscan --quantize --sequence-lengths 128,96\n"
                "  coffer convert matrix.pycauset matrix.npy                   # values, the view applied\n"
                "  coffer convert graph.mtx order.pycauset --type causal\n"
                "  coffer convert model.gguf model.mcf                         # notes say what is decoded\n"
                "  coffer convert model.mcf model.safetensors --shard-size 5GB # and an index beside them\n",
    .make_options = cli_convert_options,
    .min_operands = 0,
    .max_operands = 2,
    .run = run,
};
