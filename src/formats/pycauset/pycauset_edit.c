/* Commits: append the new block, sync, write the inactive slot, sync. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sticky.h"
#include "io/file.h"
#include "io/lock.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

struct coffer_pycauset_editor {
    int fd; /* holds the lock */
    char *path;
    coffer_durability durability;
    coffer_limits limits;
    uint64_t size; /* of the file, as we left it */
    coffer__pycauset_header header;
    uint8_t inactive[COFFER__PYCAUSET_SLOT_SIZE]; /* as stored in the file */
    coffer_pycauset_info info;
    coffer__pycauset_tree metadata;
    coffer__buffer block;   /* reused from commit to commit */
    coffer__sticky failure; /* of a write or sync */
};

COFFER__INIT_FUNCTION(coffer_pycauset_editor_opts, COFFER_PYCAUSET_EDITOR_OPTS_INIT)

/* ---- Opening ---- */

static coffer_status load(coffer_pycauset_editor *editor, coffer_source *src, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.limits = &editor->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &opts, err);
    if (status)
        return status;
    editor->header = matrix->header;
    editor->info = matrix->info;
    editor->metadata = matrix->metadata;
    matrix->metadata = (coffer__pycauset_tree){ .root = NULL };
    coffer_pycauset_close(matrix);
    return coffer_source_read_at(editor->inactive, src,
                                 coffer__pycauset_slot_place(1 - editor->header.active),
                                 sizeof editor->inactive, err);
}

static coffer_status open_locked(coffer_pycauset_editor *editor, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer__lock_open(&editor->fd, editor->path, err);
    if (!status)
        status = coffer__file_size(&editor->size, editor->fd, NULL, err);
    if (!status)
        status = coffer__source_over_fd(&src, editor->fd, false, editor->size, editor->path, NULL, err);
    if (status)
        return status;
    status = load(editor, src, err);
    coffer_source_close(src);
    return status;
}

coffer_status coffer_pycauset_editor_open(coffer_pycauset_editor **out, const char *path,
                                          const coffer_pycauset_editor_opts *opts, coffer_error *err)
{
    coffer_pycauset_editor_opts options = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_pycauset_editor *editor = coffer__calloc(1, sizeof *editor);
    if (!editor)
        return coffer__fail_no_memory(err, sizeof *editor);
    editor->fd = -1;
    editor->durability = options.durability;
    editor->limits = coffer__limits(options.limits);
    coffer__buffer_init(&editor->block, SIZE_MAX);
    status = coffer__file_resolve(&editor->path, path, err);
    if (!status)
        status = open_locked(editor, err);
    if (status) {
        coffer_pycauset_editor_close(editor);
        return status;
    }
    *out = editor;
    return COFFER_OK;
}

void coffer_pycauset_editor_close(coffer_pycauset_editor *editor)
{
    if (!editor)
        return;
    coffer__file_close(editor->fd);
    coffer__buffer_free(&editor->block);
    coffer__pycauset_tree_free(&editor->metadata);
    coffer__free(editor->path);
    coffer__free(editor);
}

const coffer_pycauset_value *coffer_pycauset_editor_metadata(const coffer_pycauset_editor *editor)
{
    return editor->metadata.root;
}

/* ---- The new block ---- */

static coffer_status sum_payload(coffer__buffer *sums, const coffer_pycauset_editor *editor,
                                 coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status =
        coffer__source_over_fd(&src, editor->fd, false, editor->size, editor->path, NULL, err);
    if (status)
        return status;
    status = coffer__pycauset_sum_payload(sums, src, &editor->info, err);
    coffer_source_close(src);
    return status;
}

