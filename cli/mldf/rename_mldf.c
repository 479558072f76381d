/* rename, for training sets: another name for a field. */
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "json", 0, NULL, NULL, "one JSON object: file, format, field, name" },
    CLI_KEY_OPTION,
    { 0 },
};

static int report(const cli_args *args, const char *old, const char *name)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(": field \"", stdout);
        term_print_text(stdout, old, strlen(old), 0);
        fputs("\" is now \"", stdout);
        term_print_text(stdout, name, strlen(name), 0);
        puts("\"");
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_text(root, "field", old);
    coffer_node_add_text(root, "name", name);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int rename_field(const cli_args *args, const coffer_mldf *set, const cli_key *key, const char *old,
                        const char *name)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t field;
    int result = sample_field_find(&field, args, set, old);
    if (result)
        return result;
    if (coffer_mldf_find_field(set, name) != SIZE_MAX)
        return cli_usage(args, "there is a field \"%s\" already", name);
    opts.key = key->at;
    cli_hold_signals();
    coffer_status status = coffer_mldf_update_rename_field(cli_operand(args, 0), field, name, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    if (!status)
        return report(args, old, name);
    bool about_name = err.status == COFFER_E_INVALID_ARGUMENT || err.status == COFFER_E_LIMIT ||
                      err.status == COFFER_E_BAD_TEXT;
    return about_name ? cli_usage(args, "%s", err.text) : mldf_fail(cli_operand(args, 0), &err);
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    const char *words = cli_operand(args, 1), *equals = strchr(words, '=');
    if (!equals || equals == words || !equals[1])
        return cli_usage(args, "'%s' is not OLD=NEW", words);
    char *old = coffer__strndup(words, (size_t)(equals - words));
    int result = old ? rename_field(args, set, key, old, equals + 1) : cli_usage(args, "out of memory");
    coffer__free(old);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    int result = mldf_expect_file(args);
    return result ? result : mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_rename = {
    .format = "mldf",
    .verb = "rename",
    .options = options,
    .examples = "  coffer rename train.mldf caption=text\n",
    .run = run,
};
