/* Checksums of a file that is edited in place: those of unchanged parts are kept, so that an edit does not
 * read the payloads. */
#include "formats/mcf/mcf_edit.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- set --checksum ---- */

static int by_offset(const void *a, const void *b)
{
    const coffer__mcf_range *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->size < y->size) - (x->size > y->size);
}

/* Each payload once; payloads that overlap become one range. */
static coffer_status collect_payloads(coffer__mcf_sums *out, const coffer_mcf *model, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    size_t kept = 0;
    for (size_t i = 0; !status && i < model->index.count; i++) {
        status = coffer__mcf_check_range(model, i, err);
        if (!status)
            status = coffer__mcf_sums_add(out, model->tensors[i].offset, model->tensors[i].size, err);
    }
    if (status || out->range_count == 0)
        return status;
    qsort(out->ranges, out->range_count, sizeof *out->ranges, by_offset);
    for (size_t i = 0; i < out->range_count; i++) {
        coffer__mcf_range *last = kept ? &out->ranges[kept - 1] : NULL, *range = &out->ranges[i];
        uint64_t end = range->offset + range->size;
        if (!last || range->offset >= last->offset + last->size)
            out->ranges[kept++] = *range;
        else if (end > last->offset + last->size)
            last->size = end - last->offset;
    }
    out->range_count = kept;
    return COFFER_OK;
}

/* Without permission the first damage is the error; with it, the damage is recorded. */
static coffer_status look_for_damage(coffer_mcf_editor *editor, const coffer_mcf *model, coffer_error *err)
{
    coffer__buffer all = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    size_t total = 0;
    for (size_t i = 0; !status && i < model->index.count; i++) {
        coffer_mcf_damage *damages = NULL;
        size_t count = 0;
        if (!model->allow_damaged) {
            status =
                coffer__mcf_verify_range(model, model->tensors[i].offset, model->tensors[i].size, NULL, err);
            continue;
        }
        status = coffer_mcf_tensor_damage(&damages, &count, model, i, err);
        for (size_t j = 0; j < count; j++)
            coffer__buffer_append(&all, &damages[j], sizeof damages[j]);
        total += count;
        coffer__free(damages);
    }
    for (size_t i = 0; !status && i < model->damages.count; i++) {
        const coffer_mcf_damage *known = &model->damages.items[i];
        if (known->section || known->reason == COFFER_MCF_DAMAGE_LOST) {
            coffer__buffer_append(&all, known, sizeof *known);
            total++;
        }
    }
    if (!status && all.failed)
        status = coffer__fail_no_memory(err, total * sizeof(coffer_mcf_damage));
    if (!status && total > 0) {
        coffer__buffer section = COFFER__BUFFER_INIT;
        coffer__mcf_change change = { .type = COFFER_MCF_DAMAGE, .version = COFFER__MCF_SECTION_VERSION };
        status = coffer__mcf_damages_encode(&section, (const coffer_mcf_damage *)(const void *)all.data,
                                            total, err);
        change.bytes = coffer__buffer_release(&section, &change.len);
        if (status)
            coffer__free(change.bytes);
        else
            status = coffer__mcf_put_change(editor, change, err);
    }
    coffer__buffer_free(&all);
    return status;
}

coffer_status coffer_mcf_editor_set_checksums(coffer_mcf_editor *editor, const coffer_mcf_work_opts *opts,
                                              coffer_error *err)
{
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    coffer_mcf_open_opts open_options = COFFER_MCF_OPEN_OPTS_INIT;
    const uint32_t needed = COFFER_MCF_TENSOR_DATA;
    coffer__mcf_sums payloads = { 0 };
    coffer_mcf *model = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status && editor->committed)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "the changes are already committed; open the file again to make more");
    if (!status)
        status = coffer_mcf_require(editor->model, &needed, 1, err);
    if (status)
        return status;
    open_options.limits = &editor->limits;
    open_options.allow_damaged = options.allow_damaged;
    status = coffer_mcf_open(&model, coffer__update_source(editor->update), &open_options, err);
    if (!status)
        status = look_for_damage(editor, model, err);
    if (!status)
        status = collect_payloads(&payloads, model, err);
    if (!status)
        status = coffer__mcf_sums_plan(&payloads, err);
    coffer__work_opts work = { .threads = options.threads, .progress = options.progress };
    if (!status)
        status = coffer__mcf_sums_compute(&payloads, NULL, model->source, &work, err);
    if (status) {
        coffer__mcf_sums_free(&payloads);
    } else {
        /* An intact table that was just verified says the same. */
        editor->recompute = !model->verifier || coffer__mcf_verifier_sums(model->verifier)->version == 1 ||
                            options.allow_damaged;
        coffer__mcf_sums_free(&editor->payloads);
        editor->payloads = payloads;
    }
    coffer_mcf_close(model);
    return status;
}

