#include "support/crash.h"

#include "base/table.h"
#include "support/crash_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SECTOR = 512,
    ALL_SETS_UP_TO = 10, /* pieces; beyond, sets are chosen */
    EVEN_CUTS = 12,
    RANDOM_SETS = 24
};

/* A piece of a write that reaches the disk whole or not at all, or a change of size. */
struct piece {
    size_t op;
    uint64_t from, to;
};

struct set_of_hashes {
    uint64_t *slots;
    size_t capacity, count;
};

struct enumeration {
    const crash_test *test;
    crash_record *record;
    char *folder; /* where states are built */
    size_t done;  /* operations before the crash */

    /* The operations on names that are durable, and those that are not yet. */
    crash_names names;
    size_t *pending_names, pending_name_count;
    size_t *pending_data, pending_data_count;

    struct piece *pieces;
    size_t piece_count;
    uint8_t *chosen; /* per piece: it reached the disk */
    struct set_of_hashes seen;
    size_t states;
    uint64_t random;
};

/* ---- The states that were seen ---- */

/* True when the hash is new. */
static bool remember(struct set_of_hashes *set, uint64_t hash)
{
    if (set->count * 2 >= set->capacity) {
        struct set_of_hashes larger = { NULL, set->capacity ? set->capacity * 2 : 1024, 0 };
        larger.slots = calloc(larger.capacity, sizeof *larger.slots);
        assert_non_null(larger.slots);
        for (size_t i = 0; i < set->capacity; i++)
            if (set->slots[i] != 0)
                remember(&larger, set->slots[i]);
        free(set->slots);
        *set = larger;
    }
    if (hash == 0)
        hash = 1;
    size_t at = hash % set->capacity;
    while (set->slots[at] != 0 && set->slots[at] != hash)
        at = (at + 1) % set->capacity;
    if (set->slots[at] == hash)
        return false;
    set->slots[at] = hash;
    set->count++;
    return true;
}

/* ---- Building a state ---- */

static void resize(crash_image *image, size_t len)
{
    if (len > image->len) {
        image->bytes = realloc(image->bytes, len);
        assert_non_null(image->bytes);
        memset(image->bytes + image->len, 0, len - image->len);
    }
    image->len = len;
}

static void apply_piece(crash_image *image, const crash_op *op, const struct piece *piece)
{
    if (op->kind == CRASH_TRUNCATE) {
        resize(image, (size_t)op->offset);
        return;
    }
    if (piece->to > image->len)
        resize(image, (size_t)piece->to);
    memcpy(image->bytes + piece->from, op->bytes + (piece->from - op->offset),
           (size_t)(piece->to - piece->from));
}

/* The state of a file after the crash. sizes : writes that did not reach the disk still made the file larger.
 */
static crash_image leave_file(const struct enumeration *e, int file, bool sizes)
{
    const crash_image *durable = &e->record->files[file];
    crash_image image = { malloc(durable->len + 1), durable->len };
    assert_non_null(image.bytes);
    if (durable->len > 0)
        memcpy(image.bytes, durable->bytes, durable->len);
    for (size_t i = 0; i < e->piece_count; i++) {
        const struct piece *piece = &e->pieces[i];
        const crash_op *op = &e->record->ops[piece->op];
        if (op->file != file)
            continue;
        if (e->chosen[i])
            apply_piece(&image, op, piece);
        else if (sizes && op->kind == CRASH_WRITE && piece->to > image.len)
            resize(&image, (size_t)piece->to);
    }
    return image;
}

static const char *describe(const struct enumeration *e, char *out, size_t size)
{
    static const char *const kinds[] = { "write",  "truncate", "sync",       "create",
                                         "rename", "unlink",   "sync folder" };
    if (e->done == 0) {
        snprintf(out, size, "before the first operation");
        return out;
    }
    const crash_op *op = &e->record->ops[e->done - 1];
    snprintf(out, size, "after operation %zu of %zu (%s %s%s%s, file %d, %zu bytes at %llu)", e->done,
             e->record->op_count, kinds[op->kind], op->name, op->new_name[0] ? " to " : "", op->new_name,
             op->file, op->len, (unsigned long long)op->offset);
    return out;
}

