/* The states of the metadata that are still in a file. */
#include "formats/pycauset/pycauset_scan.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/pycauset/pycauset_editor.h"

#include <inttypes.h>
#include <string.h>

typedef struct kept_state {
    coffer_pycauset_generation facts;
    coffer__pycauset_tree tree;
} kept_state;

struct coffer_pycauset_history {
    kept_state *states;
    size_t count, capacity;
    uint64_t damaged;
};

COFFER__INIT_FUNCTION(coffer_pycauset_history_opts, COFFER_PYCAUSET_HISTORY_OPTS_INIT)

/* ---- Numbers ---- */

/* The slot that names a block, or −1; of two that do, the active one or that of the later generation. */
static int slot_of(const coffer__pycauset_header *header, const coffer_pycauset_generation *facts)
{
    int found = -1;
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &header->slots[i];
        if (slot->fault == COFFER_OK && slot->metadata_offset == facts->offset &&
            (found < 0 || i == header->active))
            found = i;
    }
    return found;
}

/* Blocks are in the order of their commits. Those before a block that a slot names are the generations before
 * it, as far as the numbers between two named blocks reach; those after the last named block were never
 * committed. */
static void number_states(coffer_pycauset_history *history, const coffer__pycauset_header *header)
{
    uint64_t next = 0; /* generation of the following block, 0 when that was not committed */
    for (size_t i = history->count; i-- > 0;) {
        coffer_pycauset_generation *facts = &history->states[i].facts;
        int slot = slot_of(header, facts);
        facts->active = slot >= 0 && slot == header->active;
        facts->slot = slot < 0 ? '\0' : "AB"[slot];
        facts->committed = slot >= 0 || next > 1;
        if (slot >= 0)
            facts->generation = header->slots[slot].generation;
        else if (facts->committed)
            facts->generation = next - 1;
        next = facts->committed ? facts->generation : next;
    }
    /* Blocks between the two named ones can only have the numbers between theirs. */
    uint64_t last_named = 0;
    for (size_t i = 0; i < history->count; i++) {
        coffer_pycauset_generation *facts = &history->states[i].facts;
        if (slot_of(header, facts) >= 0) {
            last_named = facts->generation;
        } else if (facts->committed && facts->generation <= last_named) {
            facts->committed = false;
            facts->generation = 0;
        }
    }
}

/* ---- Opening ---- */

static const char *find_date(const coffer_pycauset_value *root)
{
    static const char *const keys[] = { "date",       "modified", "modified_at", "updated",
                                        "updated_at", "created",  "created_at",  "timestamp" };
    const coffer_pycauset_value *provenance = coffer__pycauset_get_key(root, "provenance");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const coffer_pycauset_value *value = coffer__pycauset_get_key(provenance, keys[i]);
        if (value && value->kind == COFFER_PYCAUSET_STRING)
            return value->as.text;
    }
    return NULL;
}

static const char *text_of(const coffer_pycauset_value *map, const char *key)
{
    const coffer_pycauset_value *value = coffer__pycauset_get_key(map, key);
    return value && value->kind == COFFER_PYCAUSET_STRING ? value->as.text : NULL;
}

/* The keys that describe a commit name its generation: a program that does not know them copies them. */
static void describe_commits(coffer_pycauset_history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        coffer_pycauset_generation *facts = &history->states[i].facts;
        const coffer_pycauset_value *commit =
            coffer__pycauset_get_key(facts->metadata, COFFER__PYCAUSET_COMMIT_KEY);
        uint64_t generation;
        if (!coffer__pycauset_is_u64(&generation, coffer__pycauset_get_key(commit, "generation")) ||
            !facts->committed || generation != facts->generation)
            continue;
        const char *time = text_of(commit, "time");
        facts->message = text_of(commit, "message");
        facts->author = text_of(commit, "author");
        facts->elements = coffer__pycauset_get_key(facts->metadata, COFFER__PYCAUSET_ELEMENTS_KEY);
        if (time)
            facts->date = time;
    }
}

