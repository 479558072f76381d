/* An answer that is a list of stacks: facts about the whole, then the stacks, for people or as JSON. */
#ifndef COFFER_CLI_STACK_ANSWER_H
#define COFFER_CLI_STACK_ANSWER_H

#include "stack_report.h"

typedef struct stack_answer {
    const cli_args *args;
    stack_report report;
    const coffer_mlyze_totals *totals;
    /* The first line for people, and the facts of the JSON object behind file and format. */
    void (*print_heading)(const struct stack_answer *answer, FILE *out);
    void (*add_facts)(coffer_node *root, const struct stack_answer *answer);
    const char *nothing; /* said when there is no stack to show */
} stack_answer;

/* Selects, prints, and gives the exit status; answer->report has trace and analysis. */
int stack_answer_show(stack_answer *answer);

#endif
