#include "formats/mscan/mscan_diff.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A JSON value that takes more is not shown. */
#define LONGEST_SHOWN 160

/* ---- The list ---- */

void coffer__mscan_changes_free(coffer__mscan_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        coffer__free(changes->items[i].name);
        coffer__free(changes->items[i].a);
        coffer__free(changes->items[i].b);
    }
    coffer__free(changes->items);
    changes->items = NULL;
    changes->count = changes->capacity = 0;
}

static coffer_status copy_text(char **out, const char *text, coffer_error *err)
{
    *out = text ? coffer__strdup(text) : NULL;
    return text && !*out ? coffer__fail_no_memory(err, strlen(text) + 1) : COFFER_OK;
}

/* name, a and b are copied; each may be NULL. */
static coffer_status add_change(coffer__mscan_changes *changes, const char *what, const char *name,
                                const char *a, const char *b, coffer_error *err)
{
    changes->total++;
    if (changes->count >= changes->max)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&changes->items, &changes->capacity, changes->count,
                                                     sizeof *changes->items, err);
    if (status)
        return status;
    coffer__mscan_change *change = &changes->items[changes->count++];
    *change = (coffer__mscan_change){ what, NULL, NULL, NULL };
    status = copy_text(&change->name, name, err);
    if (!status)
        status = copy_text(&change->a, a, err);
    if (!status)
        status = copy_text(&change->b, b, err);
    return status;
}

/* ---- Parameters ---- */

typedef struct param_entry {
    const coffer_mscan_param *param;
    bool matched;
} param_entry;

static int compare_names(const coffer_mscan_param *a, const coffer_mscan_param *b)
{
    size_t shorter = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, shorter);
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int by_name(const void *left, const void *right)
{
    const coffer_mscan_param *a = ((const param_entry *)left)->param;
    const coffer_mscan_param *b = ((const param_entry *)right)->param;
    int order = compare_names(a, b);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static int by_id(const void *left, const void *right)
{
    const coffer_mscan_param *a = ((const param_entry *)left)->param;
    const coffer_mscan_param *b = ((const param_entry *)right)->param;
    return (a->id > b->id) - (a->id < b->id);
}

typedef struct param_match {
    coffer__mscan_changes *changes;
    coffer__mscan_id_map *ids;
    param_entry *a, *b; /* those not matched yet */
    size_t a_count, b_count;
} param_match;

static void map_id(coffer__mscan_id_map *ids, uint64_t b, uint64_t a)
{
    if (b >= COFFER__MSCAN_PARAM_IDS)
        return; /* no record can name it */
    ids->to_a[b] = a < COFFER__MSCAN_PARAM_IDS ? (uint32_t)a : COFFER__MSCAN_ONLY_B;
    if (a != b)
        ids->identity = false;
}

/* Leaves out what has the same id and the same name in both. Both lists ascend by id. */
static void drop_same(param_match *match, const coffer__mscan_metadata *a, const coffer__mscan_metadata *b)
{
    size_t i = 0, j = 0;
    while (i < a->param_count || j < b->param_count) {
        const coffer_mscan_param *left = i < a->param_count ? &a->params[i] : NULL;
        const coffer_mscan_param *right = j < b->param_count ? &b->params[j] : NULL;
        bool take_left = left && (!right || left->id <= right->id);
        bool take_right = right && (!left || right->id <= left->id);
        bool same = take_left && take_right && compare_names(left, right) == 0;
        if (take_left && !same)
            match->a[match->a_count++] = (param_entry){ left, false };
        if (take_right && !same)
            match->b[match->b_count++] = (param_entry){ right, false };
        i += take_left;
        j += take_right;
    }
}

static void drop_matched(param_entry *entries, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!entries[i].matched)
            entries[kept++] = entries[i];
    }
    *count = kept;
    qsort(entries, kept, sizeof *entries, by_id);
}

static coffer_status match_names(param_match *match, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    qsort(match->a, match->a_count, sizeof *match->a, by_name);
    qsort(match->b, match->b_count, sizeof *match->b, by_name);
    for (size_t i = 0, j = 0; !status && i < match->a_count && j < match->b_count;) {
        param_entry *left = &match->a[i], *right = &match->b[j];
        int order = compare_names(left->param, right->param);
        if (order == 0) {
            char id_a[24], id_b[24];
            left->matched = right->matched = true;
            map_id(match->ids, right->param->id, left->param->id);
            snprintf(id_a, sizeof id_a, "%" PRIu64, left->param->id);
            snprintf(id_b, sizeof id_b, "%" PRIu64, right->param->id);
            status = add_change(match->changes, "param-renumbered", left->param->name, id_a, id_b, err);
        }
        i += order <= 0;
        j += order >= 0;
    }
    drop_matched(match->a, &match->a_count);
    drop_matched(match->b, &match->b_count);
    return status;
}

