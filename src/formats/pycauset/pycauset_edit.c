/* Commits: append the new block, sync, write the inactive slot, sync. A commit that changes elements also
 * overwrites bytes of the payload, under a rollback journal. */
#include "formats/pycauset/pycauset_editor.h"
#include "formats/pycauset/pycauset_scan.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/table.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

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

coffer_status coffer__pycauset_editor_source(coffer_source **out, const coffer_pycauset_editor *editor,
                                             coffer_error *err)
{
    return coffer__source_over_fd(out, editor->fd, false, editor->size, editor->path, NULL, err);
}

/* A crash while a block was appended leaves a part of it, which no slot names. It is removed, so that every
 * byte of the file belongs to something. An intact block stays, and so does everything next to a damaged
 * slot, which may have named it. */
static coffer_status drop_torn_tail(coffer_pycauset_editor *editor, coffer_source *src, coffer_error *err)
{
    coffer__pycauset_scan scan = { .items = NULL };
    const coffer__pycauset_slot *slots = editor->header.slots;
    uint64_t end = editor->info.payload_offset + editor->info.payload_needed;
    for (int i = 0; i < 2; i++) {
        if (slots[i].fault)
            return COFFER_OK;
        if (slots[i].metadata_offset + slots[i].metadata_length > end)
            end = slots[i].metadata_offset + slots[i].metadata_length;
    }
    if (end >= editor->size ||
        !coffer__pycauset_get_key(editor->metadata.root, COFFER__PYCAUSET_CHECKSUMS_KEY))
        return COFFER_OK;
    coffer_status status = coffer__pycauset_scan_range(&scan, src, end, UINT64_MAX, &editor->limits, err);
    bool empty = scan.count == 0;
    coffer__pycauset_scan_free(&scan);
    if (!status && empty)
        status = coffer__file_truncate(editor->fd, end, NULL, err);
    if (!status && empty)
        editor->size = end;
    return status;
}

static coffer_status open_locked(coffer_pycauset_editor *editor, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer__lock_open(&editor->fd, editor->path, err);
    if (!status)
        status = coffer__journal_roll_back(NULL, editor->fd, editor->path, err);
    if (!status)
        status = coffer__file_size(&editor->size, editor->fd, NULL, err);
    if (!status)
        status = coffer__pycauset_editor_source(&src, editor, err);
    if (status)
        return status;
    status = load(editor, src, err);
    /* The next commit would overwrite the damaged slot, and with it the only sign that something is lost. */
    if (!status && editor->info.newer_lost)
        status = coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                              "slot %c is damaged, and a newer state may be lost: repair the file first",
                              editor->info.damaged_slot);
    if (!status)
        status = drop_torn_tail(editor, src, err);
    coffer_source_close(src);
    return status;
}

