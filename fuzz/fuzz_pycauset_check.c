/* check accepts any file, a file without errors opens, and a repaired file has no errors. */
#include "must.h"
#include "pycauset_input.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool check(const fuzz_input *input, coffer_source *source, bool full)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.full = full;
    opts.threads = 1;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, input->limits.findings, NULL) == COFFER_OK);
    coffer_status status = coffer_check(report, source, &opts, &err);
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
    static const char *const lists[] = { NULL, "generations", "blocks", "no such list" };
    coffer_node *node = NULL;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    for (uint64_t generation = 0; generation < 3; generation++) {
        coffer_describe_opts describe = COFFER_DESCRIBE_OPTS_INIT;
        describe.limits = &input->limits;
        describe.generation = generation;
        MAY_FAIL(coffer_describe(node, input->source, &describe, NULL));
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
        opts.what = lists[i];
        opts.limits = &input->limits;
        MAY_FAIL(coffer_list(node, input->source, &opts, NULL));
    }
    coffer_node_free(node);
}

/* The output of repair opens; if the input opened too, both have the same content. */
static void repair(const fuzz_input *input)
{
    char path[64];
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *repaired = NULL;
    coffer_pycauset *before = fuzz_open(input, NULL), *after = NULL;
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-repaired",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    opts.overwrite = true;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_repair(report, input->source, path, &opts, NULL) == COFFER_OK) {
        MUST(coffer_source_open(&repaired, path, NULL, NULL) == COFFER_OK);
        MUST(coffer_pycauset_open(&after, repaired, NULL, NULL) == COFFER_OK);
        if (before) {
            coffer_node *node = NULL;
            MUST(coffer_node_new(&node, NULL) == COFFER_OK);
            MUST(coffer_pycauset_value_diff(node, coffer_pycauset_metadata(before),
                                            coffer_pycauset_metadata(after), NULL) == COFFER_OK);
            MUST(coffer_node_count(coffer_node_find(node, "changes")) == 0);
            coffer_node_free(node);
        }
    }
    coffer_pycauset_close(after);
    coffer_pycauset_close(before);
    coffer_source_close(repaired);
    coffer_report_free(report);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    if (!fuzz_input_is(&input, "pycauset")) {
        fuzz_input_close(&input);
        return 0;
    }
    bool sound = check(&input, input.source, false), clean = check(&input, input.source, true);
    MUST(sound || !clean);
    coffer_pycauset *matrix = fuzz_open(&input, NULL);
    MUST(matrix || !sound);
    coffer_pycauset_close(matrix);
    describe_and_list(&input);
    repair(&input);
    fuzz_input_close(&input);
    return 0;
}
