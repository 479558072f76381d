/* The editor of a file: opening it, and composing the state that a commit writes (pycauset_commit.c). */
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
    pthread_mutex_init(&editor->lock, NULL);
    pthread_cond_init(&editor->written, NULL);
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
    pthread_cond_destroy(&editor->written);
    pthread_mutex_destroy(&editor->lock);
    coffer__free(editor);
}

const coffer_pycauset_value *coffer_pycauset_editor_metadata(const coffer_pycauset_editor *editor)
{
    return editor->metadata.root;
}

/* ---- The new state ---- */

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

bool coffer__pycauset_needs_payload(const coffer_pycauset_changes *changes)
{
    return changes->element_count > 0 || coffer__pycauset_wants_checksums(changes);
}

/* Plans the new elements and the checksums of the payload. */
static coffer_status compose_payload(coffer__pycauset_next *next, const coffer_pycauset_editor *editor,
                                     const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer__pycauset_editor_source(&src, editor, err);
    if (status)
        return status;
    bool sums = coffer__pycauset_wants_checksums(changes);
    if (changes->element_count > 0)
        status = coffer__pycauset_plan_elements(&next->patches, &next->memory, src, &editor->info,
                                                changes->elements, changes->element_count, false, err);
    if (!status && (sums || next->patches.count > 0))
        status = coffer__pycauset_sum_payload(&next->sums, src, &editor->info, next->root, &next->patches,
                                              sums, err);
    if (!status && next->patches.count > 0)
        status = describe_payload(next, err);
    coffer_source_close(src);
    return status;
}

coffer_status coffer__pycauset_editor_compose(coffer__pycauset_next *next,
                                              const coffer_pycauset_editor *editor,
                                              const coffer_pycauset_changes *changes, coffer_error *err)
{
    const coffer_pycauset_value *root = NULL;
    coffer_status status = COFFER_OK;
    next->root = editor->metadata.root;
    if (coffer__pycauset_needs_payload(changes))
        status = compose_payload(next, editor, changes, err);
    if (!status)
        status = coffer__pycauset_apply(&root, &next->memory, next->root, changes, &next->sums, err);
    if (status)
        return status;
    next->root = root;
    return coffer__pycauset_editor_sign(next, editor, err);
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