/* left or right is NULL when the other file has nothing under this id. */
static coffer_status add_param_change(param_match *match, uint64_t param_id, const coffer_mscan_param *left,
                                      const coffer_mscan_param *right, coffer_error *err)
{
    const char *what = !right ? "param-removed" : !left ? "param-added" : "param-renamed";
    char id[24];
    snprintf(id, sizeof id, "%" PRIu64, param_id);
    if (right)
        map_id(match->ids, param_id, left ? param_id : COFFER__MSCAN_ONLY_B);
    else
        match->ids->identity = false; /* a record under this id is not the same record in b */
    return add_change(match->changes, what, id, left ? left->name : NULL, right ? right->name : NULL, err);
}

/* What is left is there under another name, or in one file only. */
static coffer_status match_ids(param_match *match, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    size_t i = 0, j = 0;
    while (!status && (i < match->a_count || j < match->b_count)) {
        const coffer_mscan_param *left = i < match->a_count ? match->a[i].param : NULL;
        const coffer_mscan_param *right = j < match->b_count ? match->b[j].param : NULL;
        uint64_t left_id = left ? left->id : UINT64_MAX, right_id = right ? right->id : UINT64_MAX;
        uint64_t id = left_id < right_id ? left_id : right_id;
        bool take_left = left && left_id == id, take_right = right && right_id == id;
        status = add_param_change(match, id, take_left ? left : NULL, take_right ? right : NULL, err);
        i += take_left;
        j += take_right;
    }
    return status;
}

/* An id that b's map does not have stands for itself, unless a knows it as a parameter. */
static void map_unnamed(coffer__mscan_id_map *ids, const coffer_mscan *a, const coffer_mscan *b)
{
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        bool named_in_b = coffer__mscan_find_param(&b->metadata, (uint16_t)id);
        bool named_in_a = coffer__mscan_find_param(&a->metadata, (uint16_t)id);
        ids->to_a[id] = !named_in_b && named_in_a ? COFFER__MSCAN_ONLY_B : id;
    }
    ids->identity = true;
}

static coffer_status diff_params(coffer__mscan_changes *changes, coffer__mscan_id_map *ids,
                                 const coffer_mscan *a, const coffer_mscan *b, coffer_error *err)
{
    param_match match = { changes, ids, NULL, NULL, 0, 0 };
    coffer_status status;
    map_unnamed(ids, a, b);
    match.a = coffer__alloc_array(a->metadata.param_count + 1, sizeof *match.a);
    match.b = coffer__alloc_array(b->metadata.param_count + 1, sizeof *match.b);
    if (!match.a || !match.b) {
        status = coffer__fail_no_memory(err, (a->metadata.param_count + b->metadata.param_count + 2) *
                                                 sizeof *match.a);
        goto out;
    }
    drop_same(&match, &a->metadata, &b->metadata);
    status = match_names(&match, err);
    if (!status)
        status = match_ids(&match, err);
out:
    coffer__free(match.a);
    coffer__free(match.b);
    return status;
}

/* ---- JSON values ---- */

static bool is_number(const coffer__json_value *value)
{
    double number;
    return value->kind != COFFER__JSON_STRING && coffer__json_f64(&number, value);
}

