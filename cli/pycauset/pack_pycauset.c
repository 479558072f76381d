/* pack, into a block matrix: matrices side by side and one below the other. */
#include "base/memory.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    { "grid", 0, "RxC", NULL, "rows and columns of blocks; the inputs come row by row", "one row" },
    { "force", 'f', NULL, NULL, "overwrite an existing OUT" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, rows, cols, block_rows, block_cols" },
    { 0 },
};

/* "2x3" */
static bool parse_grid(uint64_t *rows, uint64_t *cols, const char *text)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *rows = strtoull(text, &end, 10);
    if (*end != 'x' || !isdigit((unsigned char)end[1]))
        return false;
    *cols = strtoull(end + 1, &end, 10);
    return !*end && *rows > 0 && *cols > 0;
}

static int report(const cli_args *args, const char *output, uint64_t block_rows, uint64_t block_cols)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset *matrix = NULL;
    coffer_node *root = NULL;
    coffer_status status = coffer_pycauset_open_path(&matrix, output, NULL, &err);
    if (!status)
        status = coffer_node_new(&root, &err);
    if (status) {
        coffer_pycauset_close(matrix);
        return cli_fail(output, &err, NULL);
    }
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    int result = CLI_OK;
    if (cli_has(args, "json")) {
        coffer_node_add_text(root, "file", output);
        coffer_node_add_text(root, "format", "pycauset");
        coffer_node_add_u64(root, "rows", info->rows, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "cols", info->cols, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "block_rows", block_rows, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "block_cols", block_cols, COFFER_UNIT_NONE);
        result = cli_print_json(stdout, root);
    } else {
        term_print_text(stdout, output, strlen(output), 0);
        printf(": %" PRIu64 " × %" PRIu64 ", %" PRIu64 " × %" PRIu64 " blocks in ", info->rows, info->cols,
               block_rows, block_cols);
        term_print_text(stdout, output, strlen(output), 0);
        puts(".blocks");
    }
    coffer_node_free(root);
    coffer_pycauset_close(matrix);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    size_t count = cli_operand_count(args) - 1;
    uint64_t rows = 1, cols = count;
    const char *output = cli_operand(args, count), *grid = cli_value(args, "grid");
    (void)src; /* NULL: the verb makes the file */
    if (grid && !parse_grid(&rows, &cols, grid))
        return cli_usage(args, "--grid: expected rows and columns of blocks such as 2x3, not '%s'", grid);
    if (rows > count || cols > count || rows * cols != count)
        return cli_usage(args, "%" PRIu64 " × %" PRIu64 " blocks need %" PRIu64 " inputs, %zu are given",
                         rows, cols, rows * cols, count);
    const char **paths = coffer__alloc_array(count, sizeof *paths);
    if (!paths)
        return cli_fail(output, &(coffer_error){ .status = COFFER_E_NO_MEMORY, .text = "out of memory" }, "");
    for (size_t i = 0; i < count; i++) {
        const coffer_format *format = NULL;
        paths[i] = cli_operand(args, i);
        coffer_status known = coffer_identify_path(&format, paths[i], &err);
        if (known && err.system_error) {
            coffer__free(paths);
            return cli_fail(cli_operand(args, i), &err, NULL);
        }
        if (known || strcmp(coffer_format_name(format), "pycauset") != 0) {
            coffer__free(paths);
            return cli_usage(args, "%s is not a .pycauset file; 'coffer convert %s OUT.pycauset' makes one",
                             cli_operand(args, i), cli_operand(args, i));
        }
    }
    opts.overwrite = cli_has(args, "force");
    coffer_status status = coffer_pycauset_write_blocks(output, paths, rows, cols, &opts, &err);
    coffer__free(paths);
    return status ? cli_fail(status == COFFER_E_EXISTS ? output : NULL, &err, NULL)
                  : report(args, output, rows, cols);
}

const cli_format_verb cli_pycauset_pack = {
    .format = "pycauset",
    .verb = "pack",
    .options = options,
    .examples = "  coffer pack a.pycauset b.pycauset wide.pycauset               # side by side\n"
                "  coffer pack a.pycauset b.pycauset c.pycauset d.pycauset m.pycauset --grid 2x2\n",
    .run = run,
};
