/* heap for traces: the objects of a heap snapshot by type, and what keeps them alive. */
#include "base/fail.h"
#include "base/memory.h"
#include "heap_graph.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_names.h"
#include "trace_query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 20, NESTING_MAX = 1000 };

typedef struct type_row {
    uint64_t type, count, bytes, retained;
    uint64_t before_count, before_bytes; /* in the snapshot that --since names */
} type_row;

typedef struct heap_answer {
    const cli_args *args;
    const coffer_mlyze *trace;
    heap_graph graph;
    type_row *rows;
    size_t row_count;
    uint64_t bytes, top, since;
    uint32_t *path, *path_edges; /* with --path */
    size_t path_len;
} heap_answer;

static const char *type_name(const heap_answer *answer, uint64_t type)
{
    const char *name = coffer_mlyze_function_name(answer->trace, type);
    return name && *name ? name : "?";
}

/* ---- Types ---- */

static int by_type(const void *left, const void *right)
{
    const type_row *a = left, *b = right;
    return (a->type > b->type) - (a->type < b->type);
}

static int by_bytes(const void *left, const void *right)
{
    const type_row *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->retained != b->retained)
        return a->retained < b->retained ? 1 : -1;
    return by_type(left, right);
}

/* An object that another one of its type keeps alive is part of what that one retains. */
static bool is_nested(const heap_graph *graph, uint32_t object)
{
    uint64_t type = graph->objects[object].type;
    uint32_t outer = graph->dominator[object];
    for (int i = 0; outer != HEAP_NONE && i < NESTING_MAX; i++, outer = graph->dominator[outer])
        if (graph->objects[outer].type == type)
            return true;
    return false;
}

/* Adds the objects of a graph, one row each, and joins the rows of a type. */
static coffer_status add_rows(heap_answer *answer, const heap_graph *graph, bool before, coffer_error *err)
{
    size_t count = answer->row_count + graph->count, kept = 0;
    type_row *rows = coffer__realloc(answer->rows, (count + 1) * sizeof *rows);
    if (!rows)
        return coffer__fail_no_memory(err, (count + 1) * sizeof *rows);
    answer->rows = rows;
    for (uint32_t i = 0; i < graph->count; i++) {
        const heap_object *object = &graph->objects[i];
        type_row row = { .type = object->type };
        if (before) {
            row.before_count = 1;
            row.before_bytes = object->size;
        } else {
            row.count = 1;
            row.bytes = object->size;
            row.retained = is_nested(graph, i) ? 0 : graph->retained[i];
        }
        rows[answer->row_count + i] = row;
    }
    qsort(rows, count, sizeof *rows, by_type);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || rows[kept - 1].type != rows[i].type) {
            rows[kept++] = rows[i];
            continue;
        }
        rows[kept - 1].count += rows[i].count;
        rows[kept - 1].bytes += rows[i].bytes;
        rows[kept - 1].retained += rows[i].retained;
        rows[kept - 1].before_count += rows[i].before_count;
        rows[kept - 1].before_bytes += rows[i].before_bytes;
    }
    answer->row_count = kept;
    return COFFER_OK;
}

static void print_types(const heap_answer *answer)
{
    term_table *table = term_table_new();
    uint64_t shown = answer->top && answer->top < answer->row_count ? answer->top : answer->row_count;
    term_text text;
    term_table_column(table, "bytes", TERM_RIGHT);
    term_table_column(table, "objects", TERM_RIGHT);
    term_table_column(table, "retained", TERM_RIGHT);
    if (answer->since)
        term_table_column(table, "change", TERM_RIGHT);
    term_table_column(table, "type", TERM_LEFT);
    for (size_t i = 0; i < shown; i++) {
        const type_row *row = &answer->rows[i];
        int64_t change = (int64_t)(row->bytes - row->before_bytes);
        term_table_cell(table, term_bytes(text, row->bytes));
        term_table_cell(table, term_count(text, row->count));
        term_table_cell(table, term_bytes(text, row->retained));
        if (answer->since)
            term_table_cellf(table, "%s%s", change < 0 ? "-" : "+",
                             term_bytes(text, (uint64_t)(change < 0 ? -change : change)));
        term_table_cell(table, type_name(answer, row->type));
    }
    term_table_print(table, stdout);
    if (shown < answer->row_count)
        printf("… %zu more types; --top 0 shows all\n", answer->row_count - (size_t)shown);
}

