/* heap for traces: the objects of a heap snapshot by type, and what keeps them alive. */
#include "base/memory.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_names.h"
#include "trace_query.h"

#include <inttypes.h>
#include <string.h>

enum { TOP = 20 };

typedef struct heap_answer {
    const cli_args *args;
    const coffer_mlyze *trace;
    coffer_mlyze_heap *heap;
    uint64_t top, since;
    coffer_mlyze_heap_step *path; /* with --path */
    size_t path_len;
    size_t *largest; /* with --objects */
    size_t largest_count;
} heap_answer;

static coffer_mlyze_heap_object object_at(const heap_answer *answer, size_t index)
{
    coffer_mlyze_heap_object object = COFFER_MLYZE_HEAP_OBJECT_INIT;
    coffer_status status = coffer_mlyze_heap_object_at(&object, answer->heap, index, NULL);
    (void)status; /* the index comes from the heap */
    return object;
}

/* ---- Types ---- */

static size_t shown_types(const heap_answer *answer)
{
    size_t count = coffer_mlyze_heap_type_count(answer->heap);
    return answer->top && answer->top < count ? (size_t)answer->top : count;
}

static void print_types(const heap_answer *answer)
{
    term_table *table = term_table_new();
    size_t shown = shown_types(answer), total = coffer_mlyze_heap_type_count(answer->heap);
    term_text text;
    term_table_column(table, "bytes", TERM_RIGHT);
    term_table_column(table, "objects", TERM_RIGHT);
    term_table_column(table, "retained", TERM_RIGHT);
    if (answer->since)
        term_table_column(table, "change", TERM_RIGHT);
    term_table_column(table, "type", TERM_LEFT);
    for (size_t i = 0; i < shown; i++) {
        const coffer_mlyze_heap_type *row = coffer_mlyze_heap_type_at(answer->heap, i);
        int64_t change = (int64_t)(row->bytes - row->bytes_before);
        term_table_cell(table, term_bytes(text, row->bytes));
        term_table_cell(table, term_count(text, row->objects));
        term_table_cell(table, term_bytes(text, row->retained_bytes));
        if (answer->since)
            term_table_cellf(table, "%s%s", change < 0 ? "-" : "+",
                             term_bytes(text, (uint64_t)(change < 0 ? -change : change)));
        term_table_cell(table, row->name);
    }
    term_table_print(table, stdout);
    if (shown < total)
        printf("… %zu more types; --top 0 shows all\n", total - shown);
}

static void add_types(coffer_node *root, const heap_answer *answer)
{
    coffer_node *list = coffer_node_add_list(root, "types");
    for (size_t i = 0; i < shown_types(answer); i++) {
        const coffer_mlyze_heap_type *row = coffer_mlyze_heap_type_at(answer->heap, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "type", row->name);
        coffer_node_add_u64(map, "objects", row->objects, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "bytes", row->bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "retained_bytes", row->retained_bytes, COFFER_UNIT_BYTES);
        if (answer->since) {
            coffer_node_add_u64(map, "objects_before", row->objects_before, COFFER_UNIT_NONE);
            coffer_node_add_u64(map, "bytes_before", row->bytes_before, COFFER_UNIT_BYTES);
        }
    }
}

/* ---- Objects ---- */

/* Chooses the objects that retain most, for --objects. */
static int choose_objects(heap_answer *answer)
{
    uint64_t total = coffer_mlyze_heap_snapshot(answer->heap)->objects;
    size_t count = (size_t)(answer->top && answer->top < total ? answer->top : total);
    answer->largest = coffer__alloc_array(count + 1, sizeof *answer->largest);
    if (answer->largest) {
        answer->largest_count = coffer_mlyze_heap_largest(answer->largest, count, answer->heap);
        return CLI_OK;
    }
    const coffer_error err = { .status = COFFER_E_NO_MEMORY,
                               .offset = COFFER_OFFSET_NONE,
                               .text = "out of memory for the objects" };
    return cli_fail(cli_operand(answer->args, 0), &err, NULL);
}