static void verify(struct enumeration *e, const crash_names *names, const crash_image *images)
{
    char when[1024];
    for (size_t i = 0; i < names->count; i++)
        temp_write(temp_path(e->folder, names->entries[i].name), images[i].bytes, images[i].len);
    bool finished = e->done == e->record->op_count;
    const char *wrong = e->test->verify(e->folder, e->test->context, finished);
    if (wrong)
        fail_msg("crash %s: %s; state %zu, left in %s", describe(e, when, sizeof when), wrong, e->states,
                 e->folder);
    temp_empty(e->folder);
    e->states++;
}

/* names_done : how many of the pending changes of names have happened. */
static void try_state(struct enumeration *e, size_t names_done, bool sizes)
{
    crash_names names = e->names;
    crash_image images[CRASH_MAX_NAMES];
    for (size_t i = 0; i < names_done; i++)
        crash_names_apply(&names, &e->record->ops[e->pending_names[i]]);
    uint64_t hash = e->done == e->record->op_count;
    for (size_t i = 0; i < names.count; i++) {
        images[i] = leave_file(e, names.entries[i].file, sizes);
        uint64_t parts[3] = { hash, coffer__hash(names.entries[i].name, strlen(names.entries[i].name)),
                              coffer__hash(images[i].bytes, images[i].len) };
        hash = coffer__hash(parts, sizeof parts);
    }
    if (remember(&e->seen, hash))
        verify(e, &names, images);
    for (size_t i = 0; i < names.count; i++)
        free(images[i].bytes);
}

/* ---- Choosing states ---- */

static void try_set(struct enumeration *e)
{
    for (size_t names_done = 0; names_done <= e->pending_name_count; names_done++) {
        try_state(e, names_done, false);
        try_state(e, names_done, true);
    }
}

static void try_all_sets(struct enumeration *e)
{
    for (unsigned set = 0; set < 1u << e->piece_count; set++) {
        for (size_t i = 0; i < e->piece_count; i++)
            e->chosen[i] = set >> i & 1;
        try_set(e);
    }
}

static void try_cut(struct enumeration *e, size_t at)
{
    for (int head = 0; head < 2; head++) {
        for (size_t i = 0; i < e->piece_count; i++)
            e->chosen[i] = (i < at) == (head == 0);
        try_set(e);
    }
}

static void try_chosen_sets(struct enumeration *e)
{
    for (size_t i = 0; i <= EVEN_CUTS; i++)
        try_cut(e, i * e->piece_count / EVEN_CUTS);
    for (size_t i = 1; i < e->piece_count; i++)
        if (e->pieces[i].op != e->pieces[i - 1].op)
            try_cut(e, i);
    /* One operation alone, and all but one. */
    for (size_t op = 0; op < e->pending_data_count; op++) {
        for (int only = 0; only < 2; only++) {
            for (size_t i = 0; i < e->piece_count; i++)
                e->chosen[i] = (e->pieces[i].op == e->pending_data[op]) == (only == 1);
            try_set(e);
        }
    }
    for (int set = 0; set < RANDOM_SETS; set++) {
        for (size_t i = 0; i < e->piece_count; i++) {
            e->random = e->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            e->chosen[i] = (uint8_t)(e->random >> 63);
        }
        try_set(e);
    }
}

/* Cuts what is pending into pieces at the borders of sectors. */
static void cut_pieces(struct enumeration *e)
{
    size_t count = 0;
    for (size_t i = 0; i < e->pending_data_count; i++)
        count += e->record->ops[e->pending_data[i]].len / SECTOR + 2;
    e->pieces = calloc(count + 1, sizeof *e->pieces);
    e->chosen = calloc(count + 1, 1);
    assert_true(e->pieces && e->chosen);
    e->piece_count = 0;
    for (size_t i = 0; i < e->pending_data_count; i++) {
        size_t number = e->pending_data[i];
        const crash_op *op = &e->record->ops[number];
        uint64_t at = op->offset, end = op->offset + op->len;
        do {
            uint64_t border = (at / SECTOR + 1) * SECTOR;
            e->pieces[e->piece_count++] = (struct piece){ number, at, border < end ? border : end };
            at = border;
        } while (at < end);
    }
}

