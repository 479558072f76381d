/* record: runs a program and records its memory. */
#include "base/memory.h"
#include "record/recorder.h"
#include "verbs.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 64 };

static bool is_taken(const char *path)
{
    char part[PATH_MAX + sizeof ".part"];
    struct stat st;
    snprintf(part, sizeof part, "%s.part", path);
    return stat(path, &st) == 0 || stat(part, &st) == 0;
}

/* NAME.mlyze in the current folder, or NAME-2.mlyze …: a recording without -o never fails because of an
 * earlier one. */
static void name_output(char out[PATH_MAX], const char *program)
{
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    snprintf(out, PATH_MAX, "%.200s.mlyze", name);
    for (int i = 2; is_taken(out) && i < 100000; i++)
        snprintf(out, PATH_MAX, "%.200s-%d.mlyze", name, i);
}

static int read_signal(int *out, const cli_args *args, const char *option)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = { { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };
    const char *value = cli_value(args, option);
    if (!value)
        return CLI_OK;
    if (strncmp(value, "SIG", 3) == 0)
        value += 3;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(value, signals[i].name) == 0) {
            *out = signals[i].number;
            return CLI_OK;
        }
    return cli_usage(args, "--%s must be one of SIGUSR1, SIGUSR2, not '%s'", option, cli_value(args, option));
}

static int run(const cli_args *args)
{
    record_options options = { .output = cli_value(args, "output"),
                               .force = cli_has(args, "force"),
                               .quiet = cli_has(args, "quiet"),
                               .live = cli_has(args, "live"),
                               .archive = cli_has(args, "archive"),
                               .symbols = !cli_has(args, "no-symbols"),
                               .snapshot_at_peak = cli_has(args, "snapshot-at-peak") };
    char output[PATH_MAX];
    uint64_t depth;
    size_t count = cli_operand_count(args);
    if (!cli_number(&depth, args, "depth", DEPTH, 1, COFFER__RECORD_DEPTH_MAX) ||
        !cli_duration(&options.duration_us, args, "duration", 0) ||
        !cli_duration(&options.snapshot_every_us, args, "snapshot-every", 0) ||
        !cli_size(&options.max_size, args, "max-size", 0) ||
        !cli_size(&options.sample_bytes, args, "sample", 0))
        return CLI_USAGE;
    if (cli_has(args, "no-stacks") && cli_has(args, "depth"))
        return cli_usage(args, "--no-stacks and --depth exclude each other");
    int status = read_signal(&options.toggle, args, "on");
    if (!status)
        status = read_signal(&options.snapshot_signal, args, "snapshot-on");
    if (status)
        return status;
    if (options.toggle && options.toggle == options.snapshot_signal)
        return cli_usage(args, "--on and --snapshot-on need different signals");
    options.depth = (uint32_t)depth;
    if (!cli_has(args, "no-stacks"))
        options.flags |= COFFER__RECORD_WITH_STACKS;
    if (!cli_has(args, "no-python"))
        options.flags |= COFFER__RECORD_PYTHON;
    if (cli_has(args, "native"))
        options.flags |= COFFER__RECORD_NATIVE;
    if (cli_has(args, "python-allocators"))
        options.flags |= COFFER__RECORD_PYTHON_ALLOCATORS;
    if (cli_has(args, "mmap"))
        options.flags |= COFFER__RECORD_WITH_MMAP;
    if (cli_has(args, "follow-fork"))
        options.flags |= COFFER__RECORD_FOLLOW_FORK;
    if (!options.output) {
        name_output(output, cli_operand(args, 0));
        options.output = output;
    }
    options.program = coffer__calloc(count + 1, sizeof *options.program);
    for (size_t i = 0; options.program && i < count; i++)
        options.program[i] = coffer__strdup(cli_operand(args, i));
    status = options.program ? record_run(args, &options) : CLI_FAILED;
    for (size_t i = 0; options.program && i < count; i++)
        coffer__free(options.program[i]);
    coffer__free(options.program);
    return status;
}

