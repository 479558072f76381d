/* set --field: new values of a field for many samples. */
#include "mldf/add_field.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "term.h"

#include "coffer/dataset.h"

#include <inttypes.h>
#include <string.h>

static int report(const cli_args *args, const char *field, uint64_t changes)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    term_text count;
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(": field \"", stdout);
        term_print_text(stdout, field, strlen(field), 0);
        printf("\" set for %s samples\n", term_count(count, changes));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "changes", changes, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "field", field);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

int mldf_set_field(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    const char *name = cli_value(args, "field"), *values = cli_value(args, "values");
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    uint64_t changes = 0;
    size_t field;
    if (cli_operand_count(args) > 1 || cli_has(args, "delete"))
        return cli_usage(args, "--field is a change of its own: nothing else in the same command");
    if (!values)
        return cli_usage(args, "--field needs --values FILE: a .csv table, lines of JSON or an .npy array");
    int result = sample_field_find(&field, args, set, name);
    if (!result)
        result = cli_open(&src, values);
    if (result)
        return result;
    opts.key = key->at;
    cli_hold_signals();
    coffer_status status =
        coffer_mldf_update_values(&changes, cli_operand(args, 0), set, field, src, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    coffer_source_close(src);
    if (!status)
        return report(args, name, changes);
    return err.status == COFFER_E_INVALID_ARGUMENT
               ? cli_usage(args, "%s: %s; nothing was changed", values, err.text)
               : mldf_fail(cli_operand(args, 0), &err);
}