static void try_states(struct enumeration *e)
{
    cut_pieces(e);
    if (e->piece_count <= ALL_SETS_UP_TO)
        try_all_sets(e);
    else
        try_chosen_sets(e);
    free(e->pieces);
    free(e->chosen);
}

/* ---- Going through the record ---- */

static void make_durable(struct enumeration *e, int file)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->pending_data_count; i++) {
        const crash_op *op = &e->record->ops[e->pending_data[i]];
        if (op->file == file)
            apply_piece(&e->record->files[file], op,
                        &(struct piece){ e->pending_data[i], op->offset, op->offset + op->len });
        else
            e->pending_data[kept++] = e->pending_data[i];
    }
    e->pending_data_count = kept;
}

static void advance(struct enumeration *e)
{
    const crash_op *op = &e->record->ops[e->done];
    switch (op->kind) {
    case CRASH_WRITE:
    case CRASH_TRUNCATE:
        e->pending_data[e->pending_data_count++] = e->done;
        break;
    case CRASH_CREATE:
    case CRASH_RENAME:
    case CRASH_UNLINK:
        e->pending_names[e->pending_name_count++] = e->done;
        break;
    case CRASH_SYNC_FILE:
        make_durable(e, op->file);
        break;
    case CRASH_SYNC_FOLDER:
        for (size_t i = 0; i < e->pending_name_count; i++)
            crash_names_apply(&e->names, &e->record->ops[e->pending_names[i]]);
        e->pending_name_count = 0;
        break;
    }
    e->done++;
}

static void record_operation(const crash_test *test, crash_record *record)
{
    char *folder = temp_make();
    if (test->setup)
        test->setup(folder, test->context);
    crash_record_begin(record, folder);
    test->run(folder, test->context);
    crash_record_end(record);
    temp_remove(folder);
}

size_t crash_enumerate(const crash_test *test)
{
    crash_record *record = malloc(sizeof *record);
    assert_non_null(record);
    record_operation(test, record);
    struct enumeration e = { .test = test, .record = record, .folder = temp_make(), .names = record->first };
    e.pending_names = calloc(record->op_count + 1, sizeof *e.pending_names);
    e.pending_data = calloc(record->op_count + 1, sizeof *e.pending_data);
    assert_true(e.pending_names && e.pending_data);
    e.random = 1;
    try_states(&e);
    while (e.done < record->op_count) {
        advance(&e);
        try_states(&e);
    }
    print_message("             %zu states of %zu operations\n", e.states, record->op_count);
    temp_remove(e.folder);
    free(e.pending_names);
    free(e.pending_data);
    free(e.seen.slots);
    crash_record_free(record);
    free(record);
    return e.states;
}

static const char *look_at_file(const char *path, bool finished, crash_look look, const void *context)
{
    coffer_source *src = NULL;
    if (coffer_source_open(&src, path, NULL, NULL) != COFFER_OK)
        return "the file cannot be opened";
    const char *wrong = look(src, context, finished);
    if (!wrong) {
        coffer_report *report = acts_check(src, true);
        if (coffer_report_total(report, COFFER_ERROR) > 0 || coffer_report_total(report, COFFER_WARNING) > 0)
            wrong = "check finds something";
        coffer_report_free(report);
    }
    coffer_source_close(src);
    return wrong;
}

const char *crash_verify_file(const char *path, bool is_new, bool finished, crash_look look,
                              const void *context)
{
    if (!temp_exists(path))
        return is_new && !finished ? NULL : "the file is gone";
    /* Readers see it without a writer having tidied up, and again after one has. */
    const char *wrong = look_at_file(path, finished, look, context);
    if (wrong)
        return wrong;
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back";
    return look_at_file(path, finished, look, context);
}
