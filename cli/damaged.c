/* --damaged keep: damage of the inputs is accepted while a verb runs, and reported at its end. */
#include "args.h"
#include "base/fail.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

const char cli_damaged_help[] =
    "data whose checksum is wrong: stop, or keep it, report it and record it in the output where that is "
    "possible";

static coffer_report *report;
static bool is_offered;

static bool is_given(const cli_args *args)
{
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option->help == cli_damaged_help && strcmp(args->given[i].value, "keep") == 0)
            return true;
    return false;
}

int cli_start_damaged(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    cli_tables tables;
    cli_tables_of(&tables, args->verb, NULL);
    const cli_option *option = cli_tables_find(&tables, "damaged", strlen("damaged"));
    is_offered = option && option->help == cli_damaged_help && !cli_has(args, "damaged");
    if (!is_given(args))
        return CLI_OK;
    if (coffer_report_new(&report, 0, &err))
        return cli_fail(NULL, &err, "");
    coffer_keep_damaged(report);
    return CLI_OK;
}

bool cli_offers_damaged(void)
{
    return is_offered && coffer_stopped_at_damage();
}

void cli_add_damaged(coffer_node *root)
{
    if (report && coffer_report_count(report) > 0)
        coffer_report_describe(root, "damaged", report);
}

int cli_finish_damaged(int status)
{
    if (!report)
        return status;
    size_t count = coffer_report_count(report);
    uint64_t total = coffer_report_total(report, COFFER_ERROR);
    fflush(stdout);
    for (size_t i = 0; i < count; i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        fputs("coffer: ", stderr);
        term_print_text(stderr, finding->text, strlen(finding->text), 0);
        if (finding->offset != COFFER_OFFSET_NONE)
            fprintf(stderr, " (at offset %" PRIu64 ")", finding->offset);
        fputc('\n', stderr);
    }
    if (total > count)
        fprintf(stderr, "coffer: and %" PRIu64 " more damaged parts\n", total - count);
    coffer_keep_damaged(NULL);
    coffer_report_free(report);
    report = NULL;
    return total ? cli_worse(status, CLI_FINDINGS) : status;
}