static void print_objects(const heap_answer *answer)
{
    term_table *table = term_table_new();
    uint64_t total = coffer_mlyze_heap_snapshot(answer->heap)->objects;
    term_text text;
    term_table_column(table, "retained", TERM_RIGHT);
    term_table_column(table, "bytes", TERM_RIGHT);
    term_table_column(table, "address", TERM_RIGHT);
    term_table_column(table, "type", TERM_LEFT);
    for (size_t i = 0; i < answer->largest_count; i++) {
        coffer_mlyze_heap_object object = object_at(answer, answer->largest[i]);
        term_table_cell(table, term_bytes(text, object.retained_bytes));
        term_table_cell(table, term_bytes(text, object.bytes));
        term_table_cellf(table, "0x%" PRIx64, object.address);
        term_table_cell(table, object.type);
    }
    term_table_print(table, stdout);
    if (answer->largest_count < total)
        printf("… %" PRIu64 " more objects; --top 0 shows all\n", total - answer->largest_count);
}

/* Type, address and sizes of an object. */
static void add_object(coffer_node *map, const heap_answer *answer, size_t index)
{
    coffer_mlyze_heap_object object = object_at(answer, index);
    coffer_node_add_text(map, "type", object.type);
    coffer_node_add_u64(map, "address", object.address, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "bytes", object.bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "retained_bytes", object.retained_bytes, COFFER_UNIT_BYTES);
}

static void add_largest(coffer_node *root, const heap_answer *answer)
{
    if (!answer->largest)
        return;
    coffer_node *list = coffer_node_add_list(root, "largest");
    for (size_t i = 0; i < answer->largest_count; i++)
        add_object(coffer_node_add_map(list, NULL), answer, answer->largest[i]);
}

/* ---- Paths ---- */

/* Finds the chain that --path asks for; 0, or the exit status after a message. */
static int find_path(heap_answer *answer)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *name = cli_value(answer->args, "path");
    if (!name)
        return CLI_OK;
    coffer_status status = coffer_mlyze_heap_path(&answer->path, &answer->path_len, answer->heap, name, &err);
    if (status == COFFER_E_NOT_FOUND)
        return cli_usage(answer->args, "--path: %s", err.text);
    return status ? cli_fail(cli_operand(answer->args, 0), &err, NULL) : CLI_OK;
}

static void print_path(const heap_answer *answer)
{
    for (size_t i = 0; i < answer->path_len; i++) {
        coffer_mlyze_heap_object object = object_at(answer, answer->path[i].object);
        const char *name = answer->path[i].reference ? answer->path[i].reference : "";
        term_text bytes, retained;
        fputs(i > 0 ? "  -> " : "", stdout);
        term_print_text(stdout, name, strlen(name), 0);
        fputs(*name ? ": " : "", stdout);
        term_print_text(stdout, object.type, strlen(object.type), 0);
        printf(" at 0x%" PRIx64 ", %s, retains %s\n", object.address, term_bytes(bytes, object.bytes),
               term_bytes(retained, object.retained_bytes));
    }
}

static void add_path(coffer_node *root, const heap_answer *answer)
{
    coffer_node *list = answer->path_len > 0 ? coffer_node_add_list(root, "path") : NULL;
    for (size_t i = 0; i < answer->path_len; i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        if (answer->path[i].reference)
            coffer_node_add_text(map, "reference", answer->path[i].reference);
        add_object(map, answer, answer->path[i].object);
    }
}

/* ---- Facts ---- */

static void print_heading(const heap_answer *answer)
{
    const coffer_mlyze_snapshot *snapshot = coffer_mlyze_heap_snapshot(answer->heap);
    term_text bytes, count, time;
    printf("snapshot %" PRIu64 " of %" PRIu64 ", %s after the start: %s%s%s in %s object%s\n",
           snapshot->number, snapshot->snapshots, term_duration(time, (double)snapshot->time_us / 1e6),
           term_on(stdout, TERM_BOLD), term_bytes(bytes, snapshot->bytes), term_off(stdout),
           term_count(count, snapshot->objects), term_plural(snapshot->objects));
    if (!snapshot->complete)
        printf("  the snapshot is incomplete: the recording ended in it\n");
    if (snapshot->objects_without_size)
        printf("  objects whose size is not known, since no recorded block contains them: %" PRIu64 "\n",
               snapshot->objects_without_size);
    if (snapshot->dangling_references)
        printf("  references to or from addresses without an object: %" PRIu64 "\n",
               snapshot->dangling_references);
    putchar('\n');
}

