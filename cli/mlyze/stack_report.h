/* Stacks, functions or files of a trace, ordered by one of their numbers: as text or as JSON. */
#ifndef COFFER_CLI_STACK_REPORT_H
#define COFFER_CLI_STACK_REPORT_H

#include "cli.h"
#include "trace_names.h"

#define STACK_REPORT_OPTIONS(sort_initial)                                                                        \
    { "by", 0, "WHAT", "stack|function|file", "one entry for each", "stack" },                                    \
        { "top", 'n', "N", NULL, "number of entries, the largest first; 0 = all", "20 on a terminal, else all" }, \
        { "sort", 0, "KEY", "bytes|count", "sort by bytes or by number of blocks, largest first", sort_initial }, \
        CLI_CSV_OPTION, { "depth", 'd', "N", NULL, "frames to show of each stack; 0 shows all", "8" },            \
    {                                                                                                             \
        "json", 0, NULL, NULL, "print one JSON object"                                                            \
    }

typedef struct stack_report {
    const coffer_mlyze *trace;
    const coffer_mlyze_stats *stats;
    coffer_mlyze_measure measure;
    coffer_mlyze_by by;
    uint64_t top, depth; /* 0 = all */
    bool by_count, csv, json;
    bool ages;   /* also print the ages of the blocks */
    bool growth; /* stacks whose live bytes rise, the steepest first, and no others */
    const coffer_mlyze_suppressions *hidden; /* may be NULL */
    /* Filled while selecting. */
    const coffer_mlyze_stack_row **rows;
    size_t row_count;
    trace_amount shown, suppressed;
} stack_report;

/* Reads the options above; the caller sets the rest. False after a message: return CLI_USAGE. */
bool stack_report_read(stack_report *out, const cli_args *args);
/* Selects the stacks with allocations under the measure, and sorts them. stack_report_free() it. */
coffer_status stack_report_select(stack_report *report, coffer_error *err);
void stack_report_free(stack_report *report);
/* Lists "stacks", or "functions" or "files". */
coffer_status stack_report_add(coffer_node *root, const stack_report *report, coffer_error *err);
/* Prints the nodes of stack_report_add as CSV or JSON, whichever was asked for. */
int stack_report_print_nodes(const stack_report *report, const coffer_node *root);
coffer_status stack_report_print(const stack_report *report, FILE *out, coffer_error *err);

/* A whole answer: facts about the trace, then the stacks, for people or as JSON. */
typedef struct stack_answer {
    const cli_args *args;
    stack_report report;
    const coffer_mlyze_totals *totals;
    /* The first line for people, and the facts of the JSON object after file and format. */
    void (*print_heading)(const struct stack_answer *answer, FILE *out);
    void (*add_facts)(coffer_node *root, const struct stack_answer *answer);
    const char *nothing; /* printed when no stack is left */
} stack_answer;

/* Selects and prints; returns the exit status. answer->report must have trace and stats. */
int stack_answer_show(stack_answer *answer);

#endif