static int compare_keys(const coffer__json_value *a, const coffer__json_value *b)
{
    uint32_t shorter = a->key_len < b->key_len ? a->key_len : b->key_len;
    int order = memcmp(a->key, b->key, shorter);
    return order ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

static int by_key(const void *left, const void *right)
{
    return compare_keys(*(const coffer__json_value *const *)left, *(const coffer__json_value *const *)right);
}

/* Keys that one comparison leaves out; ends with NULL. */
typedef const char *const *key_list;

static bool is_ignored(const coffer__json_value *member, key_list ignored)
{
    for (; ignored && *ignored; ignored++) {
        if (strcmp(member->key, *ignored) == 0)
            return true;
    }
    return false;
}

/* The members that count, by key; *out is the caller's. */
static coffer_status sorted_members(const coffer__json_value ***out, size_t *count,
                                    const coffer__json_value *object, key_list ignored, coffer_error *err)
{
    size_t found = 0;
    const coffer__json_value **members = coffer__alloc_array((size_t)object->as.count + 1, sizeof *members);
    if (!members)
        return coffer__fail_no_memory(err, (object->as.count + 1) * sizeof *members);
    for (const coffer__json_value *member = coffer__json_first(object); member;
         member = coffer__json_next(object, member)) {
        if (!is_ignored(member, ignored))
            members[found++] = member;
    }
    qsort(members, found, sizeof *members, by_key);
    *out = members;
    *count = found;
    return COFFER_OK;
}

static coffer_status same_value(bool *same, const coffer__json_value *a, const coffer__json_value *b,
                                coffer_error *err);

/* Whatever the order of their members. */
static coffer_status same_object(bool *same, const coffer__json_value *a, const coffer__json_value *b,
                                 key_list ignored, coffer_error *err)
{
    const coffer__json_value **left = NULL, **right = NULL;
    size_t left_count = 0, right_count = 0;
    coffer_status status = sorted_members(&left, &left_count, a, ignored, err);
    if (!status)
        status = sorted_members(&right, &right_count, b, ignored, err);
    if (!status)
        *same = left_count == right_count;
    for (size_t i = 0; !status && *same && i < left_count; i++) {
        *same = compare_keys(left[i], right[i]) == 0;
        if (*same)
            status = same_value(same, left[i], right[i], err);
    }
    coffer__free(left);
    coffer__free(right);
    return status;
}

static coffer_status same_array(bool *same, const coffer__json_value *a, const coffer__json_value *b,
                                coffer_error *err)
{
    const coffer__json_value *left = coffer__json_first(a), *right = coffer__json_first(b);
    coffer_status status = COFFER_OK;
    *same = a->as.count == b->as.count;
    while (!status && *same && left && right) {
        status = same_value(same, left, right, err);
        left = coffer__json_next(a, left);
        right = coffer__json_next(b, right);
    }
    return status;
}

/* The parser bounds the depth. */
static coffer_status same_value(bool *same, const coffer__json_value *a, const coffer__json_value *b,
                                coffer_error *err)
{
    double left, right;
    if (is_number(a) && is_number(b)) {
        *same = a->kind == b->kind && a->kind != COFFER__JSON_F64
                    ? a->as.u64 == b->as.u64
                    : coffer__json_f64(&left, a) && coffer__json_f64(&right, b) && left == right;
        return COFFER_OK;
    }
    *same = a->kind == b->kind;
    if (!*same)
        return COFFER_OK;
    switch (a->kind) {
    case COFFER__JSON_BOOL:
        *same = a->as.boolean == b->as.boolean;
        return COFFER_OK;
    case COFFER__JSON_NUMBER:
    case COFFER__JSON_STRING:
        *same = a->string_len == b->string_len && memcmp(a->as.string, b->as.string, a->string_len) == 0;
        return COFFER_OK;
    case COFFER__JSON_ARRAY:
        return same_array(same, a, b, err);
    case COFFER__JSON_OBJECT:
        return same_object(same, a, b, NULL, err);
    default:
        return COFFER_OK;
    }
}

/* ---- Sequences ---- */

static const char *const sequence_ignored[] = { "sequence_id", "num_tokens", "source", "first_record",
                                                "num_records", "crc32",      NULL };

static bool same_source(const coffer_mscan_sequence *a, const coffer_mscan_sequence *b)
{
    if (!a->source || !b->source)
        return !a->source && !b->source;
    return a->source_len == b->source_len && memcmp(a->source, b->source, a->source_len) == 0;
}

static coffer_status diff_sequence(coffer__mscan_changes *changes, size_t index,
                                   const coffer_mscan_sequence *a, const coffer_mscan_sequence *b,
                                   const coffer__json_value *json_a, const coffer__json_value *json_b,
                                   coffer_error *err)
{
    char name[24], left[48], right[48];
    bool same = true;
    coffer_status status = COFFER_OK;
    snprintf(name, sizeof name, "%zu", index);
    if (a->sequence_id != b->sequence_id) {
        snprintf(left, sizeof left, "sequence_id %" PRIu64, a->sequence_id);
        snprintf(right, sizeof right, "sequence_id %" PRIu64, b->sequence_id);
        status = add_change(changes, "sequence-changed", name, left, right, err);
    }
    if (!status && a->num_tokens != b->num_tokens) {
        snprintf(left, sizeof left, "%" PRIu64 " tokens", a->num_tokens);
        snprintf(right, sizeof right, "%" PRIu64 " tokens", b->num_tokens);
        status = add_change(changes, "sequence-changed", name, left, right, err);
    }
    if (!status && !same_source(a, b))
        status = add_change(changes, "sequence-changed", name, a->source ? a->source : "no source",
                            b->source ? b->source : "no source", err);
    if (!status)
        status = same_object(&same, json_a, json_b, sequence_ignored, err);
    if (!status && !same)
        status = add_change(changes, "sequence-changed", name, "other keys", "other keys", err);
    return status;
}

static coffer_status diff_extra_sequence(coffer__mscan_changes *changes, size_t index,
                                         const coffer_mscan_sequence *a, const coffer_mscan_sequence *b,
                                         coffer_error *err)
{
    const coffer_mscan_sequence *only = a ? a : b;
    char name[24], tokens[48];
    if (!only)
        return COFFER_OK;
    snprintf(name, sizeof name, "%zu", index);
    snprintf(tokens, sizeof tokens, "%" PRIu64 " tokens", only->num_tokens);
    return add_change(changes, a ? "sequence-removed" : "sequence-added", name, a ? tokens : NULL,
                      a ? NULL : tokens, err);
}

static coffer_status diff_sequences(coffer__mscan_changes *changes, const coffer__mscan_metadata *a,
                                    const coffer__mscan_metadata *b, coffer_error *err)
{
    const coffer__json_value *list_a = coffer__json_find(a->root, "sequences");
    const coffer__json_value *list_b = coffer__json_find(b->root, "sequences");
    const coffer__json_value *json_a = list_a ? coffer__json_first(list_a) : NULL;
    const coffer__json_value *json_b = list_b ? coffer__json_first(list_b) : NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && (i < a->sequence_count || i < b->sequence_count); i++) {
        const coffer_mscan_sequence *left = i < a->sequence_count ? &a->sequences[i] : NULL;
        const coffer_mscan_sequence *right = i < b->sequence_count ? &b->sequences[i] : NULL;
        if (!left || !right || !json_a || !json_b) {
            status = diff_extra_sequence(changes, i, left, right, err);
            continue;
        }
        status = diff_sequence(changes, i, left, right, json_a, json_b, err);
        json_a = coffer__json_next(list_a, json_a);
        json_b = coffer__json_next(list_b, json_b);
    }
    return status;
}

