#include "formats/pycauset/pycauset_diff.h"

#include "base/fail.h"
#include "base/report.h"

#include <string.h>

static bool says_how_it_is_stored(const coffer_pycauset_value *value)
{
    static const char *const keys[] = {
        "rows",           "cols", "matrix_type",    "data_type",
        "payload_uuid",   "view", "payload_layout", COFFER__PYCAUSET_CHECKSUMS_KEY,
        "block_manifest",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(value->key, keys[i]) == 0)
            return true;
    }
    return false;
}

/* The cached values that hold, without their signatures. */
static coffer_status take_cached(coffer_pycauset_value *out, coffer__arena *memory,
                                 const coffer_pycauset *matrix, const coffer_pycauset_value *cached,
                                 coffer_error *err)
{
    coffer_pycauset_value *entries = coffer__arena_take(memory, cached->count * sizeof *entries);
    uint32_t count = 0;
    if (!entries)
        return coffer__fail_no_memory(err, cached->count * sizeof *entries);
    for (uint32_t i = 0; i < cached->count; i++) {
        const coffer_pycauset_value *entry = &cached->as.children[i];
        if (!coffer__pycauset_is_fresh(entry, matrix->metadata.root, matrix->view_signature))
            continue;
        entries[count] = *coffer__pycauset_get_key(entry, "value");
        entries[count].key = entry->key;
        entries[count++].key_len = entry->key_len;
    }
    *out = *cached;
    out->as.children = entries;
    out->count = count;
    return COFFER_OK;
}

static coffer_status take_metadata(coffer_pycauset_value *out, coffer__arena *memory,
                                   const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_value *root = matrix->metadata.root;
    coffer_pycauset_value *kept = coffer__arena_take(memory, root->count * sizeof *kept);
    uint32_t count = 0;
    if (!kept)
        return coffer__fail_no_memory(err, root->count * sizeof *kept);
    for (uint32_t i = 0; i < root->count; i++) {
        const coffer_pycauset_value *value = &root->as.children[i];
        coffer_status status = COFFER_OK;
        if (says_how_it_is_stored(value))
            continue;
        kept[count] = *value;
        if (value->kind == COFFER_PYCAUSET_MAP && strcmp(value->key, "cached") == 0)
            status = take_cached(&kept[count], memory, matrix, value, err);
        if (status)
            return status;
        count++;
    }
    *out = *root;
    out->as.children = kept;
    out->count = count;
    return COFFER_OK;
}

coffer_status coffer__pycauset_diffed_metadata_compare(coffer__pycauset_diffed_metadata *out,
                                                       const coffer_pycauset *a, const coffer_pycauset *b,
                                                       coffer_error *err)
{
    coffer_node *found = NULL;
    coffer_status status;
    if ((status = take_metadata(&out->a, &out->memory, a, err)) ||
        (status = take_metadata(&out->b, &out->memory, b, err)) || (status = coffer_node_new(&found, err)))
        return status;
    status = coffer_pycauset_value_diff(found, &out->a, &out->b, err);
    if (status == COFFER_OK)
        out->changes = coffer_node_count(coffer_node_find(found, "changes"));
    coffer_node_free(found);
    return status;
}

void coffer__pycauset_diffed_metadata_free(coffer__pycauset_diffed_metadata *metadata)
{
    coffer__arena_free(&metadata->memory);
}

coffer_status coffer__pycauset_diffed_metadata_put(coffer_node *out, const char *name,
                                                   const coffer__pycauset_diffed_metadata *metadata,
                                                   coffer_error *err)
{
    coffer_node *map = coffer__node_map(out, name);
    return map ? coffer_pycauset_value_diff(map, &metadata->a, &metadata->b, err)
               : coffer__node_status(out, err);
}
