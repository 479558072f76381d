/* Any file into another kind of file, by the library's table of conversions. */
#include "verbs.h"

#include "args.h"
#include "base/report.h"
#include "key.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The verb's own options come first; all others are handed to the conversion, which knows which it has. A
 * test compares this table with the library's. */
enum { OWN_OPTIONS = 5 };
static const cli_option options[] = {
    { "from", 0, "KIND", NULL, "what the input is (found out from its content, else from its name)" },
    { "to", 0, "KIND", NULL, "what to make of it (by the output's extension)" },
    { "force", 'f', NULL, NULL, "replace an output that exists" },
    { "list", 0, NULL, NULL, "list the conversions and their options" },
    { "json", 0, NULL, NULL, "with --list: as JSON" },
    { "param", 'p', "GLOB", NULL, "only parameters whose name matches" },
    { "tokens", 't', "A..B", NULL, "only these tokens, B not included" },
    { "sequence", 's', "ID", NULL, "only this sequence" },
    { "only", 0, "LIST", NULL, "only these columns, with commas between them, in this order" },
    { "real", 0, NULL, NULL, "values in real units, where the file knows its scale" },
    { "names", 0, NULL, NULL, "also the parameter's name and the sequence of each record" },
    { "columns", 0, NULL, NULL, "a file for each column: OUT.COLUMN.npy" },
    { "metadata", 0, "FILE", NULL, "the metadata as JSON: written beside the records, or read with them" },
    { "model-name", 0, "NAME", NULL, "the model's name, where no metadata gives it" },
    { "param-names", 0, "FILE", NULL, "a parameter's name a line, the first for id 0" },
    { "sequence-lengths", 0, "N,N", NULL, "tokens of each sequence" },
    { "quantize", 0, NULL, NULL, "real values come in: store them in 16 bits with a scale" },
    { "dtype", 0, "TYPE", NULL, "values as bit, i8 to i64, u8 to u64, f16, f32, f64, c32, c64 or c128" },
    { "part", 0, "PART", "real|imag|abs", "of complex numbers" },
    { "rows", 0, "A..B", NULL, "only these rows, B not included; of an array that comes in: how many" },
    { "cols", 0, "A..B", NULL, "only these columns, B not included; of an array that comes in: how many" },
    { "stored", 0, NULL, NULL, "values as they are stored, without transposition, scalar and conjugation" },
    { "type", 0, "TYPE", "dense|vector|triangular|symmetric|antisymmetric|causal", "of the new matrix" },
    { "diagonal", 0, NULL, NULL, "a triangular matrix also has its diagonal" },
    { "checksum", 0, NULL, NULL, "keep checksums of the values" },
    { "member", 0, "NAME", NULL, "which array of an .npz archive" },
    { "dataset", 0, "NAME", NULL, "which dataset of an HDF5 file; the one to write is called data" },
    { "delimiter", 0, "CHAR", NULL, "what stands between numbers: a character, tab or space" },
    { "header", 0, NULL, NULL, "the first line of a CSV file of numbers names the columns" },
    { "layout", 0, "LAYOUT", "coordinate|array", "of a Matrix Market file" },
    { "dense", 0, NULL, NULL, "also when a large matrix would be all but empty" },
    { "offset", 0, "N", NULL, "of raw input: skip so many bytes" },
    { "cast", 0, "TYPE", "keep|f16|bf16", "tensors of other float types become this" },
    { "tensor", 0, "NAME", NULL, "which tensor of a model becomes an array" },
    { "include", 0, "GLOB", NULL, "only tensors whose name matches; may be there several times" },
    { "exclude", 0, "GLOB", NULL, "no tensors whose name matches; may be there several times" },
    { "shard-size", 0, "SIZE", NULL, "files of at most SIZE (5GB, 500MiB), with an index beside them" },
    { "align", 0, "SIZE", NULL, "tensors begin at multiples of SIZE: 64, 4096 or 2M" },
    { "no-dedup", 0, NULL, NULL, "write equal tensors again instead of once" },
    { "no-checksums", 0, NULL, NULL, "leave the table of checksums out" },
    { "what", 0, "WHAT", "peak|leaks|total|temporaries", "of a trace: which bytes a profile counts" },
    { "at", 0, "MOMENT", NULL, "of a trace: what is live at a time (1.5s), an event or a marker" },
    { "window", 0, "A..B", NULL, "of a trace: only from one moment to another" },
    { "partial", 0, NULL, NULL, "of a trace: take what can be read of one that is damaged or breaks off" },
    { "lines", 0, NULL, NULL, "of a trace: file and line behind each function" },
    { "stacks", 0, NULL, NULL, "of a trace: a column with all frames of the stack" },
    { "snapshots", 0, "N", NULL, "of a trace: how many snapshots a massif file gets" },
    { "threshold", 0, "PERCENT", NULL, "of a trace: smaller parts of a massif tree are summed up" },
    { "depth", 0, "N", NULL, "of a trace: frames of a stack in a massif tree, at most" },
    { "resolution", 0, "US", NULL, "of a trace: microseconds from one point of a counter to the next" },
    { "allocations", 0, NULL, NULL, "of a trace: every allocation as a span of a Chrome trace" },
    { "plain", 0, NULL, NULL, "a version-1 trace without blocks, checksums and index" },
    { "level", 0, "N", NULL, "of a new trace: 0 = fast, 1 to 12 = smaller and slower to write" },
    { "fields", 0, "NAMES", NULL, "of a training set: only these fields, with commas between them" },
    { "samples", 0, "A..B", NULL, "of a training set: only these samples, B not included" },
    { "key-file", 0, "FILE", NULL, "of a training set: the key of encrypted fields, or to encrypt with" },
    { "files", 0, NULL, NULL, "read in the files that the lines of a manifest name" },
    { "jpeg-quality", 0, "N", NULL, "of a new training set: encode pictures again, 1 to 100" },
    { "max-size", 0, "PIXELS", NULL, "of a new training set: make larger pictures smaller" },
    { "raw", 0, NULL, NULL, "of a new training set: store decoded pixels" },
    { "zstd", 0, NULL, NULL, "of a new training set: compress what is not compressed yet" },
    { "dedup", 0, NULL, NULL, "of a new training set: store equal values once" },
    { 0 },
};

