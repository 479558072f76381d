/* convert: a file as another kind of file, by the library's table of conversions. */
#include "verbs.h"

#include "args.h"
#include "convert_options.h"
#include "key.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void list_options(coffer_node *list, const coffer_conversion *conversion)
{
    for (size_t i = 0; i < coffer_conversion_option_count(conversion); i++) {
        const coffer_convert_option *option = coffer_conversion_option_at(conversion, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", option->name);
        coffer_node_add_text(map, "argument", option->argument);
        coffer_node_add_text(map, "help", option->help);
        coffer_node_add_text(map, "choices", option->choices);
        coffer_node_add_text(map, "default", option->default_value);
    }
}

static int list_json(void)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_node_new(&root, &err);
    if (status == COFFER_OK) {
        coffer_node *list = coffer_node_add_list(root, "conversions");
        for (size_t i = 0; i < coffer_conversion_count(); i++) {
            const coffer_conversion *conversion = coffer_conversion_at(i);
            coffer_node *map = coffer_node_add_map(list, NULL);
            coffer_node_add_text(map, "from", coffer_conversion_from(conversion));
            coffer_node_add_text(map, "to", coffer_conversion_to(conversion));
            list_options(coffer_node_add_list(map, "options"), conversion);
        }
        status = coffer_node_status(root, &err);
    }
    int exit_status = status == COFFER_OK ? cli_print_json(stdout, root) : cli_fail("convert", &err, "");
    coffer_node_free(root);
    return exit_status;
}

/* " (one of a, b; default: a)" */
static void print_choices(const coffer_convert_option *option)
{
    const char *opening = " (";
    if (option->choices) {
        printf("%sone of ", opening);
        cli_print_choices(stdout, option->choices);
        opening = "; ";
    }
    if (option->default_value)
        printf("%sdefault: %s", opening, option->default_value);
    if (option->choices || option->default_value)
        putchar(')');
}

static int list_for_people(void)
{
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        printf("%s%s to %s%s\n", term_on(stdout, TERM_BOLD), coffer_conversion_from(conversion),
               coffer_conversion_to(conversion), term_off(stdout));
        for (size_t j = 0; j < coffer_conversion_option_count(conversion); j++) {
            const coffer_convert_option *option = coffer_conversion_option_at(conversion, j);
            int printed = printf("  --%s%s%s", option->name, option->argument ? " " : "",
                                 option->argument ? option->argument : "");
            printf("%*s%s", printed < 26 ? 26 - printed : 1, "", option->help);
            print_choices(option);
            putchar('\n');
        }
    }
    return CLI_OK;
}

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

static int convert(const cli_args *args, coffer_source *src, const char *in, const char *out)
{
    coffer_setting *settings = calloc(args->given_count + 1, sizeof *settings);
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    if (!settings)
        return cli_fail("convert",
                        &(coffer_error){ .status = COFFER_E_NO_MEMORY,
                                         .offset = COFFER_OFFSET_NONE,
                                         .text = "out of memory" },
                        "");
    /* The conversion reads a file that --key-file names itself; a pipe can be read only once. */
    cli_key key = { .at = NULL };
    if (!cli_has(args, "key-file")) {
        int result = cli_key_read(&key, args);
        if (result) {
            free(settings);
            return result;
        }
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
    coffer_status status = coffer_convert(src, out, &opts, &err);
    term_progress_end(&bar);
    cli_key_wipe(&key);
    free(settings);
    if (status == COFFER_OK)
        return CLI_OK;
    /* Check and repair know the library's own formats, and nothing of those of others. */
    const coffer_format *format;
    const char *hint = coffer_identify(&format, src, NULL) == COFFER_OK ? NULL : "";
    bool about_arguments = status == COFFER_E_INVALID_ARGUMENT;
    if (err.system_error || (err.subject == COFFER_SUBJECT_OUTPUT && !about_arguments))
        hint = NULL;
    else if (status == COFFER_E_KEY_NEEDED || status == COFFER_E_AUTHENTICATION_FAILED)
        hint = NULL;
    else if (status == COFFER_E_INVALID_ARGUMENT)
        hint = "'coffer convert --list' shows every conversion and its options";
    else if (status == COFFER_E_NOT_RECOGNISED)
        hint = "--from says what it is; 'coffer convert --list' shows what can be converted";
    return cli_fail_between(in, out, &err, hint);
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
        return cli_has(args, "json") ? list_json() : list_for_people();
    if (!in || !out)
        return cli_usage(args, "wants two files: what to convert, and what to make of it");
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
    .group = CLI_GROUP_CONVERT,
    .description =
        "What comes in is recognized by its content, text without a magic by its name; what goes out by the "
        "extension of OUT. '--list' shows what can be made of what, and the options that each conversion "
        "has.\n"
        "OUT appears whole or not at all. '-' is a standard stream.",
    .examples = "  coffer convert scan.mscan scan.npy                          # numpy.load(\"scan.npy\")\n"
                "  coffer convert scan.mscan scan.csv --metadata scan.json     # nothing is lost\n"
                "  coffer convert scan.csv again.mscan --metadata scan.json    # and back\n"
                "  coffer convert scan.mscan - --to jsonl --tokens 0..10 --names\n"
                "  coffer convert measured.csv scan.mscan --quantize --sequence-lengths 128,96\n"
                "  coffer convert matrix.pycauset matrix.npy                   # values, the view applied\n"
                "  coffer convert graph.mtx order.pycauset --type causal\n"
                "  coffer convert model.gguf model.mcf                         # blocks are decoded\n"
                "  coffer convert model.mcf model.safetensors --shard-size 5GB # and an index beside them\n",
    .make_options = cli_convert_options,
    .min_operands = 0,
    .max_operands = 2,
    .run = run,
};
