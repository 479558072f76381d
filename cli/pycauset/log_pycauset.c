/* log, for matrices: all metadata blocks in the file, with the changes of each. */
#include "base/buffer.h"
#include "base/json_write.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    { "max", 'n', "N", NULL, "number of generations, the newest first", "all" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one JSON object: file, format, generations with their changes, newest first" },
    { 0 },
};

/* The last committed state before a block; the block next to it may be uncommitted. */
static const coffer_pycauset_value *before(const coffer_pycauset_history *history, size_t index)
{
    while (index-- > 0) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(history, index);
        if (state->committed)
            return state->metadata;
    }
    return NULL;
}

/* A number, or "1+2j" for the two of a complex one. */
static void add_number(coffer_node *map, const char *name, const coffer_pycauset_value *value)
{
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_U64:
        coffer_node_add_u64(map, name, coffer_pycauset_value_u64(value), COFFER_UNIT_NONE);
        break;
    case COFFER_PYCAUSET_I64:
        coffer_node_add_i64(map, name, coffer_pycauset_value_i64(value), COFFER_UNIT_NONE);
        break;
    case COFFER_PYCAUSET_ARRAY:
        coffer_node_add_printf(map, name, "%.17g%+.17gj",
                               coffer_pycauset_value_f64(coffer_pycauset_value_at(value, 0)),
                               coffer_pycauset_value_f64(coffer_pycauset_value_at(value, 1)));
        break;
    default:
        coffer_node_add_f64(map, name, coffer_pycauset_value_f64(value), COFFER_UNIT_NONE);
    }
}

static void add_elements(coffer_node *map, const coffer_pycauset_value *elements)
{
    coffer_node *list = coffer_node_add_list(map, "elements");
    for (size_t i = 0; i < coffer_pycauset_value_count(elements); i++) {
        const coffer_pycauset_value *element = coffer_pycauset_value_at(elements, i);
        coffer_node *entry = coffer_node_add_map(list, NULL);
        for (int k = 0; k < 2; k++) {
            const char *key = k == 0 ? "row" : "col";
            coffer_node_add_u64(entry, key,
                                coffer_pycauset_value_u64(coffer_pycauset_value_find(element, key)),
                                COFFER_UNIT_OFFSET);
        }
        add_number(entry, "old", coffer_pycauset_value_find(element, "old"));
        add_number(entry, "new", coffer_pycauset_value_find(element, "new"));
    }
}

/* Keys that describe the commit are shown apart from its changes. */
static bool is_own_key(const char *path)
{
    static const char *const keys[] = { "commit", "element_changes", "payload_checksums" };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t len = strlen(keys[i]);
        if (strncmp(path, keys[i], len) == 0 && (!path[len] || path[len] == '.'))
            return true;
    }
    return false;
}

static coffer_status add_changes(coffer_node *map, const coffer_pycauset_value *before,
                                 const coffer_pycauset_value *after, coffer_error *err)
{
    coffer_node *all = NULL;
    coffer_status status = coffer_node_new(&all, err);
    if (!status)
        status = coffer_pycauset_value_diff(all, before, after, err);
    coffer_node *list = coffer_node_add_list(map, "changes");
    for (const coffer_node *change = coffer_node_first(coffer_node_find(all, "changes")); change && !status;
         change = coffer_node_next(change)) {
        if (!is_own_key(coffer_node_get_text(coffer_node_find(change, "path"), NULL)))
            coffer_node_add_copy(list, NULL, change);
    }
    coffer_node_free(all);
    return status;
}

