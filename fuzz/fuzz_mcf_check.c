/* check accepts any file, and a file without errors can be opened and read. */
#include "mcf_input.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        MUST(finding->text[0] && !strchr(finding->text, '\n'));
        MUST(strcmp(coffer_status_name(finding->code), "unknown") != 0);
    }
    bool clean = status == COFFER_OK && coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    return clean;
}

static void describe_and_list(const fuzz_input *input)
{
    static const char *const lists[] = { NULL, "sections", "keys", "no such list" };
    coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
    coffer_node *node = NULL;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    describe.limits = &input->limits;
    describe.hash = true;
    describe.threads = 1;
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

/* In a file without errors every tensor has a name, a type and all of its bytes. */
static void read_everything(const fuzz_input *input)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_mcf *model = NULL;
    opts.limits = &input->limits;
    MUST(coffer_mcf_open(&model, input->source, &opts, NULL) == COFFER_OK);
    for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
        coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
        uint8_t byte;
        MUST(tensor.dtype != COFFER_DTYPE_NONE);
        MUST(coffer_mcf_find_tensor(model, tensor.name, tensor.name_len) == i);
        if (tensor.size > 0)
            MUST(coffer_mcf_read(&byte, model, i, tensor.size - 1, 1, NULL) == COFFER_OK);
        MUST(coffer_mcf_read_rows_f32(NULL, model, i, 0, 0, NULL) == COFFER_OK);
    }
    coffer_mcf_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    bool sound = check(&input, false), clean = check(&input, true);
    MUST(sound || !clean);
    if (sound)
        read_everything(&input);
    describe_and_list(&input);
    fuzz_input_close(&input);
    return 0;
}