/* ---- Everything else ---- */

static const char *const keys_with_their_own_words[] = { "model_name", "id_to_param_name_map", "sequences",
                                                         NULL };

/* A value as one short line of JSON, for people. */
static const char *shown(coffer__buffer *buffer, const coffer__json_value *value)
{
    coffer__json_writer writer;
    coffer__buffer_init(buffer, LONGEST_SHOWN);
    if (!value)
        return NULL;
    coffer__json_writer_init(&writer, buffer, 0);
    coffer__json_write_value(&writer, value);
    return buffer->failed ? "a long value" : coffer__buffer_text(buffer);
}

static coffer_status add_key_change(coffer__mscan_changes *changes, const char *what, const char *key,
                                    const coffer__json_value *a, const coffer__json_value *b,
                                    coffer_error *err)
{
    coffer__buffer left, right;
    const char *text_a = shown(&left, a), *text_b = shown(&right, b);
    coffer_status status = add_change(changes, what, key, text_a, text_b, err);
    coffer__buffer_free(&left);
    coffer__buffer_free(&right);
    return status;
}

static coffer_status diff_keys(coffer__mscan_changes *changes, const coffer__json_value *a,
                               const coffer__json_value *b, coffer_error *err)
{
    const coffer__json_value **left = NULL, **right = NULL;
    size_t left_count = 0, right_count = 0, i = 0, j = 0;
    coffer_status status = sorted_members(&left, &left_count, a, keys_with_their_own_words, err);
    if (!status)
        status = sorted_members(&right, &right_count, b, keys_with_their_own_words, err);
    while (!status && (i < left_count || j < right_count)) {
        int order = i == left_count ? 1 : j == right_count ? -1 : compare_keys(left[i], right[j]);
        bool same = false;
        if (order < 0)
            status = add_key_change(changes, "key-removed", left[i]->key, left[i], NULL, err);
        else if (order > 0)
            status = add_key_change(changes, "key-added", right[j]->key, NULL, right[j], err);
        else
            status = same_value(&same, left[i], right[j], err);
        if (!status && order == 0 && !same)
            status = add_key_change(changes, "key-changed", left[i]->key, left[i], right[j], err);
        i += order <= 0;
        j += order >= 0;
    }
    coffer__free(left);
    coffer__free(right);
    return status;
}

coffer_status coffer__mscan_diff_metadata(coffer__mscan_changes *changes, coffer__mscan_id_map *ids,
                                          const coffer_mscan *a, const coffer_mscan *b, coffer_error *err)
{
    const coffer__mscan_metadata *left = &a->metadata, *right = &b->metadata;
    coffer_status status = COFFER_OK;
    if (left->model_name_len != right->model_name_len ||
        memcmp(left->model_name, right->model_name, left->model_name_len) != 0)
        status = add_change(changes, "model_name", NULL, left->model_name, right->model_name, err);
    if (!status)
        status = diff_params(changes, ids, a, b, err);
    if (!status)
        status = diff_sequences(changes, left, right, err);
    if (!status)
        status = diff_keys(changes, left->root, right->root, err);
    return status;
}