/* ---- Paths ---- */

static bool find_type(uint64_t *type, const heap_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->row_count; i++)
        if (answer->rows[i].count > 0 && strcmp(type_name(answer, answer->rows[i].type), name) == 0) {
            *type = answer->rows[i].type;
            return true;
        }
    return false;
}

/* Finds the chain that --path asks for; 0, or the exit status after a message. */
static int find_path(heap_answer *answer)
{
    const char *name = cli_value(answer->args, "path");
    size_t count = answer->graph.count + 1;
    uint64_t type;
    if (!name)
        return CLI_OK;
    if (!find_type(&type, answer, name))
        return cli_usage(answer->args, "--path: the snapshot has no object of type '%s'", name);
    answer->path = coffer__alloc_array(count, sizeof *answer->path);
    answer->path_edges = coffer__alloc_array(count, sizeof *answer->path_edges);
    if (answer->path && answer->path_edges)
        answer->path_len = heap_graph_path(answer->path, answer->path_edges, &answer->graph, type);
    if (answer->path_len > 0)
        return CLI_OK;
    const coffer_error err = { .status = COFFER_E_NO_MEMORY,
                               .offset = COFFER_OFFSET_NONE,
                               .text = "out of memory for the references" };
    return cli_fail(cli_operand(answer->args, 0), &err, NULL);
}

static const char *edge_name(const heap_answer *answer, size_t step)
{
    uint32_t edge = answer->path_edges[step];
    const char *name =
        edge == HEAP_NONE ? NULL : coffer_mlyze_function_name(answer->trace, answer->graph.edges[edge].name);
    return name ? name : "";
}

static void print_path(const heap_answer *answer)
{
    const heap_graph *graph = &answer->graph;
    for (size_t i = 0; i < answer->path_len; i++) {
        const heap_object *object = &graph->objects[answer->path[i]];
        const char *type = type_name(answer, object->type), *name = edge_name(answer, i);
        term_text bytes, retained;
        fputs(i > 0 ? "  -> " : "", stdout);
        term_print_text(stdout, name, strlen(name), 0);
        fputs(*name ? ": " : "", stdout);
        term_print_text(stdout, type, strlen(type), 0);
        printf(" at 0x%" PRIx64 ", %s, retains %s\n", object->address, term_bytes(bytes, object->size),
               term_bytes(retained, graph->retained[answer->path[i]]));
    }
}

static void add_path(coffer_node *root, const heap_answer *answer)
{
    coffer_node *list = answer->path_len > 0 ? coffer_node_add_list(root, "path") : NULL;
    for (size_t i = 0; i < answer->path_len; i++) {
        const heap_object *object = &answer->graph.objects[answer->path[i]];
        coffer_node *map = coffer_node_add_map(list, NULL);
        if (i > 0)
            coffer_node_add_text(map, "reference", edge_name(answer, i));
        coffer_node_add_text(map, "type", type_name(answer, object->type));
        coffer_node_add_u64(map, "address", object->address, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "bytes", object->size, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "retained_bytes", answer->graph.retained[answer->path[i]],
                            COFFER_UNIT_BYTES);
    }
}

/* ---- Facts ---- */

static void print_heading(const heap_answer *answer)
{
    const heap_graph *graph = &answer->graph;
    term_text bytes, count, time;
    printf("snapshot %" PRIu64 " of %zu, %s after the start: %s%s%s in %s object%s\n", graph->number,
           graph->snapshots, term_duration(time, (double)graph->time / 1e6), term_on(stdout, TERM_BOLD),
           term_bytes(bytes, answer->bytes), term_off(stdout), term_count(count, graph->count),
           term_plural(graph->count));
    if (!graph->complete)
        printf("  the snapshot is incomplete: the recording ended in it\n");
    if (graph->unsized)
        printf("  objects whose size is not known, since no recorded block contains them: %" PRIu64 "\n",
               graph->unsized);
    if (graph->dangling)
        printf("  references to or from addresses without an object: %" PRIu64 "\n", graph->dangling);
    putchar('\n');
}

