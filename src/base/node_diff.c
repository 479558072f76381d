#include "base/node_diff.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/node.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_SHOWN 160

typedef struct comparison {
    coffer__node_changes *changes;
    coffer__buffer path;
} comparison;

static coffer_status compare(comparison *diff, const coffer_node *a, const coffer_node *b, coffer_error *err);

/* ---- Values ---- */

static bool is_integer(const coffer_node *node)
{
    return node->kind == COFFER_NODE_U64 || node->kind == COFFER_NODE_I64;
}

static bool is_number(const coffer_node *node)
{
    return is_integer(node) || node->kind == COFFER_NODE_F64;
}

static bool same_number(const coffer_node *a, const coffer_node *b)
{
    bool a_negative = a->kind == COFFER_NODE_I64 && a->as.i64 < 0;
    bool b_negative = b->kind == COFFER_NODE_I64 && b->as.i64 < 0;
    if (is_integer(a) && is_integer(b)) /* the members of a union that are both 64 bits wide */
        return a_negative == b_negative && a->as.u64 == b->as.u64;
    double x = coffer_node_get_f64(a), y = coffer_node_get_f64(b);
    return x == y || (x != x && y != y);
}

static bool same_scalar(const coffer_node *a, const coffer_node *b)
{
    if (is_number(a) && is_number(b))
        return same_number(a, b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == COFFER_NODE_BOOL)
        return a->as.boolean == b->as.boolean;
    if (a->kind == COFFER_NODE_TEXT)
        return a->text_len == b->text_len && memcmp(a->as.text, b->as.text, a->text_len) == 0;
    return a->kind == COFFER_NODE_NULL;
}

/* ---- Output ---- */

static void put_cut(coffer_node *entry, const char *name, const char *text)
{
    static const char mark[] = "…";
    char shown[LONGEST_SHOWN + sizeof mark];
    size_t len = LONGEST_SHOWN;
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80) /* do not cut inside a character */
        len--;
    memcpy(shown, text, len);
    memcpy(shown + len, mark, sizeof mark);
    coffer_node_add_text_len(entry, name, shown, len + sizeof mark - 1);
}

static coffer_status put_value(coffer_node *entry, const char *name, const coffer_node *node,
                               coffer_error *err)
{
    if (!node)
        return COFFER_OK;
    if (node->kind == COFFER_NODE_TEXT && node->text_len > LONGEST_SHOWN) {
        put_cut(entry, name, node->as.text);
        return COFFER_OK;
    }
    if (node->kind != COFFER_NODE_LIST && node->kind != COFFER_NODE_MAP) {
        coffer_node_add_copy(entry, name, node);
        return COFFER_OK;
    }
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &json, 0);
    coffer__json_write_node(&writer, node);
    coffer_status status = json.failed ? coffer__fail_no_memory(err, json.len) : COFFER_OK;
    if (!status && json.len > LONGEST_SHOWN)
        put_cut(entry, name, coffer__buffer_text(&json));
    else if (!status)
        coffer_node_add_copy(entry, name, node);
    coffer__buffer_free(&json);
    return status;
}

static coffer_status note_change(comparison *diff, const coffer_node *a, const coffer_node *b,
                                 coffer_error *err)
{
    coffer__node_changes *changes = diff->changes;
    if (changes->count++ >= changes->max_shown || !changes->list)
        return COFFER_OK;
    coffer_node *entry = coffer_node_add_map(changes->list, NULL);
    coffer_node_add_text_len(entry, "path", coffer__buffer_text(&diff->path), diff->path.len);
    coffer_node_add_text(entry, "change", !a ? "added" : !b ? "removed" : "changed");
    coffer_status status = put_value(entry, "a", a, err);
    return status ? status : put_value(entry, "b", b, err);
}

/* ---- Paths ---- */