static int print_json(const heap_answer *answer)
{
    const coffer_mlyze_snapshot *snapshot = coffer_mlyze_heap_snapshot(answer->heap);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err))
        return cli_fail(cli_operand(answer->args, 0), &err, NULL);
    coffer_node_add_text(root, "file", cli_operand(answer->args, 0));
    coffer_node_add_u64(root, "snapshot", snapshot->number, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "snapshots", snapshot->snapshots, COFFER_UNIT_NONE);
    coffer_node_add_bool(root, "complete", snapshot->complete);
    coffer_node_add_u64(root, "time_us", snapshot->time_us, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "objects", snapshot->objects, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "bytes", snapshot->bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "references", snapshot->references, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "dangling_references", snapshot->dangling_references, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "objects_without_size", snapshot->objects_without_size, COFFER_UNIT_NONE);
    add_path(root, answer);
    add_largest(root, answer);
    add_types(root, answer);
    trace_add_lost(coffer_node_add_map(root, "trace"), answer->trace);
    int status = coffer_node_status(root, &err) ? cli_fail(cli_operand(answer->args, 0), &err, NULL)
                                                : cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

/* ---- The verb ---- */

static int print_answer(heap_answer *answer)
{
    bool objects = cli_has(answer->args, "objects");
    int status = objects ? choose_objects(answer) : CLI_OK;
    if (!status)
        status = find_path(answer);
    if (status)
        return status;
    if (cli_has(answer->args, "json"))
        return print_json(answer);
    if (answer->path_len > 0) {
        print_path(answer);
        return CLI_OK;
    }
    print_heading(answer);
    if (objects)
        print_objects(answer);
    else
        print_types(answer);
    return CLI_OK;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    heap_answer answer = { .args = args, .trace = trace };
    coffer_mlyze_heap_opts opts = COFFER_MLYZE_HEAP_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    bool objects = cli_has(args, "objects");
    bool all = !objects && (cli_has(args, "json") || !term_is_terminal(stdout));
    if (objects && (cli_has(args, "path") || cli_has(args, "since")))
        return cli_usage(args, "--objects cannot be combined with --path or --since");
    if (!cli_number(&opts.snapshot, args, "snapshot", 0, 1, UINT64_MAX) ||
        !cli_number(&opts.since, args, "since", 0, 1, UINT64_MAX) ||
        !cli_number(&answer.top, args, "top", all ? 0 : TOP, 0, UINT64_MAX))
        return CLI_USAGE;
    answer.since = opts.since;
    coffer_status read = coffer_mlyze_heap_new(&answer.heap, trace, &opts, &err);
    int status = read ? cli_fail(cli_operand(args, 0), &err,
                                 read == COFFER_E_NOT_FOUND
                                     ? "'coffer record --snapshot-at-peak -- python3 APP' takes snapshots"
                                     : NULL)
                      : trace_stop_at_damage(args, cli_operand(args, 0), trace);
    if (!status)
        status = print_answer(&answer);
    coffer_free(answer.path);
    coffer__free(answer.largest);
    coffer_mlyze_heap_free(answer.heap);
    return status;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

static const cli_option options[] = {
    { "snapshot", 's', "N", NULL, "number of the snapshot, from 1", "the last one" },
    { "since", 0, "N", NULL, "compare with snapshot N" },
    { "path", 0, "TYPE", NULL, "show the shortest chain of references to an object of TYPE" },
    { "objects", 0, NULL, NULL, "list the objects that retain most, instead of types" },
    { "top", 'n', "N", NULL, "number of types or objects to show (0: all)",
      "20 on a terminal and for objects, else all" },
    { "json", 0, NULL, NULL,
      "one JSON object: file, snapshot, objects, bytes, references, path, largest, types (type, objects, "
      "bytes, retained_bytes), trace" },
    TRACE_DAMAGED_OPTION,
    { 0 },
};

const cli_format_verb cli_mlyze_heap = {
    .format = "mlyze",
    .verb = "heap",
    .options = options,
    .examples = "  coffer heap run.mlyze                          # the last snapshot by type\n"
                "  coffer heap run.mlyze -s 3 --since 1           # what came between two snapshots\n"
                "  coffer heap run.mlyze --objects --top 5        # the five objects that retain most\n"
                "  coffer heap run.mlyze --path Session           # what keeps a Session alive\n",
    .run = run,
};