static void add_types(coffer_node *root, const heap_answer *answer)
{
    coffer_node *list = coffer_node_add_list(root, "types");
    for (size_t i = 0; i < answer->row_count && (!answer->top || i < answer->top); i++) {
        const type_row *row = &answer->rows[i];
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "type", type_name(answer, row->type));
        coffer_node_add_u64(map, "objects", row->count, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "bytes", row->bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "retained_bytes", row->retained, COFFER_UNIT_BYTES);
        if (answer->since) {
            coffer_node_add_u64(map, "objects_before", row->before_count, COFFER_UNIT_NONE);
            coffer_node_add_u64(map, "bytes_before", row->before_bytes, COFFER_UNIT_BYTES);
        }
    }
}

static int print_json(const heap_answer *answer)
{
    const heap_graph *graph = &answer->graph;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err))
        return cli_fail(cli_operand(answer->args, 0), &err, NULL);
    coffer_node_add_text(root, "file", cli_operand(answer->args, 0));
    coffer_node_add_u64(root, "snapshot", graph->number, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "snapshots", graph->snapshots, COFFER_UNIT_NONE);
    coffer_node_add_bool(root, "complete", graph->complete);
    coffer_node_add_u64(root, "time_us", graph->time, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "objects", graph->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "bytes", answer->bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "references", graph->edge_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "dangling_references", graph->dangling, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "objects_without_size", graph->unsized, COFFER_UNIT_NONE);
    add_path(root, answer);
    add_types(root, answer);
    trace_add_lost(coffer_node_add_map(root, "trace"), answer->trace);
    int status = coffer_node_status(root, &err) ? cli_fail(cli_operand(answer->args, 0), &err, NULL)
                                                : cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

/* ---- The verb ---- */

static coffer_status read_rows(heap_answer *answer, uint64_t number, coffer_error *err)
{
    coffer_status status = heap_graph_read(&answer->graph, answer->trace, number, err);
    if (!status)
        status = add_rows(answer, &answer->graph, false, err);
    if (!status && answer->since) {
        heap_graph before;
        status = heap_graph_read(&before, answer->trace, answer->since, err);
        if (!status)
            status = add_rows(answer, &before, true, err);
        if (!status)
            heap_graph_free(&before);
    }
    for (size_t i = 0; !status && i < answer->row_count; i++)
        answer->bytes += answer->rows[i].bytes;
    if (!status)
        qsort(answer->rows, answer->row_count, sizeof *answer->rows, by_bytes);
    return status;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    heap_answer answer = { .args = args, .trace = trace };
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t number;
    bool all = cli_has(args, "json") || !term_is_terminal(stdout);
    if (!cli_number(&number, args, "snapshot", 0, 1, UINT64_MAX) ||
        !cli_number(&answer.since, args, "since", 0, 1, UINT64_MAX) ||
        !cli_number(&answer.top, args, "top", all ? 0 : TOP, 0, UINT64_MAX))
        return CLI_USAGE;
    int status = CLI_OK;
    coffer_status read = read_rows(&answer, number, &err);
    if (read == COFFER_E_NOT_FOUND)
        status = cli_fail(cli_operand(args, 0), &err,
                          "'coffer record --snapshot-at-peak -- python3 APP' takes snapshots");
    else if (read)
        status = cli_fail(cli_operand(args, 0), &err, NULL);
    else
        status = trace_stop_at_damage(args, cli_operand(args, 0), trace);
    if (!status)
        status = find_path(&answer);
    if (!status && cli_has(args, "json"))
        status = print_json(&answer);
    else if (!status && answer.path_len > 0)
        print_path(&answer);
    else if (!status) {
        print_heading(&answer);
        print_types(&answer);
    }
    coffer__free(answer.path);
    coffer__free(answer.path_edges);
    heap_graph_free(&answer.graph);
    coffer__free(answer.rows);
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
    { "top", 'n', "N", NULL, "number of types to show (0: all)", "20 on a terminal, else all" },
    { "json", 0, NULL, NULL,
      "one JSON object: file, snapshot, objects, bytes, references, path, types (type, objects, "
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
                "  coffer heap run.mlyze --path Session           # what keeps a Session alive\n",
    .run = run,
};
