/* The way back: an older state becomes the newest one. */
#include "formats/pycauset/pycauset_editor.h"

#include "base/fail.h"

#include <inttypes.h>
#include <string.h>

static bool same_payload(const coffer_pycauset_value *a, const coffer_pycauset_value *b)
{
    const coffer_pycauset_value *x = coffer__pycauset_get_key(a, "payload_uuid");
    const coffer_pycauset_value *y = coffer__pycauset_get_key(b, "payload_uuid");
    return x && y && coffer__pycauset_equal(x, y);
}

/* The values that elements had in a state, gathered from the states after it, oldest first: of several
 * changes of one element the first has the value. */
static coffer_status gather_elements(coffer_pycauset_changes *out, const coffer_pycauset_history *history,
                                     size_t target, coffer_error *err)
{
    const coffer_pycauset_generation *before = coffer_pycauset_history_at(history, target);
    const coffer_pycauset_generation *state;
    coffer_status status = COFFER_OK;
    for (size_t i = target + 1;
         !status && !before->active && (state = coffer_pycauset_history_at(history, i)); i++) {
        if (!state->committed)
            continue;
        if (state->elements)
            status = coffer__pycauset_elements_of_record(out, state->elements, err);
        else if (!same_payload(before->metadata, state->metadata))
            return coffer__fail(err, COFFER_E_UNSUPPORTED, state->offset,
                                "generation %" PRIu64
                                " has another payload, and the file does not say what the old one was",
                                state->generation);
        before = state;
    }
    return status;
}

static coffer_status find_target(size_t *out, const coffer_pycauset_history *history, uint64_t to,
                                 coffer_error *err)
{
    uint64_t oldest = 0, newest = 0;
    for (size_t i = 0; i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *state = coffer_pycauset_history_at(history, i);
        if (!state->committed)
            continue;
        if (state->generation == to && !state->active) {
            *out = i;
            return COFFER_OK;
        }
        oldest = newest == 0 ? state->generation : oldest;
        newest = state->generation;
    }
    if (to == newest)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "generation %" PRIu64 " is the current one", to);
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                        "generation %" PRIu64 " is not in the file, which has %" PRIu64 " to %" PRIu64, to,
                        oldest, newest);
}

/* The checksums of the old state prove that the values are those it had. */
static coffer_status expect_sums(const coffer__pycauset_next *next, uint64_t to, coffer_error *err)
{
    const coffer_pycauset_value *crcs =
        coffer__pycauset_get_key(coffer__pycauset_get_key(next->root, COFFER__PYCAUSET_CHECKSUMS_KEY),
                                 "crc32");
    if (!crcs || next->patches.count == 0)
        return COFFER_OK;
    if (crcs->kind == COFFER_PYCAUSET_BYTES && crcs->count == next->sums.len &&
        memcmp(crcs->as.text, next->sums.data, next->sums.len) == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "the values of generation %" PRIu64
                        " cannot be restored: another program changed the "
                        "payload since",
                        to);
}

static coffer_status prepare(coffer__pycauset_next *next, const coffer_pycauset_editor *editor,
                             const coffer_pycauset_history *history, coffer_source *src, uint64_t to,
                             coffer_error *err)
{
    coffer_pycauset_changes *undo = NULL;
    size_t target = 0;
    coffer_status status = find_target(&target, history, to, err);
    if (!status)
        next->root = coffer_pycauset_history_at(history, target)->metadata;
    if (!status)
        status = coffer_pycauset_changes_new(&undo, err);
    if (!status)
        status = gather_elements(undo, history, target, err);
    if (!status && undo->element_count > 0)
        status = coffer__pycauset_plan_elements(&next->patches, &next->memory, src, &editor->info,
                                                undo->elements, undo->element_count, true, err);
    /* A state from before there were checksums gets those of its payload. */
    if (!status &&
        (next->patches.count > 0 || !coffer__pycauset_get_key(next->root, COFFER__PYCAUSET_CHECKSUMS_KEY)))
        status = coffer__pycauset_sum_payload(&next->sums, src, &editor->info, editor->metadata.root,
                                              &next->patches, false, err);
    coffer_pycauset_changes_free(undo);
    return status ? status : expect_sums(next, to, err);
}

coffer_status coffer_pycauset_editor_revert(uint64_t *generation, coffer_pycauset_editor *editor, uint64_t to,
                                            coffer_error *err)
{
    coffer_pycauset_history_opts opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    coffer__pycauset_next next = { .memory = COFFER__ARENA_INIT, .sums = COFFER__BUFFER_INIT };
    coffer_pycauset_history *history = NULL;
    coffer_source *src = NULL;
    opts.limits = &editor->limits;
    coffer_status status = coffer__pycauset_editor_ready(editor, err);
    if (!status)
        status = coffer__pycauset_editor_source(&src, editor, err);
    if (!status)
        status = coffer_pycauset_history_open(&history, src, &opts, err);
    if (!status)
        status = prepare(&next, editor, history, src, to, err);
    if (!status)
        status = coffer__pycauset_editor_sign(&next, editor, err);
    if (!status)
        status = coffer__pycauset_editor_write(generation, editor, &next, err);
    coffer_pycauset_history_close(history);
    coffer_source_close(src);
    coffer__pycauset_next_free(&next);
    return status;
}
