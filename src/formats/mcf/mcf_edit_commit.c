/* Commits an edit: appends new sections and a new directory, then switches the header to it, all under the
 * rollback journal. Payloads never move. */
#include "formats/mcf/mcf_edit.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdlib.h>

/* ---- Changes that follow from others ---- */

/* Drops changes that equal the existing content. */
static coffer_status drop_equal(coffer_mcf_editor *editor, coffer_error *err)
{
    for (size_t i = 0; i < editor->count;) {
        coffer__mcf_change *edit = &editor->changes[i];
        const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, edit->type);
        uint8_t *old = NULL;
        size_t len = 0;
        bool equal = edit->removed && !section;
        if (!edit->removed && section && section->size == edit->len) {
            coffer_status status = coffer__mcf_load_section(&old, &len, coffer__update_source(editor->update),
                                                            section, UINT64_MAX, err);
            if (status)
                return status;
            equal = memcmp(old, edit->bytes, len) == 0;
            coffer__free(old);
        }
        if (equal) {
            coffer__free(edit->bytes);
            *edit = editor->changes[--editor->count];
        } else {
            i++;
        }
    }
    return COFFER_OK;
}

/* A section that is replaced is no longer damaged. */
static coffer_status forget_damage(coffer_mcf_editor *editor, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, COFFER_MCF_DAMAGE);
    coffer__mcf_damages damages = { 0 };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer__mcf_change change = { .type = COFFER_MCF_DAMAGE, .version = COFFER__MCF_SECTION_VERSION };
    size_t kept = 0, count;
    if (!section || coffer__mcf_find_change(editor, COFFER_MCF_DAMAGE))
        return COFFER_OK;
    coffer_status status = coffer__mcf_damages_load(&damages, coffer__update_source(editor->update), section,
                                                    &editor->limits, err);
    if (status)
        return status;
    count = damages.count;
    for (size_t i = 0; i < count; i++) {
        uint32_t type = damages.items[i].section;
        if (!type || !coffer__mcf_find_change(editor, type))
            damages.items[kept++] = damages.items[i];
    }
    change.removed = kept == 0;
    if (kept < count && kept > 0)
        status = coffer__mcf_damages_encode(&bytes, damages.items, kept, err);
    if (!status && kept < count) {
        change.bytes = coffer__buffer_release(&bytes, &change.len);
        status = coffer__mcf_put_change(editor, change, err);
    }
    coffer__buffer_free(&bytes);
    coffer__mcf_damages_free(&damages);
    return status;
}

/* ---- The plan ---- */

typedef struct planned {
    coffer_mcf_section section;
    size_t place; /* in the old directory: of two of one type the first counts */
} planned;

typedef struct commit {
    coffer_mcf_editor *editor;
    coffer__mcf_header header;
    planned *plan;
    coffer_mcf_section *sections; /* of the plan */
    size_t count;
    uint64_t end;
    bool has_copy, has_sums;
    coffer_mcf_section copy, old_copy; /* the same place when the old one has room */
    coffer_mcf_section table;
    coffer__mcf_sums sums;
    uint8_t front[COFFER__MCF_HEADER_SIZE];
    uint8_t *directory, *copy_bytes, *no_copy; /* no_copy : zeros for an old copy that is given up */
    coffer__buffer table_bytes;
} commit;

