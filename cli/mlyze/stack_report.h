/* Stacks, functions or files of a trace, ordered by one of their numbers: as text or as JSON. */
#ifndef COFFER_CLI_STACK_REPORT_H
#define COFFER_CLI_STACK_REPORT_H

#include "cli.h"
#include "trace_names.h"

#define STACK_REPORT_OPTIONS                                                             \
    { "by", 0, "WHAT", "stack|function|file", "one entry for each (stack)" },            \
        { "top", 'n', "K", NULL, "only the K largest (20 on a terminal); 0 shows all" }, \
        { "sort", 0, "KEY", "bytes|count",                                               \
          "order of the entries, largest first (bytes; temporaries: count)" },           \
        { "depth", 'd', "N", NULL, "frames shown of each stack (8); 0 shows all" },      \
    {                                                                                    \
        "json", 0, NULL, NULL, "one JSON object"                                         \
    }

typedef struct stack_report {
    const coffer_mlyze *trace;
    const coffer_mlyze_stats *stats;
    coffer_mlyze_measure measure;
    coffer_mlyze_by by;
    uint64_t top, depth; /* 0 = all */
    bool by_count, json;
    bool ages;   /* how old the blocks are, too */
    bool growth; /* stacks whose live bytes rise, the steepest first, and no others */
    const coffer_mlyze_suppressions *hidden; /* may be NULL */
    /* Filled while selecting. */
    const coffer_mlyze_stack_row **rows;
    size_t row_count;
    trace_amount shown, suppressed;
} stack_report;

/* The options above; the rest is the caller's to set. False after a message: return CLI_USAGE. */
bool stack_report_read(stack_report *out, const cli_args *args);
/* Picks the stacks that have anything of the measure, and orders them. Ends with stack_report_free. */
coffer_status stack_report_select(stack_report *report, coffer_error *err);
void stack_report_free(stack_report *report);
/* Lists "stacks", or "functions" or "files". */
coffer_status stack_report_add(coffer_node *root, const stack_report *report, coffer_error *err);
coffer_status stack_report_print(const stack_report *report, FILE *out, coffer_error *err);

/* A whole answer: facts about the trace, then the stacks, for people or as JSON. */
typedef struct stack_answer {
    const cli_args *args;
    stack_report report;
    const coffer_mlyze_totals *totals;
    /* The first line for people, and the facts of the JSON object after file and format. */
    void (*print_heading)(const struct stack_answer *answer, FILE *out);
    void (*add_facts)(coffer_node *root, const struct stack_answer *answer);
    const char *nothing; /* said when there is no stack to show */
} stack_answer;

/* Selects, prints, and gives the exit status; answer->report has trace and stats. */
int stack_answer_show(stack_answer *answer);

#endif