static size_t push_name(coffer__buffer *path, const char *name)
{
    size_t before = path->len;
    if (before > 0)
        coffer__buffer_append(path, ".", 1);
    for (; *name; name++) {
        if (*name == '.' || *name == '\\')
            coffer__buffer_append(path, "\\", 1);
        coffer__buffer_append(path, name, 1);
    }
    return before;
}

static size_t push_index(coffer__buffer *path, size_t index)
{
    size_t before = path->len;
    coffer__buffer_printf(path, "%s%zu", before > 0 ? "." : "", index);
    return before;
}

/* ---- Trees ---- */

static int by_name(const void *left, const void *right)
{
    const coffer_node *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* *out : the members sorted by name, freed by the caller. */
static coffer_status sort_members(const coffer_node ***out, const coffer_node *map, coffer_error *err)
{
    size_t count = 0;
    const coffer_node **members = coffer__alloc_array(map->as.count + 1, sizeof *members);
    if (!members)
        return coffer__fail_no_memory(err, (map->as.count + 1) * sizeof *members);
    for (const coffer_node *child = map->first; child; child = child->next)
        members[count++] = child;
    qsort(members, count, sizeof *members, by_name);
    *out = members;
    return COFFER_OK;
}

static coffer_status compare_maps(comparison *diff, const coffer_node *a, const coffer_node *b,
                                  coffer_error *err)
{
    const coffer_node **in_a = NULL, **in_b = NULL;
    size_t a_count = a->as.count, b_count = b->as.count;
    coffer_status status = sort_members(&in_a, a, err);
    if (!status)
        status = sort_members(&in_b, b, err);
    for (size_t i = 0, k = 0; !status && (i < a_count || k < b_count);) {
        int order = i == a_count ? 1 : k == b_count ? -1 : by_name(&in_a[i], &in_b[k]);
        size_t before = push_name(&diff->path, order <= 0 ? in_a[i]->name : in_b[k]->name);
        const coffer_node *left = order <= 0 ? in_a[i++] : NULL;
        const coffer_node *right = order >= 0 ? in_b[k++] : NULL;
        status = compare(diff, left, right, err);
        diff->path.len = before;
    }
    coffer__free(in_a);
    coffer__free(in_b);
    return status;
}

static coffer_status compare_lists(comparison *diff, const coffer_node *a, const coffer_node *b,
                                   coffer_error *err)
{
    const coffer_node *left = a->first, *right = b->first;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && (left || right); i++) {
        size_t before = push_index(&diff->path, i);
        status = compare(diff, left, right, err);
        diff->path.len = before;
        left = left ? left->next : NULL;
        right = right ? right->next : NULL;
    }
    return status;
}

static coffer_status compare(comparison *diff, const coffer_node *a, const coffer_node *b, coffer_error *err)
{
    if (a && b && a->kind == COFFER_NODE_MAP && b->kind == COFFER_NODE_MAP)
        return compare_maps(diff, a, b, err);
    if (a && b && a->kind == COFFER_NODE_LIST && b->kind == COFFER_NODE_LIST)
        return compare_lists(diff, a, b, err);
    return a && b && same_scalar(a, b) ? COFFER_OK : note_change(diff, a, b, err);
}

coffer_status coffer__node_diff(coffer__node_changes *changes, const char *path, const coffer_node *a,
                                const coffer_node *b, coffer_error *err)
{
    comparison diff = { changes, COFFER__BUFFER_INIT };
    if (!a && !b)
        return COFFER_OK;
    coffer__buffer_append(&diff.path, path, strlen(path));
    coffer_status status = compare(&diff, a, b, err);
    if (!status && diff.path.failed)
        status = coffer__fail_no_memory(err, diff.path.len);
    coffer__buffer_free(&diff.path);
    if (!status && changes->list)
        status = coffer_node_status(changes->list, err);
    return status;
}

coffer__node_changes coffer__node_changes_new(coffer_node *out, uint64_t max_shown)
{
    return (coffer__node_changes){ coffer_node_add_list(out, "metadata"), max_shown, 0 };
}