static coffer_status copy_text(char **out, const char *text, coffer_error *err)
{
    if (!text)
        return COFFER_OK;
    size_t len = strlen(text);
    if (!coffer__utf8_valid(text, len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "\"%s\" is not UTF-8", text);
    *out = coffer__strdup(text);
    return *out ? COFFER_OK : coffer__fail_no_memory(err, len + 1);
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
    editor->time = options.time;
    coffer__buffer_init(&editor->block, SIZE_MAX);
    status = copy_text(&editor->message, options.message, err);
    if (!status)
        status = copy_text(&editor->author, options.author, err);
    if (!status)
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
    coffer__free(editor->message);
    coffer__free(editor->author);
    coffer__free(editor->path);
    coffer__free(editor);
}

const coffer_pycauset_value *coffer_pycauset_editor_metadata(const coffer_pycauset_editor *editor)
{
    return editor->metadata.root;
}

/* ---- The new block ---- */

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

void coffer__pycauset_next_free(coffer__pycauset_next *next)
{
    coffer__pycauset_patches_free(&next->patches);
    coffer__buffer_free(&next->sums);
    for (int i = 0; i < 2; i++)
        coffer_pycauset_changes_free(next->own[i]);
    coffer__arena_free(&next->memory);
}

/* A name for the payload as it will be; what was computed from the old one becomes stale by it. */
static void name_payload(char out[COFFER__DIGEST_HEX + 1], coffer__digest *digest,
                         const coffer_pycauset_value *root, const coffer__pycauset_patches *patches)
{
    size_t len = 0;
    const char *old = coffer_pycauset_value_text(coffer__pycauset_get_key(root, "payload_uuid"), &len);
    if (old)
        coffer__digest_add(digest, old, len);
    for (size_t i = 0; i < patches->count; i++) {
        uint8_t offset[8];
        coffer__store_u64(offset, patches->items[i].offset);
        coffer__digest_add(digest, offset, sizeof offset);
        coffer__digest_add(digest, patches->items[i].after, patches->items[i].size);
    }
    coffer__digest_hex(out, digest);
}

/* Applies changes that the caller may not make. */
static coffer_status apply_own(coffer__pycauset_next *next, coffer_pycauset_changes *own, coffer_error *err)
{
    const coffer_pycauset_value *root = NULL;
    coffer_status status = coffer__pycauset_apply(&root, &next->memory, next->root, own, &next->sums, err);
    if (!status)
        next->root = root;
    return status;
}

/* The facts about a payload whose elements change. */
static coffer_status describe_payload(coffer__pycauset_next *next, coffer_error *err)
{
    char uuid[COFFER__DIGEST_HEX + 1];
    coffer__digest *digest = coffer__digest_new();
    coffer_status status =
        digest ? coffer__pycauset_system_changes_new(&next->own[0], err) : coffer__fail_no_memory(err, 0);
    coffer_pycauset_changes *own = next->own[0];
    if (!status) {
        name_payload(uuid, digest, next->root, &next->patches);
        status = coffer_pycauset_changes_set_string(own, "payload_uuid", uuid, COFFER__DIGEST_HEX, err);
    }
    if (!status)
        status = coffer_pycauset_changes_set_checksums(own, err);
    if (!status)
        status = apply_own(next, own, err);
    coffer__digest_free(digest);
    return status;
}

/* The new state: payload, then metadata. */
static coffer_status compose(coffer__pycauset_next *next, const coffer_pycauset_editor *editor,
                             const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer__pycauset_editor_source(&src, editor, err);
    if (status)
        return status;
    bool sums = coffer__pycauset_wants_checksums(changes);
    next->root = editor->metadata.root;
    if (changes->element_count > 0)
        status = coffer__pycauset_plan_elements(&next->patches, &next->memory, src, &editor->info,
                                                changes->elements, changes->element_count, false, err);
    if (!status && (sums || next->patches.count > 0))
        status = coffer__pycauset_sum_payload(&next->sums, src, &editor->info, next->root, &next->patches,
                                              sums, err);
    if (!status && next->patches.count > 0)
        status = describe_payload(next, err);
    const coffer_pycauset_value *root = NULL;
    if (!status)
        status = coffer__pycauset_apply(&root, &next->memory, next->root, changes, &next->sums, err);
    if (!status) {
        next->root = root;
        status = coffer__pycauset_editor_sign(next, editor, err);
    }
    coffer_source_close(src);
    return status;
}

/* ---- Keys that describe the commit ---- */

static void format_time(char out[32], int64_t seconds)
{
    time_t when = (time_t)seconds;
    struct tm parts;
    out[0] = '\0';
    if (gmtime_r(&when, &parts))
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static coffer_status say(coffer_pycauset_changes *own, const char *path, const char *text, coffer_error *err)
{
    return text && *text ? coffer_pycauset_changes_set_string(own, path, text, strlen(text), err) : COFFER_OK;
}

static coffer_status drop_old(coffer_pycauset_changes *own, const coffer_pycauset_value *root,
                              const char *key, coffer_error *err)
{
    return coffer__pycauset_get_key(root, key) ? coffer_pycauset_changes_delete(own, key, err) : COFFER_OK;
}

coffer_status coffer__pycauset_editor_sign(coffer__pycauset_next *next, const coffer_pycauset_editor *editor,
                                           coffer_error *err)
{
    char when[32] = "";
    coffer_status status = coffer__pycauset_system_changes_new(&next->own[1], err);
    coffer_pycauset_changes *own = next->own[1];
    if (status)
        return status;
    if (editor->time != 0)
        format_time(when, editor->time);
    status = drop_old(own, next->root, COFFER__PYCAUSET_COMMIT_KEY, err);
    if (!status)
        status = drop_old(own, next->root, COFFER__PYCAUSET_ELEMENTS_KEY, err);
    bool described = when[0] || editor->message || editor->author || next->patches.count > 0;
    if (!status && described)
        status =
            coffer_pycauset_changes_set_u64(own, COFFER__PYCAUSET_COMMIT_KEY ".generation",
                                            editor->header.slots[editor->header.active].generation + 1, err);
    if (!status)
        status = say(own, COFFER__PYCAUSET_COMMIT_KEY ".author", editor->author, err);
    if (!status)
        status = say(own, COFFER__PYCAUSET_COMMIT_KEY ".message", editor->message, err);
    if (!status)
        status = say(own, COFFER__PYCAUSET_COMMIT_KEY ".time", when, err);
    if (!status && next->sums.len > 0 &&
        !coffer__pycauset_get_key(next->root, COFFER__PYCAUSET_CHECKSUMS_KEY))
        status = coffer_pycauset_changes_set_checksums(own, err);
    if (!status && next->patches.count > 0)
        status = coffer__pycauset_changes_set_value(own, COFFER__PYCAUSET_ELEMENTS_KEY, &next->patches.record,
                                                    err);
    if (!status)
        status = apply_own(next, own, err);
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
    if (patches->count > 0) {
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

coffer_status coffer__pycauset_editor_ready(const coffer_pycauset_editor *editor, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&editor->failure, err);
    if (status)
        return status;
    if (editor->header.slots[editor->header.active].generation == UINT64_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%s has no generation left",
                            editor->path);
    return expect_untouched(editor, err);
}

coffer_status coffer__pycauset_editor_write(uint64_t *generation, coffer_pycauset_editor *editor,
                                            coffer__pycauset_next *next, coffer_error *err)
{
    coffer__pycauset_slot slot = editor->header.slots[editor->header.active];
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_pycauset_info info = editor->info;
    coffer_status status = encode(editor, next->root, &slot.metadata_offset, err);
    if (!status)
        status = coffer__pycauset_interpret(&info, next->root, slot.metadata_offset, err);
    if (!status)
        status = coffer__pycauset_copy(&tree, next->root, &editor->limits, err);
    if (status)
        return status;
    slot.generation++;
    slot.metadata_length = editor->size + editor->block.len - slot.metadata_offset;
    status = write_state(editor, &slot, &next->patches, err);
    if (status) {
        coffer__pycauset_tree_free(&tree);
        return status;
    }
    take_over(editor, &slot, &info, &tree);
    if (generation)
        *generation = slot.generation;
    return COFFER_OK;
}

coffer_status coffer_pycauset_editor_commit(uint64_t *generation, coffer_pycauset_editor *editor,
                                            const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer__pycauset_next next = { .memory = COFFER__ARENA_INIT, .sums = COFFER__BUFFER_INIT };
    coffer_status status = coffer__pycauset_editor_ready(editor, err);
    if (!status)
        status = compose(&next, editor, changes, err);
    if (!status)
        status = coffer__pycauset_editor_write(generation, editor, &next, err);
    coffer__pycauset_next_free(&next);
    return status;
}