static const cli_option options_table[] = {
    { "output", 'o', "FILE", NULL, "write the trace to FILE", "PROGRAM.mlyze, or PROGRAM-2.mlyze …" },
    CLI_FORCE_OPTION,
    { "depth", 0, "N", NULL, "highest number of frames of a stack, from the innermost", "64" },
    { "no-stacks", 0, NULL, NULL, "record no call stacks" },
    { "no-symbols", 0, NULL, NULL, "keep addresses in modules instead of names of functions" },
    { "follow-fork", 0, NULL, NULL, "record child processes too, each in its own file NAME.PID.mlyze" },
    { "mmap", 0, NULL, NULL, "record the mappings too that the program makes with mmap" },
    { "native", 0, NULL, NULL,
      "Python programs: add the native frames that the innermost Python function called" },
    { "python-allocators", 0, NULL, NULL,
      "Python programs: record every object, by letting Python use malloc for small ones too" },
    { "no-python", 0, NULL, NULL,
      "Python programs: record the frames of the interpreter, not those of Python" },
    { "archive", 0, NULL, NULL,
      "write the smallest form of the trace when the program ends, as 'coffer compress --archive' does" },
    { "sample", 0, "SIZE", NULL,
      "record a sample: one block for every SIZE bytes on average; each represents more bytes than it has, "
      "so that sums are right on average" },
    { "live", 0, NULL, NULL, "show a line with live memory while the program runs" },
    { "duration", 0, "TIME", NULL, "stop recording after this time, such as 30s; the program continues" },
    { "max-size", 0, "SIZE", NULL, "stop recording when the trace has this size; the program continues" },
    { "on", 0, "SIGNAL", NULL,
      "begin paused; the signal (SIGUSR1 or SIGUSR2), sent to coffer, starts and pauses recording" },
    { "snapshot-at-peak", 0, NULL, NULL,
      "Python programs: take a heap snapshot whenever memory has grown by a tenth since the last one" },
    { "snapshot-every", 0, "TIME", NULL,
      "Python programs: take a heap snapshot at this interval, such as 10s" },
    { "snapshot-on", 0, "SIGNAL", NULL,
      "Python programs: the signal (SIGUSR1 or SIGUSR2), sent to coffer, takes a heap snapshot" },
    { 0 },
};

const cli_verb cli_verb_record = {
    .name = "record",
    .usage = "[--] PROGRAM [ARGUMENT…]",
    .summary = "run a program and record every allocation it makes",
    .description =
        "Runs PROGRAM with a library preloaded that records malloc, calloc, realloc, free, the aligned "
        "functions and C++ new and delete, each with its call stack and thread. Options of coffer come "
        "before "
        "PROGRAM. The program's output, exit status and signals are those it would have without coffer; a "
        "summary goes to stderr at the end.\n"
        "While it runs, the events go to FILE.part and the names to FILE.strings. If coffer itself is "
        "killed, 'coffer repair FILE' makes the trace of them. If the disk is full, recording stops with a "
        "message and the program continues.\n"
        "Of a Python program (CPython 3.9 to 3.13) the stacks are those of Python, with lines.\n"
        "Statically linked programs, and programs that gain privileges when they start, cannot be recorded.",
    .examples = "  coffer record -- ./server --port 8080         # writes server.mlyze\n"
                "  coffer record -o run.mlyze -- python3 app.py\n"
                "  coffer record --follow-fork -o build.mlyze -- make\n"
                "  coffer record --duration 30s --live -- ./server\n"
                "  coffer record --snapshot-at-peak -- python3 app.py\n"
                "  coffer leaks run.mlyze                        # then look into it\n",
    .options = options_table,
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .options_first = true,
    .group = CLI_GROUP_TRACES,
    .run = run,
};
