#include "cli.h"

#include "term.h"

#include <inttypes.h>
#include <string.h>

static const term_style severity_styles[] = {
    [COFFER_NOTE] = TERM_BLUE,
    [COFFER_WARNING] = TERM_YELLOW,
    [COFFER_ERROR] = TERM_RED,
};

static uint64_t total(const coffer_report *report)
{
    return coffer_report_total(report, COFFER_NOTE) + coffer_report_total(report, COFFER_WARNING) +
           coffer_report_total(report, COFFER_ERROR);
}

void cli_print_findings(FILE *out, const coffer_report *report)
{
    size_t count = coffer_report_count(report);
    term_table *table = term_table_new();
    term_table_indent(table, 2);
    term_table_uncut(table);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_RIGHT);
    term_table_column(table, NULL, TERM_LEFT);
    for (size_t i = 0; i < count; i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        term_table_style(table, severity_styles[finding->severity]);
        term_table_cell(table, coffer_severity_name(finding->severity));
        term_table_cell(table, coffer_status_name(finding->code));
        if (finding->offset == COFFER_OFFSET_NONE)
            term_table_cell(table, "");
        else
            term_table_cellf(table, "at %" PRIu64, finding->offset);
        term_table_cell(table, finding->text);
    }
    term_table_print(table, out);
    if (total(report) > count) {
        term_text more;
        fprintf(out, "  and %s more\n", term_count(more, total(report) - count));
    }
}

void cli_print_notes(const char *path, const coffer_report *notes)
{
    fflush(stdout);
    for (size_t i = 0; i < coffer_report_count(notes); i++) {
        const coffer_finding *note = coffer_report_at(notes, i);
        fprintf(stderr, "coffer: ");
        term_print_text(stderr, path, strlen(path), 0);
        fprintf(stderr, ": %s%s%s: ", term_on(stderr, severity_styles[note->severity]),
                coffer_severity_name(note->severity), term_off(stderr));
        term_print_text(stderr, note->text, strlen(note->text), 0);
        fputc('\n', stderr);
    }
    if (total(notes) > coffer_report_count(notes))
        fprintf(stderr, "coffer: and %" PRIu64 " more notes\n", total(notes) - coffer_report_count(notes));
}

void cli_add_notes(coffer_node *root, const coffer_report *notes)
{
    coffer_node *list = coffer_node_add_list(root, "notes");
    for (size_t i = 0; i < coffer_report_count(notes); i++) {
        const coffer_finding *note = coffer_report_at(notes, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "severity", coffer_severity_name(note->severity));
        coffer_node_add_text(map, "text", note->text);
    }
}

const char *cli_count_findings(cli_findings_text out, const coffer_report *report)
{
    term_text count;
    size_t len = 0;
    out[0] = '\0';
    for (int severity = COFFER_ERROR; severity >= COFFER_NOTE; severity--) {
        uint64_t found = coffer_report_total(report, (coffer_severity)severity);
        if (found > 0)
            len += (size_t)snprintf(out + len, sizeof(cli_findings_text) - len, "%s%s %s%s",
                                    len > 0 ? ", " : "", term_count(count, found),
                                    coffer_severity_name((coffer_severity)severity), found == 1 ? "" : "s");
    }
    return out;
}
