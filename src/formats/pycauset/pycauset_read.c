/* Opening a matrix. */
#include "formats/pycauset/pycauset_private.h"

#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_pycauset_open_opts, COFFER_PYCAUSET_OPEN_OPTS_INIT)

static coffer_status check_payload(const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    if (info->type == COFFER_PYCAUSET_UNKNOWN || info->payload_needed <= info->payload_length)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, matrix->metadata_offset,
                        "%" PRIu64 " x %" PRIu64 " of %s need a payload of %" PRIu64
                        " bytes, it has %" PRIu64,
                        info->rows, info->cols, coffer_pycauset_dtype_name(info->dtype), info->payload_needed,
                        info->payload_length);
}

static coffer_status read_state(coffer_pycauset *matrix, coffer_error *err)
{
    coffer_status status =
        coffer__pycauset_read_block(&matrix->metadata, matrix->source, matrix->metadata_offset,
                                    matrix->metadata_length, &matrix->limits, err);
    if (!status)
        status =
            coffer__pycauset_interpret(&matrix->info, matrix->metadata.root, matrix->metadata_offset, err);
    if (!status)
        status = check_payload(matrix, err);
    if (status)
        return status;
    if (matrix->info.type == COFFER_PYCAUSET_UNKNOWN) /* all that the slot says, to be copied as it is */
        matrix->info.payload_needed = coffer__pycauset_slot_payload(&matrix->header, matrix->header.active);
    coffer__pycauset_view_signature(matrix->view_signature, &matrix->info);
    return coffer__pycauset_start_verifying(matrix, err);
}

static coffer_status open_state(coffer_pycauset *matrix, uint64_t generation, coffer_error *err)
{
    coffer_status status = coffer__pycauset_read_header(&matrix->header, matrix->source, err);
    if (!status)
        status = coffer__pycauset_expect_active(&matrix->header, matrix->source, err);
    if (status)
        return status;
    const coffer__pycauset_slot *slot = &matrix->header.slots[matrix->header.active];
    matrix->info.payload_offset = slot->payload_offset;
    matrix->info.payload_length = slot->payload_length;
    matrix->info.active_slot = "AB"[matrix->header.active];
    if (matrix->header.slots[1 - matrix->header.active].fault)
        matrix->info.damaged_slot = "AB"[1 - matrix->header.active];
    /* Blocks are appended: a newer one would be after this one. */
    matrix->info.newer_lost = matrix->info.damaged_slot && slot->metadata_offset + slot->metadata_length <
                                                               coffer_source_size(matrix->source);
    matrix->info.generation = slot->generation;
    matrix->metadata_offset = slot->metadata_offset;
    matrix->metadata_length = slot->metadata_length;
    if (generation != 0 && generation != slot->generation) {
        matrix->info.generation = generation;
        status = coffer__pycauset_find_generation(&matrix->metadata_offset, &matrix->metadata_length,
                                                  matrix->source, generation, &matrix->limits, err);
        if (status)
            return status;
    }
    return read_state(matrix, err);
}

static void ignore_view(coffer_pycauset_info *info)
{
    info->transposed = info->conjugated = false;
    info->scalar_real = 1;
    info->scalar_imag = 0;
    info->rows = info->stored_rows;
    info->cols = info->stored_cols;
    if (info->type != COFFER_PYCAUSET_BLOCK)
        info->value_dtype = info->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : info->dtype;
}

coffer_status coffer__pycauset_open_child(coffer_pycauset **out, coffer_source *src,
                                          const coffer_pycauset_open_opts *opts,
                                          const coffer_pycauset *parent, coffer_error *err)
{
    coffer_pycauset_open_opts options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_pycauset *matrix = coffer__calloc(1, sizeof *matrix);
    if (!matrix)
        return coffer__fail_no_memory(err, sizeof *matrix);
    matrix->source = src;
    matrix->parent = parent;
    matrix->limits = coffer__limits(options.limits);
    if (options.blocks_folder && !(matrix->blocks_folder = coffer__strdup(options.blocks_folder)))
        status = coffer__fail_no_memory(err, strlen(options.blocks_folder) + 1);
    if (!status)
        status = open_state(matrix, options.generation, err);
    if (!status)
        status = coffer_source_intact(src, err);
    if (status) {
        coffer_pycauset_close(matrix);
        return status;
    }
    coffer__pycauset_settle_value_dtype(matrix);
    if (options.ignore_view)
        ignore_view(&matrix->info);
    *out = matrix;
    return COFFER_OK;
}

coffer_status coffer_pycauset_open(coffer_pycauset **out, coffer_source *src,
                                   const coffer_pycauset_open_opts *opts, coffer_error *err)
{
    return coffer__pycauset_open_child(out, src, opts, NULL, err);
}

coffer_status coffer_pycauset_open_path(coffer_pycauset **out, const char *path,
                                        const coffer_pycauset_open_opts *opts, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (!status)
        status = coffer_pycauset_open(out, source, opts, err);
    if (status)
        coffer_source_close(source);
    else
        (*out)->owns_source = true;
    return status;
}

void coffer_pycauset_close(coffer_pycauset *matrix)
{
    if (!matrix)
        return;
    coffer__pycauset_blocks_free(atomic_load(&matrix->blocks));
    coffer__pycauset_tree_free(&matrix->metadata);
    coffer__chunk_verifier_free(matrix->verifier);
    coffer__free(matrix->blocks_folder);
    if (matrix->owns_source)
        coffer_source_close(matrix->source);
    coffer__free(matrix);
}

static const char *text_at(const coffer_pycauset *matrix, const char *path)
{
    const char *text =
        coffer_pycauset_value_text(coffer_pycauset_value_find(matrix->metadata.root, path), NULL);
    return text ? text : "?";
}

coffer_status coffer__pycauset_fail_unknown(const coffer_pycauset *matrix, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, matrix->metadata_offset,
                        "matrix_type \"%s\" with data_type \"%s\" and layout \"%s\" is not known to this "
                        "version: only the metadata can be read",
                        text_at(matrix, "matrix_type"), text_at(matrix, "data_type"),
                        text_at(matrix, "payload_layout.kind"));
}

const coffer_pycauset_info *coffer_pycauset_get_info(const coffer_pycauset *matrix)
{
    return &matrix->info;
}

const coffer_pycauset_value *coffer_pycauset_metadata(const coffer_pycauset *matrix)
{
    return matrix->metadata.root;
}

const coffer_pycauset_value *coffer_pycauset_cached(const coffer_pycauset *matrix, const char *name,
                                                    bool *stale)
{
    const coffer_pycauset_value *root = matrix->metadata.root;
    const coffer_pycauset_value *entry =
        coffer__pycauset_get_key(coffer__pycauset_get_key(root, "cached"), name);
    bool fresh = entry && coffer__pycauset_is_fresh(entry, root, matrix->view_signature);
    if (stale)
        *stale = entry && !fresh;
    return fresh ? coffer__pycauset_get_key(entry, "value") : NULL;
}