static int by_type(const void *a, const void *b)
{
    const planned *x = a, *y = b;
    if (x->section.type != y->section.type)
        return x->section.type < y->section.type ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_change_type(const void *a, const void *b)
{
    uint32_t x = ((const coffer__mcf_change *)a)->type, y = ((const coffer__mcf_change *)b)->type;
    return (x > y) - (x < y);
}

static uint64_t aligned(uint64_t offset)
{
    return offset + (0 - offset) % COFFER__MCF_SECTION_ALIGNMENT;
}

static void plan_section(commit *work, coffer_mcf_section section, size_t place)
{
    work->plan[work->count++] = (planned){ section, place };
}

/* Unchanged sections stay, and new ones follow the end. All sections of a changed type are dropped. */
static void plan_changes(commit *work)
{
    const coffer_mcf_editor *editor = work->editor;
    for (size_t i = 0; i < editor->model->section_count; i++) {
        const coffer_mcf_section *section = &editor->model->sections[i];
        bool rewritten = (work->has_sums && section->type == COFFER_MCF_CHECKSUMS) ||
                         section->type == COFFER_MCF_DIRECTORY_COPY;
        if (!rewritten && !coffer__mcf_find_change(editor, section->type))
            plan_section(work, *section, i);
    }
    for (size_t i = 0; i < editor->count; i++) {
        const coffer__mcf_change *edit = &editor->changes[i];
        if (edit->removed)
            continue;
        work->end = aligned(work->end);
        plan_section(work, (coffer_mcf_section){ edit->type, edit->version, work->end, edit->len }, 0);
        work->end += edit->len;
    }
}

static void plan_copy(commit *work)
{
    const coffer_mcf_section *old = coffer_mcf_find_section(work->editor->model, COFFER_MCF_DIRECTORY_COPY);
    uint64_t needed = COFFER__MCF_COPY_ENTRIES_AT +
                      ((uint64_t)work->count + 1 + work->has_sums) * COFFER__MCF_DIRECTORY_ENTRY;
    if (old)
        work->old_copy = *old;
    work->has_copy = old || work->has_sums;
    if (!work->has_copy)
        return;
    work->copy = work->old_copy;
    if (!old || old->size < needed) {
        work->end = aligned(work->end);
        work->copy =
            (coffer_mcf_section){ COFFER_MCF_DIRECTORY_COPY, COFFER__MCF_SECTION_VERSION, work->end, needed };
        work->end += needed;
    }
    plan_section(work, work->copy, 0);
}

/* The ranges that the edit writes. */
static coffer_status add_new_ranges(commit *work, uint64_t old_end, uint64_t directory_len, coffer_error *err)
{
    coffer_status status = coffer__mcf_sums_add(&work->sums, 0, COFFER__MCF_HEADER_SIZE, err);
    for (size_t i = 0; !status && i < work->count; i++) {
        const coffer_mcf_section *section = &work->plan[i].section;
        if (section->offset >= old_end && section->type != COFFER_MCF_CHECKSUMS)
            status = coffer__mcf_sums_add(&work->sums, section->offset, section->size, err);
    }
    if (!status && work->copy.offset < old_end)
        status = coffer__mcf_sums_add(&work->sums, work->copy.offset, work->copy.size, err);
    /* The directory's place is not known yet, but it is after everything else. */
    return status ? status
                  : coffer__mcf_sums_add(&work->sums, UINT64_MAX - directory_len, directory_len, err);
}

static coffer_status plan_table(commit *work, uint64_t old_end, coffer_error *err)
{
    uint64_t directory_len = ((uint64_t)work->count + 1) * COFFER__MCF_DIRECTORY_ENTRY;
    coffer_status status = add_new_ranges(work, old_end, directory_len, err);
    if (!status)
        status = coffer__mcf_sums_plan(&work->sums, err);
    if (status)
        return status;
    work->end = aligned(work->end);
    work->table = (coffer_mcf_section){ COFFER_MCF_CHECKSUMS, COFFER__MCF_SUMS_VERSION, work->end,
                                        coffer__mcf_sums_size(&work->sums) };
    work->end += work->table.size;
    plan_section(work, work->table, 0);
    work->sums.ranges[work->sums.range_count - 1].offset = aligned(work->end);
    work->sums.place = work->table.offset;
    work->sums.file_size = aligned(work->end) + directory_len;
    return COFFER_OK;
}

static coffer_status make_plan(commit *work, coffer_error *err)
{
    const coffer_mcf_editor *editor = work->editor;
    uint64_t old_end = coffer_source_size(coffer__update_source(editor->update));
    size_t room = editor->model->section_count + editor->count + 2;
    coffer_status status = coffer__mcf_edit_sums_begin(&work->sums, &work->has_sums, editor, err);
    if (status)
        return status;
    work->plan = coffer__alloc_array(room, sizeof *work->plan);
    work->sections = coffer__alloc_array(room, sizeof *work->sections);
    work->directory = coffer__alloc_array(room, COFFER__MCF_DIRECTORY_ENTRY);
    if (!work->plan || !work->sections || !work->directory)
        return coffer__fail_no_memory(err, room * sizeof *work->plan);
    work->end = old_end;
    plan_changes(work);
    if (work->count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the last section cannot be removed");
    plan_copy(work);
    return work->has_sums ? plan_table(work, old_end, err) : COFFER_OK;
}

/* ---- The bytes ---- */

static coffer_status compose(commit *work, coffer_error *err)
{
    qsort(work->plan, work->count, sizeof *work->plan, by_type);
    for (size_t i = 0; i < work->count; i++)
        work->sections[i] = work->plan[i].section;
    coffer__mcf_store_directory(work->directory, work->sections, work->count);
    work->header.section_count = (uint32_t)work->count;
    work->header.directory = aligned(work->end);
    work->header.file_size = work->header.directory + work->count * COFFER__MCF_DIRECTORY_ENTRY;
    coffer__mcf_store_header(work->front, &work->header);
    if (!work->has_copy)
        return COFFER_OK;
    work->copy_bytes = coffer__malloc((size_t)work->copy.size);
    work->no_copy = coffer__calloc(1, work->old_copy.size ? (size_t)work->old_copy.size : 1);
    if (!work->copy_bytes || !work->no_copy)
        return coffer__fail_no_memory(err, work->copy.size);
    coffer__mcf_copy_store(work->copy_bytes, (size_t)work->copy.size, &work->header, work->sections);
    return COFFER_OK;
}

static coffer_status compose_table(commit *work, coffer_error *err)
{
    const coffer_mcf_editor *editor = work->editor;
    coffer__mcf_written *parts = coffer__alloc_array(editor->count + 3, sizeof *parts);
    size_t count = 0;
    if (!parts)
        return coffer__fail_no_memory(err, (editor->count + 3) * sizeof *parts);
    parts[count++] = (coffer__mcf_written){ 0, work->front, sizeof work->front };
    parts[count++] = (coffer__mcf_written){ work->header.directory, work->directory,
                                            work->count * COFFER__MCF_DIRECTORY_ENTRY };
    parts[count++] = (coffer__mcf_written){ work->copy.offset, work->copy_bytes, (size_t)work->copy.size };
    for (size_t i = 0; i < editor->count; i++) {
        const coffer__mcf_change *edit = &editor->changes[i];
        const coffer_mcf_section *section =
            coffer__mcf_first_section(work->sections, work->count, edit->type);
        if (!edit->removed && section)
            parts[count++] = (coffer__mcf_written){ section->offset, edit->bytes, edit->len };
    }
    coffer_status status = coffer__mcf_edit_sums_fill(&work->sums, editor, parts, count, err);
    if (!status)
        status = coffer__mcf_sums_encode(&work->table_bytes, &work->sums, err);
    coffer__free(parts);
    return status;
}

/* ---- Writing ---- */

static coffer_status append_aligned(coffer_mcf_editor *editor, uint64_t *at, const uint8_t *bytes, size_t len,
                                    coffer_error *err)
{
    static const uint8_t zeros[COFFER__MCF_SECTION_ALIGNMENT] = { 0 };
    coffer_status status = coffer__update_append(editor->update, zeros, (size_t)(aligned(*at) - *at), err);
    if (!status)
        status = coffer__update_append(editor->update, bytes, len, err);
    *at = aligned(*at) + len;
    return status;
}

/* In the order of the plan. */
static coffer_status append_all(const commit *work, uint64_t at, coffer_error *err)
{
    coffer_mcf_editor *editor = work->editor;
    uint64_t old_end = at;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < editor->count; i++) {
        if (!editor->changes[i].removed)
            status = append_aligned(editor, &at, editor->changes[i].bytes, editor->changes[i].len, err);
    }
    if (!status && work->has_copy && work->copy.offset >= old_end)
        status = append_aligned(editor, &at, work->copy_bytes, (size_t)work->copy.size, err);
    if (!status && work->has_sums)
        status = append_aligned(editor, &at, work->table_bytes.data, work->table_bytes.len, err);
    if (!status)
        status = append_aligned(editor, &at, work->directory, work->count * COFFER__MCF_DIRECTORY_ENTRY, err);
    return status;
}

static coffer_status write_changes(const commit *work, coffer_error *err)
{
    coffer_mcf_editor *editor = work->editor;
    coffer__range ranges[2] = { { COFFER__MCF_SECTION_COUNT_AT,
                                  COFFER__MCF_FLAGS_AT - COFFER__MCF_SECTION_COUNT_AT },
                                { work->old_copy.offset, work->old_copy.size } };
    bool patches = work->old_copy.size > 0;
    coffer_status status = coffer__update_begin(editor->update, ranges, patches ? 2 : 1, err);
    if (!status)
        status = append_all(work, coffer_source_size(coffer__update_source(editor->update)), err);
    if (!status)
        status = coffer__update_overwrite(editor->update, ranges[0].offset, work->front + ranges[0].offset,
                                          (size_t)ranges[0].length, err);
    if (!status && patches)
        status = coffer__update_overwrite(editor->update, ranges[1].offset,
                                          work->copy.offset == work->old_copy.offset ? work->copy_bytes
                                                                                     : work->no_copy,
                                          (size_t)ranges[1].length, err);
    return status ? status : coffer__update_commit(editor->update, err);
}

coffer_status coffer_mcf_editor_commit(coffer_mcf_editor *editor, coffer_error *err)
{
    commit work = { .editor = editor, .header = editor->model->header, .table_bytes = COFFER__BUFFER_INIT };
    coffer_status status = drop_equal(editor, err);
    if (status || editor->committed || (editor->count == 0 && !editor->recompute))
        return status;
    status = forget_damage(editor, err);
    if (editor->count > 1)
        qsort(editor->changes, editor->count, sizeof *editor->changes, by_change_type);
    if (!status)
        status = make_plan(&work, err);
    if (!status)
        status = compose(&work, err);
    if (!status && work.has_sums)
        status = compose_table(&work, err);
    if (!status)
        status = write_changes(&work, err);
    editor->committed = !status;
    coffer__free(work.plan);
    coffer__free(work.sections);
    coffer__free(work.directory);
    coffer__free(work.copy_bytes);
    coffer__free(work.no_copy);
    coffer__buffer_free(&work.table_bytes);
    coffer__mcf_sums_free(&work.sums);
    return status;
}