static void list_options(coffer_node *list, const coffer_conversion *conversion)
{
    for (size_t i = 0; i < coffer_conversion_option_count(conversion); i++) {
        const coffer_convert_option *option = coffer_conversion_option_at(conversion, i);
        coffer_node *map = coffer__node_map(list, NULL);
        coffer__node_text(map, "name", option->name);
        coffer__node_text(map, "argument", option->argument);
        coffer__node_text(map, "help", option->help);
    }
}

static int list_json(void)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_node_new(&root, &err);
    if (status == COFFER_OK) {
        coffer_node *list = coffer__node_list(root, "conversions");
        for (size_t i = 0; i < coffer_conversion_count(); i++) {
            const coffer_conversion *conversion = coffer_conversion_at(i);
            coffer_node *map = coffer__node_map(list, NULL);
            coffer__node_text(map, "from", coffer_conversion_from(conversion));
            coffer__node_text(map, "to", coffer_conversion_to(conversion));
            list_options(coffer__node_list(map, "options"), conversion);
        }
        status = coffer__node_status(root, &err);
    }
    int exit_status = status == COFFER_OK ? cli_print_json(stdout, root) : cli_fail("convert", &err, "");
    coffer_node_free(root);
    return exit_status;
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
            printf("%*s%s\n", printed < 26 ? 26 - printed : 1, "", option->help);
        }
    }
    return CLI_OK;
}

static bool is_setting(const cli_option *option)
{
    for (size_t i = OWN_OPTIONS; options[i].name; i++) {
        if (option == &options[i])
            return true;
    }
    return false;
}

/* In the order of the command line: an option may be there several times. */
static size_t collect_settings(coffer_setting *settings, const cli_args *args)
{
    size_t count = 0;
    for (size_t i = 0; i < args->given_count; i++) {
        const cli_given *given = &args->given[i];
        if (is_setting(given->option))
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
        return cli_fail("convert", &(coffer_error){ COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory" },
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
    if (status == COFFER_E_EXISTS)
        hint = "--force replaces it";
    else if (status == COFFER_E_INVALID_ARGUMENT && strstr(err.text, "there is no key"))
        hint = "--key-file FILE or the environment's COFFER_KEY gives the key";
    else if (status == COFFER_E_INVALID_ARGUMENT)
        hint = "'coffer convert --list' shows every conversion and its options";
    else if (status == COFFER_E_NOT_RECOGNISED)
        hint = "--from says what it is; 'coffer convert --list' shows what can be converted";
    return cli_fail(status == COFFER_E_EXISTS ? out : cli_culprit(in, out, &err), &err, hint);
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
    .summary = "make another kind of file out of a file",
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
    .options = options,
    .min_operands = 0,
    .max_operands = 2,
    .run = run,
};
