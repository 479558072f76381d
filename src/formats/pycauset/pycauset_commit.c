/* Commits: append the new block, sync, write the inactive slot, sync. A commit that changes elements also
 * overwrites bytes of the payload, under a rollback journal. Commits of several threads share the two syncs:
 * one thread appends the blocks of all that wait, and the slot names the last. */
#include "formats/pycauset/pycauset_editor.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/journal.h"

#include <inttypes.h>
#include <string.h>

/* Blocks that are written together have at most this many bytes, and the last one. */
#define MAX_GROUP_BYTES ((size_t)1 << 20)

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

/* A change of the payload cannot be undone by the other slot: the journal has the old bytes. */
static coffer_status write_journaled(coffer_pycauset_editor *editor, const coffer__pycauset_slot *slot,
                                     const coffer__pycauset_patches *patches, const char *journal_path,
                                     coffer_error *err)
{
    uint64_t payload = slot->payload_offset;
    coffer__range *ranges = coffer__alloc_array(patches->count + 1, sizeof *ranges);
    if (!ranges)
        return coffer__fail_no_memory(err, (patches->count + 1) * sizeof *ranges);
    ranges[0] =
        (coffer__range){ coffer__pycauset_slot_place(1 - editor->header.active), COFFER__PYCAUSET_SLOT_SIZE };
    for (size_t i = 0; i < patches->count; i++)
        ranges[i + 1] = (coffer__range){ payload + patches->items[i].offset, patches->items[i].size };
    coffer_status status =
        coffer__journal_write(journal_path, editor->fd, editor->size, ranges, patches->count + 1, err);
    coffer__free(ranges);
    for (size_t i = 0; !status && i < patches->count; i++)
        status = coffer__file_write_at(editor->fd, patches->items[i].after, patches->items[i].size,
                                       payload + patches->items[i].offset, NULL, err);
    if (!status)
        status = append_block(editor, err);
    if (!status)
        status = flip(editor, slot, err);
    if (!status && editor->durability != COFFER_DURABILITY_FULL)
        status = coffer__file_sync_data(editor->fd, NULL, err);
    if (!status)
        status = coffer__file_unlink(journal_path, err);
    if (status) {
        coffer__journal_roll_back(NULL, editor->fd, editor->path, NULL);
        return status;
    }
    return coffer__file_sync_folder(journal_path, err);
}

static coffer_status write_state(coffer_pycauset_editor *editor, const coffer__pycauset_slot *slot,
                                 const coffer__pycauset_patches *patches, coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status;
    if (patches && patches->count > 0) {
        char *journal_path = coffer__journal_path(editor->path);
        status = journal_path ? write_journaled(editor, slot, patches, journal_path, &why)
                              : coffer__fail_no_memory(&why, strlen(editor->path));
        coffer__free(journal_path);
    } else {
        status = append_block(editor, &why);
        if (!status)
            status = flip(editor, slot, &why);
    }
    return coffer__sticky_keep(&editor->failure, status, &why, err);
}

coffer_status coffer__pycauset_editor_ready(const coffer_pycauset_editor *editor, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&editor->failure, err);
    return status ? status : expect_untouched(editor, err);
}

/* ---- States in memory that are not written yet ---- */

/* The state of the file, while the editor is ahead of it. */
typedef struct written_state {
    coffer__pycauset_header header;
    coffer_pycauset_info info;
    coffer__pycauset_tree metadata;
} written_state;

static void begin_states(written_state *written, coffer_pycauset_editor *editor)
{
    *written = (written_state){ editor->header, editor->info, editor->metadata };
    editor->block.len = 0;
    editor->block.failed = false;
}