static coffer_status add_generation(coffer_node *list, const coffer_pycauset_history *history, size_t index,
                                    coffer_error *err)
{
    const coffer_pycauset_generation *state = coffer_pycauset_history_at(history, index);
    coffer_node *map = coffer_node_add_map(list, NULL);
    char slot[2] = { state->slot, '\0' };
    if (state->committed)
        coffer_node_add_u64(map, "generation", state->generation, COFFER_UNIT_OFFSET);
    else
        coffer_node_add_null(map, "generation");
    coffer_node_add_bool(map, "active", state->active);
    coffer_node_add_bool(map, "committed", state->committed);
    coffer_node_add_text(map, "slot", state->slot ? slot : NULL);
    coffer_node_add_text(map, "date", state->date);
    coffer_node_add_text(map, "message", state->message);
    coffer_node_add_text(map, "author", state->author);
    coffer_node_add_u64(map, "offset", state->offset, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "length", state->length, COFFER_UNIT_BYTES);
    add_elements(map, state->elements);
    return add_changes(map, before(history, index), state->metadata, err);
}

static coffer_status gather(coffer_node *root, const cli_args *args, const coffer_pycauset_history *history,
                            uint64_t max, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    size_t count = coffer_pycauset_history_count(history);
    coffer_node_add_text(root, "file", cli_operand(args, 0));
    coffer_node_add_text(root, "format", "pycauset");
    if (coffer_pycauset_history_damaged_bytes(history) > 0)
        coffer_node_add_printf(root, "damage", "%" PRIu64 " bytes of older states are damaged and not listed",
                               coffer_pycauset_history_damaged_bytes(history));
    coffer_node *list = coffer_node_add_list(root, "generations");
    for (size_t i = count; !status && i-- > 0 && count - i <= max;)
        status = add_generation(list, history, i, err);
    return status ? status : coffer_node_status(root, err);
}

/* ---- Text ---- */

enum { MOST_CHANGES = 20, LONGEST_VALUE = 40 };

/* A value on one line; texts are quoted. */
static void print_value(const coffer_node *value)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &text, 0);
    coffer__json_write_node(&writer, value);
    term_print_text(stdout, coffer__buffer_text(&text), text.len, LONGEST_VALUE);
    coffer__buffer_free(&text);
}

static void print_change(const coffer_node *change)
{
    size_t len;
    const char *what = coffer_node_get_text(coffer_node_find(change, "change"), NULL);
    const char *path = coffer_node_get_text(coffer_node_find(change, "path"), &len);
    printf("    %-8s ", what);
    term_print_text(stdout, path, len, 0);
    fputs("  ", stdout);
    if (strcmp(what, "added") != 0)
        print_value(coffer_node_find(change, "old"));
    if (strcmp(what, "changed") == 0)
        fputs(" → ", stdout);
    if (strcmp(what, "removed") != 0)
        print_value(coffer_node_find(change, "new"));
    putchar('\n');
}

static void print_elements(const coffer_node *elements)
{
    size_t shown = 0;
    for (const coffer_node *at = coffer_node_first(elements); at && shown < MOST_CHANGES;
         at = coffer_node_next(at), shown++) {
        printf("    element  [%" PRIu64 ",%" PRIu64 "]  ", coffer_node_get_u64(coffer_node_find(at, "row")),
               coffer_node_get_u64(coffer_node_find(at, "col")));
        print_value(coffer_node_find(at, "old"));
        fputs(" → ", stdout);
        print_value(coffer_node_find(at, "new"));
        putchar('\n');
    }
    if (shown < coffer_node_count(elements))
        printf("    … %zu more\n", coffer_node_count(elements) - shown);
}

/* "    message (author)" */
static void print_message(const coffer_node *map)
{
    size_t len, author_len;
    const char *message = coffer_node_get_text(coffer_node_find(map, "message"), &len);
    const char *author = coffer_node_get_text(coffer_node_find(map, "author"), &author_len);
    if (!len && !author_len)
        return;
    fputs("    ", stdout);
    if (len)
        term_print_text(stdout, message, len, 0);
    if (author_len) {
        fputs(len ? " (" : "by ", stdout);
        term_print_text(stdout, author, author_len, 0);
        fputs(len ? ")" : "", stdout);
    }
    putchar('\n');
}

static void print_changes(const coffer_node *changes)
{
    size_t shown = 0;
    for (const coffer_node *change = coffer_node_first(changes); change && shown < MOST_CHANGES;
         change = coffer_node_next(change), shown++)
        print_change(change);
    if (shown < coffer_node_count(changes))
        printf("    … %zu more\n", coffer_node_count(changes) - shown);
}

