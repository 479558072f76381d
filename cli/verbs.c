/* The verbs, in the order of the help: the first table of the command. Those whose meaning depends on the
 * format of a file have no code of their own and are defined here; the others are in verbs/. */
#include "verbs.h"

#include <string.h>

const char *const cli_group_titles[CLI_GROUP_COUNT] = {
    [CLI_GROUP_LOOK] = "Look into a file", [CLI_GROUP_VERIFY] = "Verify and repair",
    [CLI_GROUP_CHANGE] = "Change a file",  [CLI_GROUP_CONVERT] = "Make and convert files",
    [CLI_GROUP_SETS] = "Training sets",    [CLI_GROUP_TRACES] = "Memory traces",
    [CLI_GROUP_PICTURES] = "Pictures",     [CLI_GROUP_HELP] = "Help",
};

static const cli_verb get = {
    .name = "get",
    .usage = "FILE [NAME]",
    .summary = "extract a value, a tensor or records from a file",
    .description = "NAME and the output formats depend on the format of FILE: 'coffer help get FORMAT' or "
                   "'coffer get FILE -h' shows those of one format.",
    .min_operands = 1,
    .max_operands = 2,
    .group = CLI_GROUP_LOOK,
};

static const cli_verb stats = {
    .name = "stats",
    .usage = "FILE",
    .summary = "compute sums, means and extremes of the values in a file",
    .description =
        "What is counted, and how it can be grouped, depends on the format of FILE.\n"
        "For a scan, values are in real units if it has a scale, else the stored integers (0 to 65535). "
        "saturated counts values of 65535, the largest integer the file can store: the writer may have cut "
        "off larger ones. A z-score says how many standard deviations a value is above the mean of all "
        "values, or with --scope layer of those of its layer. sps (surprise) is the z-score of the "
        "activation minus that of the gradient norm, averaged over the records of a line; integral is its "
        "sum. dsc is sps by parameter: it is large for a parameter that is active but no longer learns. The "
        "layer follows from the name, such as model.layers.7.mlp.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_LOOK,
};

static const cli_verb replay = {
    .name = "replay",
    .usage = "FILE",
    .summary = "step through a scan token by token",
    .description = "Shows the records of a scan in the order in which they were taken.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_LOOK,
};

static const cli_verb log_verb = {
    .name = "log",
    .usage = "FILE",
    .summary = "list the earlier states of a file",
    .description =
        "Lists the older states that are still in the file, and what changed from one to the next. "
        "'coffer info --generation N' shows one of them, 'coffer revert FILE N' restores it.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_LOOK,
};

static const cli_verb set = {
    .name = "set",
    .usage = "FILE [KEY=VALUE…]",
    .summary = "change single values of a file in place",
    .description =
        "All changes of one command are committed together: after a crash the file has none of them or all. "
        "Data that is not named is not moved, however large it is. The keys and their values depend on the "
        "format of FILE.",
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .group = CLI_GROUP_CHANGE,
};

static const cli_verb revert = {
    .name = "revert",
    .usage = "FILE [GENERATION]",
    .summary = "make an older state of a file the newest one",
    .description =
        "Restores the metadata of an older generation, and the elements that were changed since, as a new "
        "generation: nothing is deleted, and the revert can be reverted. 'coffer log' lists the generations.",
    .min_operands = 1,
    .max_operands = 2,
    .group = CLI_GROUP_CHANGE,
};

static const cli_verb append = {
    .name = "append",
    .usage = "FILE IN",
    .summary = "add the content of another file to the end of a file",
    .description =
        "FILE is changed in place, under a rollback journal: after a crash it is unchanged, or all "
        "of IN is in it. The kinds of IN depend on the format of FILE.",
    .min_operands = 2,
    .max_operands = 2,
    .writes = CLI_WRITES_FIRST,
    .group = CLI_GROUP_CHANGE,
};