static coffer_status add_state(coffer_pycauset_history *history, coffer_source *src,
                               const coffer__pycauset_found *block, const coffer_limits *limits,
                               uint64_t *memory_left, coffer_error *err)
{
    coffer__pycauset_tree tree = { .root = NULL };
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = coffer__array_reserve_one(&history->states, &history->capacity, history->count,
                                                     sizeof *history->states, err);
    if (status)
        return status;
    status = coffer__pycauset_read_block(&tree, src, block->offset, block->length, limits, &why);
    if (status && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &why);
    if (status) /* whole by its checksum, but no metadata */
        return COFFER_OK;
    if (tree.memory_bytes > *memory_left) {
        coffer__pycauset_tree_free(&tree);
        return coffer__fail(err, COFFER_E_LIMIT, block->offset,
                            "the history takes more than %" PRIu64 " bytes of memory", limits->memory_bytes);
    }
    *memory_left -= tree.memory_bytes;
    history->states[history->count++] = (kept_state){
        .facts = { .offset = block->offset,
                   .length = block->length,
                   .date = find_date(tree.root),
                   .metadata = tree.root },
        .tree = tree,
    };
    return COFFER_OK;
}

coffer_status coffer_pycauset_history_open(coffer_pycauset_history **out, coffer_source *src,
                                           const coffer_pycauset_history_opts *opts, coffer_error *err)
{
    coffer_pycauset_history_opts options = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    coffer__pycauset_header header;
    if (!status)
        status = coffer__pycauset_read_header(&header, src, err);
    if (!status)
        status = coffer__pycauset_expect_active(&header, src, err);
    if (status)
        return status;
    coffer_pycauset_history *history = coffer__calloc(1, sizeof *history);
    if (!history)
        return coffer__fail_no_memory(err, sizeof *history);
    coffer_limits limits = coffer__limits(options.limits);
    uint64_t memory_left = limits.memory_bytes;
    coffer__pycauset_scan scan = { .items = NULL };
    status = coffer__pycauset_scan_blocks(&scan, src, &header, &limits, err);
    for (size_t i = 0; i < scan.count && !status; i++)
        status = add_state(history, src, &scan.items[i], &limits, &memory_left, err);
    history->damaged = scan.damaged;
    coffer__pycauset_scan_free(&scan);
    if (status) {
        coffer_pycauset_history_close(history);
        return status;
    }
    number_states(history, &header);
    describe_commits(history);
    *out = history;
    return COFFER_OK;
}

coffer_status coffer_pycauset_history_open_path(coffer_pycauset_history **out, const char *path,
                                                const coffer_pycauset_history_opts *opts, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (!status)
        status = coffer_pycauset_history_open(out, source, opts, err);
    coffer_source_close(source);
    return status;
}

void coffer_pycauset_history_close(coffer_pycauset_history *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < history->count; i++)
        coffer__pycauset_tree_free(&history->states[i].tree);
    coffer__free(history->states);
    coffer__free(history);
}

size_t coffer_pycauset_history_count(const coffer_pycauset_history *history)
{
    return history->count;
}

uint64_t coffer_pycauset_history_damaged_bytes(const coffer_pycauset_history *history)
{
    return history->damaged;
}

const coffer_pycauset_generation *coffer_pycauset_history_at(const coffer_pycauset_history *history,
                                                             size_t index)
{
    return index < history->count ? &history->states[index].facts : NULL;
}

/* ---- One of them ---- */

static coffer_status fail_no_generation(const coffer_pycauset_history *history, uint64_t generation,
                                        coffer_error *err)
{
    uint64_t oldest = 0, newest = 0;
    for (size_t i = 0; i < history->count; i++) {
        const coffer_pycauset_generation *facts = &history->states[i].facts;
        if (!facts->committed)
            continue;
        if (newest == 0)
            oldest = facts->generation;
        newest = facts->generation;
    }
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                        "generation %" PRIu64 " is not in the file, which has %" PRIu64 " to %" PRIu64,
                        generation, oldest, newest);
}

coffer_status coffer__pycauset_find_generation(uint64_t *offset, uint64_t *length, coffer_source *src,
                                               uint64_t generation, const coffer_limits *limits,
                                               coffer_error *err)
{
    coffer_pycauset_history_opts opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    opts.limits = limits;
    coffer_pycauset_history *history = NULL;
    coffer_status status = coffer_pycauset_history_open(&history, src, &opts, err);
    if (status)
        return status;
    bool found = false;
    for (size_t i = history->count; i-- > 0 && !found;) {
        const coffer_pycauset_generation *facts = &history->states[i].facts;
        if ((found = facts->committed && facts->generation == generation)) {
            *offset = facts->offset;
            *length = facts->length;
        }
    }
    status = found ? COFFER_OK : fail_no_generation(history, generation, err);
    coffer_pycauset_history_close(history);
    return status;
}

/* The way back: an older state becomes the newest one. */

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
