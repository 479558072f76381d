/* What this program is made of, for bug reports. */
#include "verbs.h"

#include "base/crc32.h"
#include "base/json.h"
#include "base/report.h"

#include <cairo.h>
#include <xxhash.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

static void fill(coffer_node *root)
{
    unsigned xxhash = XXH_versionNumber();
    coffer__node_text(root, "version", coffer_version());
    coffer__node_text(root, "compiler", COMPILER);
    coffer__node_text(root, "cpu", coffer_cpu());
    coffer_node *libraries = coffer__node_list(root, "libraries");
    coffer__node_text(libraries, NULL, coffer__json_library());
    coffer__node_text(libraries, NULL, coffer__crc32_library());
    coffer__node_printf(libraries, NULL, "xxhash %u.%u.%u", xxhash / 10000, xxhash / 100 % 100, xxhash % 100);
    coffer__node_printf(libraries, NULL, "cairo %s", cairo_version_string());
}

static int run(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    int status = CLI_OK;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail("version", &err, NULL);
    fill(root);
    if (cli_has(args, "json")) {
        status = cli_print_json(stdout, root);
    } else {
        printf("coffer %s\n", coffer_version());
        for (const coffer_node *line = coffer_node_next(coffer_node_first(root)); line;
             line = coffer_node_next(line)) {
            printf("%-10s", coffer_node_get_name(line));
            if (coffer_node_get_kind(line) == COFFER_NODE_TEXT)
                fputs(coffer_node_get_text(line, NULL), stdout);
            for (const coffer_node *item = coffer_node_first(line); item; item = coffer_node_next(item))
                printf("%s%s", coffer_node_get_text(item, NULL), coffer_node_next(item) ? ", " : "");
            putchar('\n');
        }
    }
    coffer_node_free(root);
    return status;
}

static const cli_option options[] = {
    { "json", 0, NULL, NULL, "one JSON object" },
    { 0 },
};

const cli_verb cli_verb_version = {
    .name = "version",
    .usage = "",
    .summary = "print the version, the CPU level and the libraries in use",
    .group = CLI_GROUP_HELP,
    .description = "Also as 'coffer --version'.",
    .examples = "  coffer version --json                  # for a report of something that went wrong\n",
    .options = options,
    .run = run,
};
