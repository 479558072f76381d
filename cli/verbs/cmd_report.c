/* report: one HTML file that shows what a file contains. */
#include "verbs.h"

#include "files.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "the page to write; '-' is standard output", "FILE.html" },
    CLI_FORCE_OPTION,
    { "max-size", 0, "SIZE", NULL, "largest size of the page; what does not fit is reduced, and listed",
      "10MB" },
    { "max-read", 0, "SIZE", NULL, "largest model whose tensors are read for their statistics", "4GiB" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "json", 0, NULL, NULL, "print the page's path, kind, size and notes as JSON" },
    { 0 },
};

static int print_as_json(const coffer_chunks *chunks, const char *path, size_t size)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err))
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "output", path);
    coffer_node_add_text(root, "page", coffer_chunks_page(chunks));
    coffer_node_add_u64(root, "size", size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "errors", coffer_chunks_error_count(chunks), COFFER_UNIT_NONE);
    coffer_node *notes = coffer_node_add_list(root, "notes");
    for (size_t i = 0; i < coffer_chunks_note_count(chunks); i++)
        coffer_node_add_text(notes, NULL, coffer_chunks_note_at(chunks, i));
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int print_for_people(const coffer_chunks *chunks, const char *path, size_t size)
{
    term_text bytes, count;
    uint64_t errors = coffer_chunks_error_count(chunks);
    term_print_text(stdout, path, strlen(path), 0);
    printf(": %s page, %s\n", coffer_chunks_page(chunks), term_bytes(bytes, size));
    for (size_t i = 0; i < coffer_chunks_note_count(chunks); i++) {
        const char *note = coffer_chunks_note_at(chunks, i);
        fputs("  note: ", stdout);
        term_print_text(stdout, note, strlen(note), 0);
        putchar('\n');
    }
    if (errors)
        printf("  %s error%s found by the check: see the page, or 'coffer check'\n",
               term_count(count, errors), term_plural(errors));
    return CLI_OK;
}

static int write_page(const cli_args *args, const coffer_chunks *chunks, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes html = COFFER_BYTES_INIT;
    bool to_stream = strcmp(path, "-") == 0;
    if (coffer_page_write(&html, chunks, &err))
        return cli_fail(NULL, &err, "");
    int status = cli_write_out(to_stream ? NULL : path, cli_overwrites(), html.data, html.size);
    if (!status && !to_stream)
        status = cli_has(args, "json") ? print_as_json(chunks, path, html.size)
                                       : print_for_people(chunks, path, html.size);
    coffer_free(html.data);
    return status;
}

/* NAME.html in the current folder, without the folder and the extension of the file. */
static int choose_output(char *out, size_t size, const cli_args *args)
{
    const char *path = cli_operand(args, 0), *slash = strrchr(path, '/'), *given = cli_value(args, "output");
    const char *name = slash && slash[1] ? slash + 1 : path, *dot = strrchr(name, '.');
    int len = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    if (!given && strcmp(path, "-") == 0)
        return cli_usage(args, "reading standard input: give an output file with -o");
    int wanted = given ? snprintf(out, size, "%s", given) : snprintf(out, size, "%.*s.html", len, name);
    return wanted < 0 || (size_t)wanted >= size ? cli_usage(args, "the name of the output is too long")
                                                : CLI_OK;
}

static int make_page(const cli_args *args, coffer_file *const files[2], coffer_chunks_opts *opts,
                     const char *output)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_chunks *chunks = NULL;
    term_progress bar;
    term_progress_start(&bar, "reading", NULL);
    bar.amount = coffer_file_size(files[0]);
    opts->progress = &bar.progress;
    coffer_status status = coffer_chunks_new(&chunks, files[0], files[1], opts, &err);
    term_progress_end(&bar);
    opts->progress = NULL;
    if (status && err.subject == COFFER_SUBJECT_OUTPUT) {
        cli_fail(output, &err, status == COFFER_E_LIMIT ? "--max-size SIZE raises the limit" : NULL);
        return CLI_FAILED;
    }
    if (status)
        return cli_fail(opts->name, &err, cli_file_hint(files[0]));
    int result = write_page(args, chunks, output);
    if (!result && coffer_chunks_error_count(chunks))
        result = CLI_FINDINGS;
    coffer_chunks_free(chunks);
    return result;
}

bool cli_page_is_available(void)
{
    if (coffer_page_is_available())
        return true;
    cli_warn(NULL, "this coffer was built without the script of its pages");
    fputs("  install node and npm, run 'npm ci' in web/ and build again; 'coffer info' prints the facts\n",
          stderr);
    return false;
}

bool cli_page_options(coffer_chunks_opts *opts, const cli_args *args)
{
    uint64_t threads;
    if (!cli_size(&opts->max_read_bytes, args, "max-read", opts->max_read_bytes) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024))
        return false;
    opts->threads = (uint32_t)threads;
    opts->name = cli_operand(args, 0);
    opts->other_name = cli_operand(args, 1);
    return true;
}

int cli_open_pair(coffer_file *files[2], const cli_args *args)
{
    int status = CLI_OK;
    for (size_t i = 0; i < cli_operand_count(args) && !status; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        if (coffer_file_open(&files[i], cli_operand(args, i), &err))
            status = cli_fail(cli_operand(args, i), &err, cli_open_hint(&err));
    }
    return status;
}

static int run(const cli_args *args)
{
    coffer_chunks_opts opts = COFFER_CHUNKS_OPTS_INIT;
    coffer_file *files[2] = { NULL, NULL };
    char output[4096];
    if (!cli_page_is_available())
        return CLI_FAILED;
    int status = choose_output(output, sizeof output, args);
    if (status)
        return status;
    if (!cli_size(&opts.max_bytes, args, "max-size", opts.max_bytes) || !cli_page_options(&opts, args))
        return CLI_USAGE;
    status = cli_open_pair(files, args);
    if (!status)
        status = make_page(args, files, &opts, output);
    coffer_file_close(files[0]);
    coffer_file_close(files[1]);
    return status;
}

const cli_verb cli_verb_report = {
    .name = "report",
    .usage = "FILE [FILE2]",
    .summary = "write a page that shows a file, or compares two",
    .group = CLI_GROUP_PICTURES,
    .description =
        "Writes one HTML file that opens in a browser from disk and can be mailed: it contains its data and "
        "needs no network. Traces get a timeline, flame graphs and the table of stacks; models their "
        "tensors, "
        "sets a gallery, scans and matrices a heat map; any other file that 'coffer info' reads gets its "
        "facts. "
        "Each page has the findings of 'coffer check'. Two files of a kind give a comparison.\n"
        "The exit status is 1 when the check finds errors; the page is written and shows them.",
    .examples = "  coffer report run.mlyze                        # writes run.html\n"
                "  coffer report before.mlyze after.mlyze -o diff.html\n"
                "  coffer report model.safetensors -o model.html --max-size 2MB\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