/* ---- The new table ---- */

static coffer_status is_zero(bool *out, coffer_source *src, uint64_t begin, uint64_t end, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    *out = true;
    while (!status && *out && begin < end) {
        size_t n = end - begin < COFFER__MCF_CHUNK ? (size_t)(end - begin) : COFFER__MCF_CHUNK;
        status = coffer_source_read_at(piece, src, begin, n, err);
        for (size_t i = 0; !status && *out && i < n; i++)
            *out = piece[i] == 0;
        begin += n;
    }
    coffer__free(piece);
    return status;
}

/* Bytes between the ranges belong to nothing any more; those that are not zero get a checksum as well. */
static coffer_status add_gaps(coffer__mcf_sums *sums, const coffer_mcf_editor *editor, coffer_error *err)
{
    coffer_source *src = coffer__update_source(editor->update);
    uint64_t at = COFFER__MCF_HEADER_SIZE, size = coffer_source_size(src);
    size_t count = sums->range_count;
    coffer_status status = COFFER_OK;
    if (count > 0)
        qsort(sums->ranges, count, sizeof *sums->ranges, by_offset);
    for (size_t i = 0; !status && i <= count; i++) {
        uint64_t end = i < count ? sums->ranges[i].offset : size;
        bool zero = true;
        if (at < end)
            status = is_zero(&zero, src, at, end, err);
        if (!status && !zero)
            status = coffer__mcf_sums_add(sums, at, end - at, err);
        if (i < count)
            at = sums->ranges[i].offset + sums->ranges[i].size;
    }
    return status;
}

static coffer_status new_ranges(coffer__mcf_sums *sums, const coffer_mcf_editor *editor, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < editor->payloads.range_count; i++)
        status = coffer__mcf_sums_add(sums, editor->payloads.ranges[i].offset,
                                      editor->payloads.ranges[i].size, err);
    for (size_t i = 0; !status && i < editor->model->section_count; i++) {
        const coffer_mcf_section *section = &editor->model->sections[i];
        if (section->type != COFFER_MCF_TENSOR_DATA)
            status = coffer__mcf_sums_add(sums, section->offset, section->size, err);
    }
    if (!status)
        status = add_gaps(sums, editor, err);
    /* The edit overwrites the copy of the directory, and adds its range. */
    const coffer_mcf_section *copy = coffer_mcf_find_section(editor->model, COFFER_MCF_DIRECTORY_COPY);
    for (size_t i = 0; !status && copy && i < sums->range_count; i++) {
        if (sums->ranges[i].offset == copy->offset)
            sums->ranges[i] = sums->ranges[--sums->range_count];
    }
    return status;
}

/* The parts that the edit overwrites are left out: the header and the copy of the directory. */
static coffer_status old_ranges(coffer__mcf_sums *sums, const coffer_mcf_editor *editor,
                                const coffer__mcf_sums *old, coffer_error *err)
{
    const coffer_mcf_section *copy = coffer_mcf_find_section(editor->model, COFFER_MCF_DIRECTORY_COPY);
    const coffer_mcf_section *own = coffer_mcf_find_section(editor->model, COFFER_MCF_CHECKSUMS);
    coffer_status status = coffer__mcf_sums_add(sums, own->offset, own->size, err);
    for (size_t i = 0; !status && i < old->range_count; i++) {
        const coffer__mcf_range *range = &old->ranges[i];
        if (range->offset == 0 || (copy && range->offset == copy->offset))
            continue;
        status = coffer__mcf_sums_add(sums, range->offset, range->size, err);
    }
    return status;
}