static const cli_verb unpack = {
    .name = "unpack",
    .usage = "FILE FOLDER",
    .summary = "restore the folder that a model was packed from",
    .description =
        "Writes configuration, tokenizer, the other files and the weights of a model into FOLDER, which is "
        "created when it does not exist. Weights are the same bytes as before when the model has their "
        "safetensors headers and unconverted tensors; otherwise they become model.safetensors.\n"
        "The exit status is 1 when a file is not byte for byte what was packed.",
    .min_operands = 2,
    .max_operands = 2,
    .group = CLI_GROUP_CONVERT,
};

static const cli_verb pack = {
    .name = "pack",
    .usage = "IN… OUT",
    .summary = "pack a folder or several files into one file",
    .description =
        "Makes a model out of its parts, a training set out of pictures, sounds, texts or shards, or a block "
        "matrix out of matrices. The extension of OUT selects the format. OUT appears complete or not at "
        "all.",
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .makes_file = true,
    .writes = CLI_WRITES_LAST,
    .group = CLI_GROUP_CONVERT,
};

static const cli_verb head = {
    .name = "head",
    .usage = "FILE",
    .summary = "show the first samples of a set",
    .description =
        "Prints a line for each sample and a column for each field: numbers and texts as they are, "
        "and the type and size of pictures, sounds and arrays.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_SETS,
};

static const cli_verb delete_verb = {
    .name = "delete",
    .usage = "FILE [SAMPLE…]",
    .summary = "remove samples or fields from a set, sequences from a scan",
    .description =
        "SAMPLE is a number, from 0, or a range such as 7..9 (9 is not included). The samples after the "
        "removed ones get new numbers. The file is changed in place, under a rollback journal: after a crash "
        "it is unchanged, or all of them are removed. Their bytes stay until 'coffer compact'. A set without "
        "a field is written again and replaces the file. For a scan, SAMPLE is the id of a sequence; the "
        "scan is "
        "written again and replaces the old one.",
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .group = CLI_GROUP_SETS,
};

static const cli_verb rename_verb = {
    .name = "rename",
    .usage = "FILE OLD=NEW",
    .summary = "give a field of a set another name",
    .description = "The set is written again and replaces the file: after a crash it has the old name or the "
                   "new one.",
    .min_operands = 2,
    .max_operands = 2,
    .group = CLI_GROUP_SETS,
};

static const cli_verb concat = {
    .name = "concat",
    .usage = "IN… OUT",
    .summary = "join several sets or scans into one",
    .description =
        "Writes the samples of the inputs to OUT, one set after the other, and compares every value with its "
        "checksum. The inputs must have the same fields. OUT appears complete or not at all.",
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .makes_file = true,
    .writes = CLI_WRITES_LAST,
    .group = CLI_GROUP_SETS,
};

static const cli_verb split = {
    .name = "split",
    .usage = "FILE",
    .summary = "divide a set or a scan into several files",
    .description =
        "Writes every sample to exactly one of the new files, NAME-PART.EXT, next to FILE or in the folder "
        "that -o names. FILE is not changed. When one of them cannot be written, or the command is "
        "interrupted, none is left.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_SETS,
};

static const cli_verb order = {
    .name = "order",
    .usage = "FILE",
    .summary = "print the order in which a training run reads the samples",
    .description =
        "Prints sample numbers, one per line. The order is computed from the seed, the epoch and the "
        "position alone: it can be resumed at any position and divided among any number of processes and "
        "workers so that every sample comes exactly once. coffer_mldf_order_at gives the same numbers.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_SETS,
};

