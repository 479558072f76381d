/* Opening, describing, listing, checking and comparing accept any file, and a file without errors opens. */
#include "mldf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen; /* keeps what is read from being optimized away */

static bool check(const fuzz_input *input, const uint8_t *key, uint32_t threads)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    bool clean;
    MUST(coffer_report_new(&report, input->limits.findings, NULL) == COFFER_OK);
    opts.full = true;
    opts.threads = threads;
    opts.limits = &input->limits;
    opts.key = key;
    coffer_status status = coffer_check(report, input->source, &opts, NULL);
    MUST(status == COFFER_OK || status == COFFER_E_NO_MEMORY);
    clean = status == COFFER_OK && coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    return clean;
}

static void use_nodes(const fuzz_input *input)
{
    coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
    coffer_list_opts list = COFFER_LIST_OPTS_INIT;
    coffer_diff_opts diff = COFFER_DIFF_OPTS_INIT;
    coffer_node *node = NULL, *compared = NULL;
    describe.limits = list.limits = diff.limits = &input->limits;
    diff.threads = 1;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    seen += coffer_describe(node, input->source, &describe, NULL) == COFFER_OK;
    seen += coffer_list(node, input->source, &list, NULL) == COFFER_OK;
    MUST(coffer_node_new(&compared, NULL) == COFFER_OK);
    if (coffer_diff(compared, input->source, input->source, &diff, NULL) == COFFER_OK)
        MUST(coffer_node_get_bool(coffer_node_find(compared, "equal")));
    coffer_node_free(compared);
    coffer_node_free(node);
}

static void walk_fields(const coffer_mldf *set)
{
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++) {
        const coffer_mldf_field *field = coffer_mldf_field_at(set, i);
        MUST(coffer_mldf_find_field(set, field->name) == i);
        MUST(field->row_offset + (uint64_t)field->row_size <= coffer_mldf_row_size(set));
        MUST(field->ndim <= COFFER_MLDF_MAX_DIMS);
    }
    MUST(coffer_mldf_samples_per_page(set) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    coffer_mldf *set = fuzz_open_set(&input, data, size);
    bool clean = check(&input, fuzz_key(data, size), 1);
    MUST(!clean || set);
    if (set)
        walk_fields(set);
    use_nodes(&input);
    coffer_mldf_close(set);
    fuzz_input_close(&input);
    return 0;
}
