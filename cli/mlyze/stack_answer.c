#include "stack_answer.h"

#include "base/report.h"
#include "term.h"

static int print_json(const stack_answer *answer, coffer_error *err)
{
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, err);
    int result = CLI_OK;
    if (status == COFFER_OK) {
        coffer__node_text(root, "file", cli_operand(answer->args, 0));
        coffer__node_text(root, "format", "mlyze");
        answer->add_facts(root, answer);
        if (answer->report.hidden && answer->report.hidden->count) {
            coffer__node_u64(root, "suppressed_bytes", answer->report.suppressed.bytes, COFFER_UNIT_BYTES);
            coffer__node_u64(root, "suppressed_allocs", answer->report.suppressed.count, COFFER_UNIT_NONE);
        }
        status = stack_report_add(root, &answer->report, err);
    }
    if (status == COFFER_OK)
        status = coffer__node_status(root, err);
    result = status == COFFER_OK ? cli_print_json(stdout, root)
                                 : cli_fail(cli_operand(answer->args, 0), err, NULL);
    coffer_node_free(root);
    return result;
}

static int print_text(const stack_answer *answer, coffer_error *err)
{
    const stack_report *report = &answer->report;
    term_text bytes, count;
    answer->print_heading(answer, stdout);
    if (report->suppressed.count)
        printf("%s%s in %s blocks are suppressed%s\n", term_on(stdout, TERM_DIM),
               term_bytes(bytes, report->suppressed.bytes), term_count(count, report->suppressed.count),
               term_off(stdout));
    if (report->row_count == 0) {
        puts(answer->nothing);
        return CLI_OK;
    }
    putchar('\n');
    coffer_status status = stack_report_print(report, stdout, err);
    return status == COFFER_OK ? CLI_OK : cli_fail(cli_operand(answer->args, 0), err, NULL);
}

int stack_answer_show(stack_answer *answer)
{
    coffer_error err = COFFER_ERROR_INIT;
    int result;
    answer->totals = coffer_mlyze_stats_totals(answer->report.analysis);
    if (stack_report_select(&answer->report, &err) != COFFER_OK)
        result = cli_fail(cli_operand(answer->args, 0), &err, NULL);
    else
        result = answer->report.json ? print_json(answer, &err) : print_text(answer, &err);
    stack_report_free(&answer->report);
    return result;
}