static const cli_verb peak = {
    .name = "peak",
    .usage = "FILE",
    .summary = "show what was live when a program used the most memory",
    .description = "Lists the stacks whose blocks were live at the high-water mark, or at any other moment. "
                   "The figures are exact: every allocation was recorded and is paired with its release.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb leaks = {
    .name = "leaks",
    .usage = "FILE",
    .summary = "show what was never freed, and what keeps growing",
    .description = "Lists the stacks whose blocks were live when the recording ended, with their ages.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb temporaries = {
    .name = "temporaries",
    .usage = "FILE",
    .summary = "show allocations that are freed at once",
    .description =
        "Lists the stacks whose blocks live shortest: memory that could be reused, put on the stack or "
        "avoided.\n"
        "A block is temporary when its thread frees it before it allocates anything else. heaptrack counts "
        "fewer: there, a release of another block in between also ends the lifetime of a temporary block.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb heap = {
    .name = "heap",
    .usage = "FILE",
    .summary = "show the objects on the heap by type, and what keeps them alive",
    .description =
        "Reads a heap snapshot of a trace: its objects, the references between them, and the sizes of their "
        "blocks. An object retains what would be freed with it: the objects that are reachable through it "
        "alone. The roots are the objects that no other object refers to.",
    .min_operands = 1,
    .max_operands = 1,
    .pages = true,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb flame = {
    .name = "flame",
    .usage = "FILE",
    .summary = "draw a flame graph of where memory comes from",
    .description =
        "Draws stacks as a flame graph (.svg, .html), or writes them as collapsed lines for other tools: a "
        "line for each different stack, the largest branch first ('coffer convert' writes the same frames, a "
        "line for each stack of the file). Frames past 512 are added to the last one drawn.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb timeline = {
    .name = "timeline",
    .usage = "FILE",
    .summary = "draw memory use over the run of a program",
    .description = "Draws live bytes, live blocks and the rate of allocations over time, with markers and "
                   "collections, in the terminal, as a picture (.png, .svg) or as CSV.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_TRACES,
};

static const cli_verb heatmap = {
    .name = "heatmap",
    .usage = "FILE",
    .summary = "draw the values of a file as a picture or in the terminal",
    .description = "With -o, writes a picture. Without it, the terminal shows colored blocks.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_PICTURES,
};

static const cli_verb sheet = {
    .name = "sheet",
    .usage = "FILE",
    .summary = "draw random samples of a set on a contact sheet",
    .description =
        "Draws pictures as thumbnails, sounds as waves and texts as text, each with its label and number, as "
        "PNG or SVG. A sample that cannot be decoded shows the reason instead.",
    .min_operands = 1,
    .max_operands = 1,
    .group = CLI_GROUP_PICTURES,
};

/* Verbs of a group are next to each other. */
const cli_verb *const cli_verbs[] = {
    &cli_verb_info,
    &cli_verb_ls,
    &get,
    &stats,
    &cli_verb_diff,
    &log_verb,
    &replay,
    &cli_verb_check,
    &cli_verb_repair,
    &set,
    &revert,
    &append,
    &cli_verb_compact,
    &cli_verb_compress,
    &cli_verb_convert,
    &cli_verb_put,
    &pack,
    &unpack,
    &cli_verb_quantize,
    &head,
    &delete_verb,
    &rename_verb,
    &concat,
    &split,
    &order,
    &cli_verb_record,
    &peak,
    &leaks,
    &temporaries,
    &heap,
    &flame,
    &timeline,
    &heatmap,
    &sheet,
    &cli_verb_report,
    &cli_verb_view,
    &cli_verb_help,
    &cli_verb_formats,
    &cli_verb_completion,
    &cli_verb_version,
    &cli_verb_generate,
    NULL,
};

/* Words that people type for a verb that has another name here. */
static const struct {
    const char *word, *verb;
} synonyms[] = {
    { "verify", "check" },   { "validate", "check" },   { "fsck", "check" },      { "test", "check" },
    { "cat", "get" },        { "extract", "get" },      { "dump", "get" },        { "export", "convert" },
    { "import", "convert" }, { "show", "info" },        { "inspect", "info" },    { "describe", "info" },
    { "list", "ls" },        { "merge", "concat" },     { "join", "concat" },     { "compare", "diff" },
    { "fix", "repair" },     { "recover", "repair" },   { "remove", "delete" },   { "rm", "delete" },
    { "shuffle", "order" },  { "flamegraph", "flame" }, { "summary", "stats" },   { "history", "log" },
    { "undo", "revert" },    { "restore", "revert" },   { "rollback", "revert" }, { "shrink", "compact" },
    { "create", "pack" },    { "upload", "put" },       { "cp", "put" },
};

const cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

const char *cli_find_synonym(const char *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(synonyms[i].word, word) == 0)
            return synonyms[i].verb;
    return NULL;
}