static void print_generation(const coffer_node *map, bool is_first)
{
    const char *slot = coffer_node_get_text(coffer_node_find(map, "slot"), NULL);
    const coffer_node *date = coffer_node_find(map, "date"), *changes = coffer_node_find(map, "changes");
    bool active = coffer_node_get_bool(coffer_node_find(map, "active"));
    bool committed = coffer_node_get_bool(coffer_node_find(map, "committed"));
    term_text size;
    size_t len;
    if (!committed)
        printf("  %suncommitted%s", term_on(stdout, TERM_YELLOW), term_off(stdout));
    else
        printf("  %sgeneration %" PRIu64 "%s  ", term_on(stdout, TERM_BOLD),
               coffer_node_get_u64(coffer_node_find(map, "generation")), term_off(stdout));
    if (committed && *slot)
        printf("%s%s (slot %s)%s", term_on(stdout, active ? TERM_GREEN : TERM_PLAIN),
               active ? "active" : "previous", slot, term_off(stdout));
    else if (committed)
        fputs("older", stdout);
    const char *text = coffer_node_get_text(date, &len);
    fputs(len ? ", " : "", stdout);
    term_print_text(stdout, text, len, 0);
    printf(", %s at offset %" PRIu64 "\n",
           term_bytes(size, coffer_node_get_u64(coffer_node_find(map, "length"))),
           coffer_node_get_u64(coffer_node_find(map, "offset")));
    print_message(map);
    print_elements(coffer_node_find(map, "elements"));
    if (is_first)
        printf("    %zu values\n", coffer_node_count(changes));
    else
        print_changes(changes);
}

static void print_text(const char *path, const coffer_node *root, const coffer_pycauset_history *history)
{
    const coffer_node *list = coffer_node_find(root, "generations");
    size_t count = coffer_pycauset_history_count(history), index = count, committed = 0;
    for (size_t i = 0; i < count; i++)
        committed += coffer_pycauset_history_at(history, i)->committed;
    term_print_text(stdout, path, strlen(path), 0);
    printf(": %zu generation%s", committed, committed == 1 ? "" : "s");
    if (committed < count)
        printf(", %zu uncommitted", count - committed);
    putchar('\n');
    for (const coffer_node *map = coffer_node_first(list); map; map = coffer_node_next(map))
        print_generation(map, --index == 0);
}

static int run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_history *history = NULL;
    coffer_node *root = NULL;
    uint64_t max;
    int result = CLI_OK;
    if (cli_check_output(args))
        return CLI_USAGE;
    if (!cli_number(&max, args, "max", UINT64_MAX, 1, UINT64_MAX))
        return CLI_USAGE;
    coffer_status status = coffer_pycauset_history_open(&history, src, NULL, &err);
    if (!status)
        status = coffer_node_new(&root, &err);
    if (!status)
        status = gather(root, args, history, max, &err);
    if (status)
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    else if (cli_has(args, "csv"))
        result = cli_print_csv(stdout, coffer_node_find(root, "generations"));
    else if (cli_has(args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_text(cli_operand(args, 0), root, history);
    if (!status && coffer_node_find(root, "damage")) {
        fflush(stdout);
        fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_YELLOW), term_off(stderr));
        term_print_text(stderr, cli_operand(args, 0), strlen(cli_operand(args, 0)), 0);
        fprintf(stderr, ": %s\n", coffer_node_get_text(coffer_node_find(root, "damage"), NULL));
        result = cli_worse(result, CLI_FINDINGS);
    }
    coffer_node_free(root);
    coffer_pycauset_history_close(history);
    return result;
}

const cli_format_verb cli_pycauset_log = {
    .format = "pycauset",
    .verb = "log",
    .options = options,
    .examples = "  coffer log m.pycauset                      # newest first, with the changes of each\n"
                "  coffer log m.pycauset --json | jq '.generations[0].changes'\n",
    .run = run,
};