/* Fills editor->block with zeros up to where the block begins, and the block. */
static coffer_status encode(coffer_pycauset_editor *editor, const coffer_pycauset_value *root,
                            uint64_t *place, coffer_error *err)
{
    if (!coffer__align_up(place, editor->size, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
        return coffer__fail(err, COFFER_E_LIMIT, editor->size, "%s cannot grow", editor->path);
    editor->block.len = 0;
    editor->block.failed = false;
    coffer__buffer_fill(&editor->block, 0, (size_t)(*place - editor->size));
    coffer_status status = coffer__pycauset_encode_block(&editor->block, root, err);
    if (!status && editor->block.len > editor->limits.json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, *place, "metadata of %zu bytes, the limit is %" PRIu64,
                            editor->block.len, editor->limits.json_bytes);
    return status;
}

/* The new state: its block in editor->block, and what a reader will make of it. */
static coffer_status compose(coffer__pycauset_tree *tree, coffer_pycauset_info *info, uint64_t *place,
                             coffer_pycauset_editor *editor, const coffer_pycauset_changes *changes,
                             coffer_error *err)
{
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer__buffer sums = COFFER__BUFFER_INIT;
    const coffer_pycauset_value *root = NULL;
    coffer_status status = COFFER_OK;
    if (coffer__pycauset_wants_checksums(changes))
        status = sum_payload(&sums, editor, err);
    if (!status)
        status = coffer__pycauset_apply(&root, &memory, editor->metadata.root, changes, &sums, err);
    if (!status)
        status = encode(editor, root, place, err);
    if (status)
        goto out;
    *info = editor->info;
    /* Nothing else that a change may touch says what the payload is. */
    if (coffer__pycauset_touches(changes, "view"))
        status = coffer__pycauset_interpret(info, root, *place, err);
    if (!status)
        status = coffer__pycauset_copy(tree, root, &editor->limits, err);
out:
    coffer__buffer_free(&sums);
    coffer__arena_free(&memory);
    return status;
}

/* ---- Writing it ---- */

static coffer_status sync_data(const coffer_pycauset_editor *editor, bool wanted, coffer_error *err)
{
    return wanted ? coffer__file_sync_data(editor->fd, NULL, err) : COFFER_OK;
}

static coffer_status append_block(const coffer_pycauset_editor *editor, coffer_error *err)
{
    coffer_status status =
        coffer__file_write_at(editor->fd, editor->block.data, editor->block.len, editor->size, NULL, err);
    if (!status)
        status = sync_data(editor, editor->durability != COFFER_DURABILITY_NONE, err);
    if (status) /* no slot names it: nothing is lost, and nothing is left where that can be had */
        coffer__file_truncate(editor->fd, editor->size, NULL, NULL);
    return status;
}

static coffer_status flip(coffer_pycauset_editor *editor, const coffer__pycauset_slot *slot,
                          coffer_error *err)
{
    uint8_t bytes[COFFER__PYCAUSET_SLOT_SIZE];
    uint64_t place = coffer__pycauset_slot_place(1 - editor->header.active);
    coffer__pycauset_store_slot(bytes, slot);
    coffer_status status = coffer__file_write_at(editor->fd, bytes, sizeof bytes, place, NULL, err);
    if (status) {
        if (coffer__file_write_at(editor->fd, editor->inactive, sizeof editor->inactive, place, NULL, NULL) ==
            COFFER_OK)
            coffer__file_truncate(editor->fd, editor->size, NULL, NULL);
        return status;
    }
    return sync_data(editor, editor->durability == COFFER_DURABILITY_FULL, err);
}

/* The lock holds off those who ask for it; this finds those who do not. */
static coffer_status expect_untouched(const coffer_pycauset_editor *editor, coffer_error *err)
{
    uint64_t size = 0;
    coffer_status status = coffer__lock_check(&size, editor->fd, editor->path, err);
    if (status)
        return status;
    if (size != editor->size)
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "%s changed from %" PRIu64 " to %" PRIu64
                            " bytes: a program wrote to it without taking the lock",
                            editor->path, editor->size, size);
    return COFFER_OK;
}

static coffer_status write_state(coffer_pycauset_editor *editor, const coffer__pycauset_slot *slot,
                                 coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = append_block(editor, &why);
    if (!status)
        status = flip(editor, slot, &why);
    return coffer__sticky_keep(&editor->failure, status, &why, err);
}

static void take_over(coffer_pycauset_editor *editor, const coffer__pycauset_slot *slot,
                      const coffer_pycauset_info *info, const coffer__pycauset_tree *tree)
{
    int was_active = editor->header.active;
    editor->header.slots[1 - was_active] = *slot;
    editor->header.active = 1 - was_active;
    coffer__pycauset_store_slot(editor->inactive, &editor->header.slots[was_active]);
    editor->size += editor->block.len;
    editor->info = *info;
    editor->info.generation = slot->generation;
    editor->info.active_slot = "AB"[editor->header.active];
    coffer__pycauset_tree_free(&editor->metadata);
    editor->metadata = *tree;
}

coffer_status coffer_pycauset_editor_commit(uint64_t *generation, coffer_pycauset_editor *editor,
                                            const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer__pycauset_slot slot = editor->header.slots[editor->header.active];
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_pycauset_info info;
    coffer_status status = coffer__sticky_check(&editor->failure, err);
    if (status)
        return status;
    if (slot.generation == UINT64_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%s has no generation left",
                            editor->path);
    status = expect_untouched(editor, err);
    if (!status)
        status = compose(&tree, &info, &slot.metadata_offset, editor, changes, err);
    if (status)
        goto out;
    slot.generation++;
    slot.metadata_length = editor->size + editor->block.len - slot.metadata_offset;
    status = write_state(editor, &slot, err);
    if (status)
        goto out;
    take_over(editor, &slot, &info, &tree);
    if (generation)
        *generation = slot.generation;
    return COFFER_OK;
out:
    coffer__pycauset_tree_free(&tree);
    return status;
}
