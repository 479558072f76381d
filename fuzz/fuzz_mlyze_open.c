/* Opening, describing, listing and checking accept any file, and a file without errors opens. */
#include "mlyze_input.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen; /* keeps what is read from being optimized away */

static void walk_stacks(const coffer_mlyze *trace)
{
    size_t len;
    const char *text = coffer_mlyze_metadata(trace, &len);
    MUST(strlen(text) <= len);
    for (size_t i = 0; i < coffer_mlyze_stack_count(trace); i++) {
        uint64_t id = coffer_mlyze_stack_id(trace, i);
        size_t depth, found = coffer_mlyze_find_stack(trace, id);
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, i);
        MUST(found == i);
        for (size_t j = 0; j < depth; j++) {
            const char *file = coffer_mlyze_file_name(trace, frames[j].file_id);
            const char *function = coffer_mlyze_function_name(trace, frames[j].func_id);
            seen += (file ? strlen(file) : 0) + (function ? strlen(function) : 0) + frames[j].line;
        }
    }
    for (unsigned i = 0; i < 16; i++)
        seen += coffer_mlyze_thread_name(trace, (uint16_t)i) != NULL;
    seen += coffer_mlyze_profile_name(trace) != NULL;
}

static bool check(const fuzz_input *input)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, input->limits.findings, NULL) == COFFER_OK);
    coffer_status status = coffer_check(report, input->source, &opts, &err);
    MUST(status == COFFER_OK || err.text[0]);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        MUST(finding->text[0] && !strchr(finding->text, '\n'));
    }
    bool clean = status == COFFER_OK && coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    return clean;
}

/* One of them for each input: their columns are large, and the fuzzer shall be fast. */
static void describe_or_list(const fuzz_input *input, size_t choice)
{
    static const char *const lists[] = { "stacks", "files", "functions", "threads", "markers", "blocks" };
    const size_t count = sizeof lists / sizeof lists[0];
    coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
    coffer_list_opts list = COFFER_LIST_OPTS_INIT;
    coffer_node *node = NULL;
    describe.limits = list.limits = &input->limits;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    if (choice % (2 * count) < count) {
        list.what = lists[choice % count];
        MAY_FAIL(coffer_list(node, input->source, &list, NULL));
    } else {
        MAY_FAIL(coffer_describe(node, input->source, &describe, NULL));
    }
    coffer_node_free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.limits = &input.limits;
    bool clean = check(&input);
    coffer_status status = coffer_mlyze_open(&trace, input.source, &opts, &err);
    MUST(status == COFFER_OK ? trace != NULL : err.text[0] != '\0');
    MUST(!clean || status == COFFER_OK || status == COFFER_E_NO_MEMORY);
    if (trace)
        walk_stacks(trace);
    coffer_mlyze_close(trace);
    describe_or_list(&input, size);
    fuzz_input_close(&input);
    return 0;
}