/* Appends zeros up to where the block begins, and the block. */
static coffer_status encode(coffer_pycauset_editor *editor, const coffer_pycauset_value *root,
                            uint64_t *place, coffer_error *err)
{
    size_t before = editor->block.len;
    uint64_t end = editor->size + before;
    if (!coffer__align_up(place, end, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
        return coffer__fail(err, COFFER_E_LIMIT, end, "%s cannot grow", editor->path);
    coffer__buffer_fill(&editor->block, 0, (size_t)(*place - end));
    coffer_status status = coffer__pycauset_encode_block(&editor->block, root, err);
    if (!status && editor->block.len - before > editor->limits.json_bytes)
        status = coffer__fail(err, COFFER_E_LIMIT, *place, "metadata of %zu bytes, the limit is %" PRIu64,
                              editor->block.len - before, editor->limits.json_bytes);
    return status;
}

/* The editor's state becomes the next one; its block is added to those that are to be written. */
static coffer_status add_state(coffer_pycauset_editor *editor, const written_state *written,
                               const coffer__pycauset_next *next, coffer_error *err)
{
    coffer__pycauset_slot *active = &editor->header.slots[editor->header.active], slot = *active;
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_pycauset_info info = editor->info;
    size_t before = editor->block.len;
    if (slot.generation == UINT64_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%s has no generation left",
                            editor->path);
    coffer_status status = encode(editor, next->root, &slot.metadata_offset, err);
    if (!status)
        status = coffer__pycauset_interpret(&info, next->root, slot.metadata_offset, err);
    if (!status)
        status = coffer__pycauset_copy(&tree, next->root, &editor->limits, err);
    if (status) {
        editor->block.len = before;
        editor->block.failed = false;
        return status;
    }
    slot.generation++;
    slot.metadata_length = editor->size + editor->block.len - slot.metadata_offset;
    *active = slot;
    if (editor->metadata.root != written->metadata.root)
        coffer__pycauset_tree_free(&editor->metadata);
    editor->metadata = tree;
    editor->info = info;
    editor->info.generation = slot.generation;
    return COFFER_OK;
}

/* Writes the states that were added; on failure the editor is where the file is. patches : may be NULL. */
static coffer_status write_states(coffer_pycauset_editor *editor, written_state *written,
                                  const coffer__pycauset_patches *patches, coffer_error *err)
{
    int was_active = written->header.active;
    coffer__pycauset_slot slot = editor->header.slots[was_active];
    editor->header = written->header;
    coffer_status status = write_state(editor, &slot, patches, err);
    coffer__pycauset_tree_free(status ? &editor->metadata : &written->metadata);
    if (status) {
        editor->info = written->info;
        editor->metadata = written->metadata;
        return status;
    }
    editor->header.slots[1 - was_active] = slot;
    editor->header.active = 1 - was_active;
    coffer__pycauset_store_slot(editor->inactive, &editor->header.slots[was_active]);
    editor->size += editor->block.len;
    editor->info.active_slot = "AB"[editor->header.active];
    return COFFER_OK;
}

coffer_status coffer__pycauset_editor_write(uint64_t *generation, coffer_pycauset_editor *editor,
                                            coffer__pycauset_next *next, coffer_error *err)
{
    written_state written;
    begin_states(&written, editor);
    coffer_status status = add_state(editor, &written, next, err);
    if (!status)
        status = write_states(editor, &written, &next->patches, err);
    if (!status && generation)
        *generation = editor->info.generation;
    return status;
}

/* ---- Commits that wait for each other ---- */

/* The call of one thread, on its stack. */
struct coffer__pycauset_request {
    const coffer_pycauset_changes *changes;
    uint64_t generation;
    coffer_status status;
    coffer_error err;
    bool is_done;
    coffer__pycauset_request *next;
};

static void commit_alone(coffer_pycauset_editor *editor, coffer__pycauset_request *request)
{
    coffer__pycauset_next next = { .memory = COFFER__ARENA_INIT, .sums = COFFER__BUFFER_INIT };
    request->status = coffer__pycauset_editor_ready(editor, &request->err);
    if (!request->status)
        request->status = coffer__pycauset_editor_compose(&next, editor, request->changes, &request->err);
    if (!request->status)
        request->status = coffer__pycauset_editor_write(&request->generation, editor, &next, &request->err);
    coffer__pycauset_next_free(&next);
}

static void add_request(coffer_pycauset_editor *editor, const written_state *written,
                        coffer__pycauset_request *request)
{
    coffer__pycauset_next next = { .memory = COFFER__ARENA_INIT, .sums = COFFER__BUFFER_INIT };
    request->status = coffer__pycauset_editor_compose(&next, editor, request->changes, &request->err);
    if (!request->status)
        request->status = add_state(editor, written, &next, &request->err);
    request->generation = editor->info.generation;
    coffer__pycauset_next_free(&next);
}

/* Commits as many requests as one write can have; returns those that are left. */
static coffer__pycauset_request *commit_group(coffer_pycauset_editor *editor, coffer__pycauset_request *first)
{
    coffer__pycauset_request *end = first;
    written_state written;
    coffer_error err = COFFER_ERROR_INIT;
    if (!first->next || coffer__pycauset_needs_payload(first->changes)) {
        commit_alone(editor, first);
        return first->next;
    }
    begin_states(&written, editor);
    coffer_status status = coffer__pycauset_editor_ready(editor, &err);
    for (; end && !coffer__pycauset_needs_payload(end->changes) && editor->block.len <= MAX_GROUP_BYTES;
         end = end->next) {
        if (!status)
            add_request(editor, &written, end);
    }
    if (!status && editor->block.len > 0)
        status = write_states(editor, &written, NULL, &err);
    for (coffer__pycauset_request *request = first; status && request != end; request = request->next) {
        if (request->status)
            continue;
        request->status = status;
        request->err = err;
    }
    return end;
}

coffer_status coffer_pycauset_editor_commit(uint64_t *generation, coffer_pycauset_editor *editor,
                                            const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer__pycauset_request request = { .changes = changes, .err = COFFER_ERROR_INIT };
    pthread_mutex_lock(&editor->lock);
    coffer__pycauset_request **last = &editor->waiting;
    while (*last)
        last = &(*last)->next;
    *last = &request;
    while (!request.is_done && editor->is_writing)
        pthread_cond_wait(&editor->written, &editor->lock);
    if (!request.is_done) {
        coffer__pycauset_request *group = editor->waiting, *left = group;
        editor->waiting = NULL;
        editor->is_writing = true;
        pthread_mutex_unlock(&editor->lock);
        while (left)
            left = commit_group(editor, left);
        pthread_mutex_lock(&editor->lock);
        for (; group; group = left) {
            left = group->next; /* its thread may return as soon as it is done */
            group->is_done = true;
        }
        editor->is_writing = false;
        pthread_cond_broadcast(&editor->written);
    }
    pthread_mutex_unlock(&editor->lock);
    if (request.status)
        return coffer__fail_copy(err, &request.err);
    if (generation)
        *generation = request.generation;
    return COFFER_OK;
}
