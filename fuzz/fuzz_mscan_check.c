/* check accepts any file, and a file without errors can be opened and read. */
#include "mscan_input.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_errors(const coffer_report *report)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        MUST(finding->text[0] && !strchr(finding->text, '\n'));
        MUST(strcmp(coffer_status_name(finding->code), "unknown") != 0);
    }
    return coffer_report_total(report, COFFER_ERROR) > 0;
}

static bool check(const fuzz_input *input, bool full)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.full = full;
    opts.threads = 1;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, input->limits.findings, NULL) == COFFER_OK);
    coffer_status status = coffer_check(report, input->source, &opts, &err);
    MUST(status == COFFER_OK || err.text[0]);
    bool clean = status == COFFER_OK && !has_errors(report);
    coffer_report_free(report);
    return clean;
}

static void describe_and_list(const fuzz_input *input)
{
    static const char *const lists[] = { NULL, "params", "sequences", "no such list" };
    coffer_node *node = NULL;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
    describe.limits = &input->limits;
    MAY_FAIL(coffer_describe(node, input->source, &describe, NULL));
    coffer_node_free(node);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
        opts.what = lists[i];
        opts.limits = &input->limits;
        MUST(coffer_node_new(&node, NULL) == COFFER_OK);
        MAY_FAIL(coffer_list(node, input->source, &opts, NULL));
        coffer_node_free(node);
    }
}

/* Every record of a file that passed the full check points at something. */
static void read_everything(const fuzz_input *input, bool full)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer_mscan *scan = NULL;
    opts.limits = &input->limits;
    MUST(coffer_mscan_open(&scan, input->source, &opts, NULL) == COFFER_OK);
    for (uint64_t i = 0; i < coffer_mscan_record_count(scan); i++) {
        coffer_mscan_record record;
        MUST(coffer_mscan_read(&record, scan, i, 1, NULL) == COFFER_OK);
        if (full) {
            MUST(coffer_mscan_param_name(scan, record.param_id));
            MUST(record.token_idx < coffer_mscan_total_tokens(scan));
        }
    }
    coffer_mscan_close(scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    bool sound = check(&input, false), clean = check(&input, true);
    MUST(sound || !clean);
    if (sound)
        read_everything(&input, clean);
    describe_and_list(&input);
    fuzz_input_close(&input);
    return 0;
}
