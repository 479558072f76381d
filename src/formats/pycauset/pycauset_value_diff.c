/* The differences between two states of the metadata. */
#include "formats/pycauset/pycauset_private.h"

#include "base/fail.h"
#include "base/report.h"

typedef struct comparison {
    coffer_node *changes;
    coffer__buffer path;
} comparison;

static size_t push_index(comparison *diff, size_t index)
{
    size_t before = diff->path.len;
    coffer__buffer_printf(&diff->path, "%s%zu", before > 0 ? "." : "", index);
    return before;
}

static void note(comparison *diff, const coffer_pycauset_value *before, const coffer_pycauset_value *after)
{
    coffer_node *entry = coffer_node_add_map(diff->changes, NULL);
    coffer_node_add_text_len(entry, "path", coffer__buffer_text(&diff->path), diff->path.len);
    coffer_node_add_text(entry, "change", !before ? "added" : !after ? "removed" : "changed");
    coffer__pycauset_to_node(entry, "old", before);
    coffer__pycauset_to_node(entry, "new", after);
}

static void compare(comparison *diff, const coffer_pycauset_value *before,
                    const coffer_pycauset_value *after);

static void compare_maps(comparison *diff, const coffer_pycauset_value *before,
                         const coffer_pycauset_value *after)
{
    size_t i = 0, j = 0;
    while (i < before->count || j < after->count) {
        const coffer_pycauset_value *x = coffer_pycauset_value_at(before, i);
        const coffer_pycauset_value *y = coffer_pycauset_value_at(after, j);
        int order = !x ? 1 : !y ? -1 : coffer__pycauset_compare_keys(x->key, x->key_len, y->key, y->key_len);
        size_t back = coffer__pycauset_push_key(&diff->path, order <= 0 ? x : y);
        if (order == 0)
            compare(diff, x, y);
        else
            note(diff, order < 0 ? x : NULL, order < 0 ? NULL : y);
        i += order <= 0;
        j += order >= 0;
        diff->path.len = back;
    }
}

static void compare_arrays(comparison *diff, const coffer_pycauset_value *before,
                           const coffer_pycauset_value *after)
{
    for (size_t i = 0; i < before->count || i < after->count; i++) {
        const coffer_pycauset_value *x = coffer_pycauset_value_at(before, i);
        const coffer_pycauset_value *y = coffer_pycauset_value_at(after, i);
        size_t back = push_index(diff, i);
        if (x && y)
            compare(diff, x, y);
        else
            note(diff, x, y);
        diff->path.len = back;
    }
}

static void compare(comparison *diff, const coffer_pycauset_value *before, const coffer_pycauset_value *after)
{
    if (before->kind == COFFER_PYCAUSET_MAP && after->kind == COFFER_PYCAUSET_MAP)
        compare_maps(diff, before, after);
    else if (before->kind == COFFER_PYCAUSET_ARRAY && after->kind == COFFER_PYCAUSET_ARRAY)
        compare_arrays(diff, before, after);
    else if (!coffer__pycauset_equal(before, after))
        note(diff, before, after);
}

coffer_status coffer_pycauset_value_diff(coffer_node *out, const coffer_pycauset_value *before,
                                         const coffer_pycauset_value *after, coffer_error *err)
{
    static const coffer_pycauset_value nothing = { .kind = COFFER_PYCAUSET_MAP };
    comparison diff = { coffer_node_add_list(out, "changes"), COFFER__BUFFER_INIT };
    compare(&diff, before ? before : &nothing, after ? after : &nothing);
    coffer_status status =
        diff.path.failed ? coffer__fail_no_memory(err, diff.path.len) : coffer_node_status(out, err);
    coffer__buffer_free(&diff.path);
    return status;
}
