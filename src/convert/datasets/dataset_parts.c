/* A set that several calls pack together: the parts are joined in one commit, and only if the input is still
 * the one that they were packed from. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>
#include <string.h>

/* ---- The state of the input ---- */

/* "LIST-FILES": a digest of the names of the samples, and one of the sizes and times of their files. */
#define STATE_TEXT (COFFER__DIGEST_HEX + 1 + COFFER__DIGEST_HEX + 1)

static coffer_status fail_changed(const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                        "%s since the pack began; pack again when the input is complete", what);
}

coffer_status coffer__dataset_expect_list(const coffer__dataset_input *input,
                                          const coffer_mldf_pack_opts *opts, coffer_error *err)
{
    char list[COFFER__DIGEST_HEX + 1];
    if (!opts->expected_input)
        return COFFER_OK;
    coffer__digest_hex(list, input->seen);
    if (strlen(opts->expected_input) + 1 != STATE_TEXT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "expected_input is not the \"input\" of a dry run");
    if (strncmp(list, opts->expected_input, COFFER__DIGEST_HEX) != 0)
        return fail_changed("files were added, removed or changed", err);
    return COFFER_OK;
}

static void examine(coffer__digest *digest, coffer__dataset_sample *sample,
                    const coffer__dataset_input *input)
{
    sample->only_examine = true;
    coffer_status status = input->load(sample, input, NULL);
    uint64_t facts[] = { sample->origin.size, (uint64_t)sample->origin.time, (uint64_t)(int64_t)status };
    coffer__digest_add(digest, facts, sizeof facts);
}

/* files : gets the digest of all samples from the current one on. */
static coffer_status examine_all(char files[COFFER__DIGEST_HEX + 1], coffer__dataset_input *input,
                                 coffer_error *err)
{
    coffer__dataset_sample sample = { .name = COFFER__BUFFER_INIT };
    coffer__digest *digest = coffer__digest_new();
    size_t fields = input->schema.count;
    coffer_status status = COFFER_OK;
    bool more = input->load != NULL;
    sample.values = coffer__calloc(fields ? fields : 1, sizeof *sample.values);
    if (!digest || !sample.values)
        status = coffer__fail_no_memory(err, fields * sizeof *sample.values);
    for (size_t f = 0; !status && f < fields; f++)
        coffer__buffer_init(&sample.values[f].own, SIZE_MAX);
    for (uint64_t i = 0; !status && more; i++) {
        coffer__dataset_clear_sample(&sample, fields);
        sample.index = i;
        status = input->next(&more, &sample, input, err);
        if (!status && more)
            examine(digest, &sample, input);
    }
    if (!status)
        coffer__digest_hex(files, digest);
    for (size_t f = 0; sample.values && f < fields; f++)
        coffer__buffer_free(&sample.values[f].own);
    coffer__buffer_free(&sample.name);
    coffer__free(sample.values);
    coffer__digest_free(digest);
    return status;
}

coffer_status coffer__dataset_expect_files(coffer__dataset_input *input, const coffer_mldf_pack_opts *opts,
                                           coffer_error *err)
{
    char files[COFFER__DIGEST_HEX + 1];
    if (!opts->expected_input)
        return COFFER_OK;
    coffer_status status = examine_all(files, input, err);
    if (!status && strcmp(files, opts->expected_input + COFFER__DIGEST_HEX + 1) != 0)
        status = fail_changed("a file was changed", err);
    return status;
}

coffer_status coffer__dataset_survey(coffer_node *out, coffer__dataset_input *input, coffer_error *err)
{
    char list[COFFER__DIGEST_HEX + 1], files[COFFER__DIGEST_HEX + 1], text[STATE_TEXT];
    coffer__digest_hex(list, input->seen);
    coffer_status status = examine_all(files, input, err);
    if (status || !out)
        return status;
    memcpy(text, list, COFFER__DIGEST_HEX);
    text[COFFER__DIGEST_HEX] = '-';
    memcpy(text + COFFER__DIGEST_HEX + 1, files, sizeof files);
    coffer_node_add_u64(out, "samples", input->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "bytes", input->bytes, COFFER_UNIT_BYTES);
    coffer_node_add_text(out, "input", text);
    return coffer_node_status(out, err);
}

/* ---- Joining ---- */

static coffer_status copy_part(coffer_mldf_writer *writer, const char *path,
                               const coffer_mldf_pack_opts *opts, coffer_error *err)
{
    coffer_mldf_open_opts open = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_copy_opts copy = COFFER_MLDF_COPY_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    open.key = opts->write->key;
    open.limits = opts->write->limits;
    copy.progress = opts->progress;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&set, src, &open, err);
    if (!status)
        status = coffer_mldf_writer_copy(writer, set, &copy, err);
    coffer_mldf_close(set);
    coffer_source_close(src);
    return coffer__fail_input(err, status, path);
}

coffer_status coffer__dataset_copy_parts(coffer_mldf_writer *writer, const coffer_mldf_pack_opts *opts,
                                         coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < opts->part_count; i++)
        status = copy_part(writer, opts->parts[i], opts, err);
    return status;
}
