/* A model reads the same after it was compacted, repaired or edited, and the output of repair has no errors.
 * */
#include "clean.h"
#include "mcf_input.h"

#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *path_in(char *out, size_t size, const char *name)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, size, "%s/fuzz-mcf-%ld-%s", folder, (long)getpid(), name);
    return out;
}

static bool is_clean(const char *path, const coffer_limits *limits, uint8_t hash[32])
{
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    bool clean = fuzz_is_clean(src, limits);
    if (clean) {
        MUST(coffer_mcf_open(&model, src, NULL, NULL) == COFFER_OK);
        MUST(coffer_mcf_content_hash(hash, model,
                                     &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts),
                                                              .threads = 1 },
                                     NULL) == COFFER_OK);
        coffer_mcf_close(model);
    }
    coffer_source_close(src);
    return clean;
}

/* Errors in sections that are copied unchanged remain, and damage is recorded: the file must open, and its
 * bytes can be read. */
static void try_repair(const fuzz_input *input, const char *path)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    opts.overwrite = true;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_repair(report, input->source, path, &opts, NULL) == COFFER_OK) {
        MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
        coffer_mcf_open_opts open_opts = COFFER_MCF_OPEN_OPTS_INIT;
        open_opts.allow_damaged = true;
        MUST(coffer_mcf_open(&model, src, &open_opts, NULL) == COFFER_OK);
        for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
            coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
            uint8_t byte;
            if (tensor.size > 0)
                MUST(coffer_mcf_read(&byte, model, i, tensor.size - 1, 1, NULL) == COFFER_OK);
        }
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    coffer_report_free(report);
}

static void try_compact(const char *path, const coffer_limits *limits, const uint8_t before[32])
{
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *out = NULL;
    uint8_t after[32];
    opts.limits = limits;
    MUST(coffer_node_new(&out, NULL) == COFFER_OK);
    MUST(coffer_compact(out, path, NULL, &opts, NULL) == COFFER_OK);
    MUST(is_clean(path, limits, after));
    MUST(memcmp(before, after, 32) == 0);
    coffer_node_free(out);
}

static void try_edit(const char *path, const coffer_limits *limits, const uint8_t before[32])
{
    coffer_mcf_editor *editor = NULL;
    uint8_t after[32];
    MUST(coffer_mcf_editor_open(&editor, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "{\"edited\": true}", 16, NULL) ==
         COFFER_OK);
    MAY_FAIL(coffer_mcf_editor_set_model_info(editor, "model_name", "edited", 0, NULL));
    MAY_FAIL(coffer_mcf_editor_set_checksums(
        editor, &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 }, NULL));
    MUST(coffer_mcf_editor_commit(editor, NULL) == COFFER_OK);
    coffer_mcf_editor_close(editor);
    MUST(is_clean(path, limits, after));
    MUST(memcmp(before, after, 32) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256], repaired[256];
    uint8_t hash[32];
    fuzz_input input;
    FILE *file;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    path_in(path, sizeof path, "input");
    path_in(repaired, sizeof repaired, "repaired");
    if (fuzz_input_is(&input, "mcf"))
        try_repair(&input, repaired);
    file = fopen(path, "wb");
    MUST(file && fwrite(input.bytes, 1, input.size, file) == input.size);
    fclose(file);
    if (is_clean(path, &input.limits, hash)) {
        try_edit(path, &input.limits, hash);
        try_compact(path, &input.limits, hash);
    }
    unlink(path);
    unlink(repaired);
    fuzz_input_close(&input);
    return 0;
}