/* *usable : the file has a table of this version that is not stale. */
static coffer_status load_old(coffer__mcf_sums *out, bool *usable, const coffer_mcf_editor *editor,
                              coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, COFFER_MCF_CHECKSUMS);
    coffer_source *src = coffer__update_source(editor->update);
    coffer_error cause = COFFER_ERROR_INIT;
    *usable = false;
    if (!section)
        return COFFER_OK;
    coffer_status status = coffer__mcf_sums_load(out, src, section, &editor->limits, &cause);
    if (status == COFFER_E_UNSUPPORTED_VERSION)
        return COFFER_OK;
    if (status)
        return coffer__fail_copy(err, &cause);
    *usable =
        out->version == COFFER__MCF_SUMS_VERSION &&
        !coffer__mcf_sums_stale(out, &editor->model->header, coffer_source_size(src), section->offset, NULL);
    return COFFER_OK;
}

coffer_status coffer__mcf_edit_sums_begin(coffer__mcf_sums *out, bool *wanted,
                                          const coffer_mcf_editor *editor, coffer_error *err)
{
    const coffer__mcf_change *removed = coffer__mcf_find_change(editor, COFFER_MCF_CHECKSUMS);
    coffer__mcf_sums old = { 0 };
    coffer_status status = COFFER_OK;
    *wanted = editor->recompute;
    if (editor->recompute)
        return new_ranges(out, editor, err);
    if (!removed)
        status = load_old(&old, wanted, editor, err);
    if (!status && *wanted)
        status = old_ranges(out, editor, &old, err);
    coffer__mcf_sums_free(&old);
    return status;
}

/* Copies the sums of the ranges that another table has too. */
static void take_known(coffer__mcf_sums *sums, bool *unknown, const coffer__mcf_sums *known)
{
    for (size_t i = 0; i < known->range_count; i++) {
        const coffer__mcf_range *from = &known->ranges[i];
        const coffer__mcf_range *range = coffer__mcf_sums_find(sums, from->offset);
        if (!range || range->offset != from->offset || range->size != from->size)
            continue;
        for (size_t j = 0; j < coffer__chunk_count(range->size); j++) {
            sums->sums[range->first_sum + j] = known->sums[from->first_sum + j];
            unknown[range->first_sum + j] = false;
        }
    }
}

static void sum_memory(coffer__mcf_sums *sums, bool *unknown, const coffer__mcf_written *part)
{
    const coffer__mcf_range *range = part->len ? coffer__mcf_sums_find(sums, part->offset) : NULL;
    for (size_t i = 0; range && i < coffer__chunk_count(range->size); i++) {
        size_t len = coffer__chunk_len(range->size, i);
        sums->sums[range->first_sum + i] = coffer__crc32(0, part->bytes + i * COFFER__MCF_CHUNK, len);
        unknown[range->first_sum + i] = false;
    }
}

coffer_status coffer__mcf_edit_sums_fill(coffer__mcf_sums *sums, const coffer_mcf_editor *editor,
                                         const coffer__mcf_written *written, size_t count, coffer_error *err)
{
    bool usable = false;
    coffer__mcf_sums old = { 0 };
    bool *unknown = coffer__malloc(sums->sum_count * sizeof *unknown);
    coffer_status status = unknown ? COFFER_OK : coffer__fail_no_memory(err, sums->sum_count);
    if (!status && !editor->recompute)
        status = load_old(&old, &usable, editor, err);
    if (!status) {
        memset(unknown, true, sums->sum_count);
        take_known(sums, unknown, editor->recompute ? &editor->payloads : &old);
        for (size_t i = 0; i < count; i++)
            sum_memory(sums, unknown, &written[i]);
        status = coffer__mcf_sums_compute(sums, unknown, coffer__update_source(editor->update), NULL, err);
    }
    coffer__mcf_sums_free(&old);
    coffer__free(unknown);
    return status;
}
