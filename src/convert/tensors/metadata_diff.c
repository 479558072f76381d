#include "convert/tensors/metadata_diff.h"

#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* A value whose JSON takes more is shown by its beginning. */
#define LONGEST_SHOWN 160

static int by_name(const void *left, const void *right)
{
    return strcmp(coffer_node_get_name(*(const coffer_node *const *)left),
                  coffer_node_get_name(*(const coffer_node *const *)right));
}

/* Members sorted by name (coffer__free). */
static coffer_status sort_members(const coffer_node ***out, const coffer_node *map, coffer_error *err)
{
    size_t count = coffer_node_count(map), filled = 0;
    const coffer_node **members = coffer__alloc_array(count, sizeof *members);
    if (!members)
        return coffer__fail_no_memory(err, count * sizeof *members);
    for (const coffer_node *at = coffer_node_first(map); at; at = coffer_node_next(at))
        members[filled++] = at;
    if (count)
        qsort(members, count, sizeof *members, by_name);
    *out = members;
    return COFFER_OK;
}

static coffer_status to_json(coffer__buffer *out, const coffer_node *node, coffer_error *err)
{
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, out, 0);
    coffer__json_write_node(&writer, node);
    return out->failed ? coffer__fail_no_memory(err, out->len) : COFFER_OK;
}

/* The length of `text` cut to what is shown, at the border of a character. */
static size_t shown_length(const coffer__buffer *text)
{
    size_t len = text->len;
    if (len > LONGEST_SHOWN) {
        len = LONGEST_SHOWN;
        while (len && (text->data[len] & 0xC0) == 0x80)
            len--;
    }
    return len;
}

static void put_side(coffer_node *out, const char *name, const coffer_node *member, coffer__buffer *json)
{
    if (!member) {
        coffer__node_null(out, name);
        return;
    }
    size_t len = shown_length(json);
    if (len < json->len) {
        json->len = len;
        coffer__buffer_append(json, "…", strlen("…"));
    }
    coffer__node_text_len(out, name, coffer__buffer_text(json), json->len);
}

/* a, b : one may be NULL. */
static coffer_status compare_member(coffer_node *list, uint64_t *count, const coffer_node *a,
                                    const coffer_node *b, uint64_t max_shown, coffer_error *err)
{
    coffer__buffer json_a = COFFER__BUFFER_INIT, json_b = COFFER__BUFFER_INIT;
    coffer_status status = a ? to_json(&json_a, a, err) : COFFER_OK;
    if (!status && b)
        status = to_json(&json_b, b, err);
    bool same = a && b && json_a.len == json_b.len &&
                (json_a.len == 0 || memcmp(json_a.data, json_b.data, json_a.len) == 0);
    if (!status && !same && (*count)++ < max_shown) {
        coffer_node *out = coffer__node_map(list, NULL);
        coffer__node_text(out, "name", coffer_node_get_name(a ? a : b));
        put_side(out, "a", a, &json_a);
        put_side(out, "b", b, &json_b);
    }
    coffer__buffer_free(&json_a);
    coffer__buffer_free(&json_b);
    return status;
}

coffer_status coffer__metadata_diff(coffer_node *list, uint64_t *count, const coffer_node *a,
                                    const coffer_node *b, uint64_t max_shown, coffer_error *err)
{
    const coffer_node **in_a = NULL, **in_b = NULL;
    size_t i = 0, k = 0, a_count = coffer_node_count(a), b_count = coffer_node_count(b);
    coffer_status status = sort_members(&in_a, a, err);
    if (!status)
        status = sort_members(&in_b, b, err);
    *count = 0;
    while (!status && (i < a_count || k < b_count)) {
        int order = i == a_count ? 1 : k == b_count ? -1 : by_name(&in_a[i], &in_b[k]);
        status = compare_member(list, count, order <= 0 ? in_a[i] : NULL, order >= 0 ? in_b[k] : NULL,
                                max_shown, err);
        i += order <= 0;
        k += order >= 0;
    }
    coffer__free(in_a);
    coffer__free(in_b);
    return status;
}
