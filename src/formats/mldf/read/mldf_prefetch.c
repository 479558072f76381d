/* Announcing values of a remote set, so that they travel together before they are read one by one. */
#include "formats/mldf/mldf_private.h"

#include "base/memory.h"

static size_t locate_rows(coffer_range *out, const coffer_mldf *set, const uint64_t *samples, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i] < set->header.samples)
            out[found++] = (coffer_range){ set->header.metadata + samples[i] * set->schema.row_size,
                                           set->schema.row_size };
    return found;
}

/* Values that cannot be located are left to the read, which reports it. */
static size_t locate_values(coffer_range *out, const coffer_mldf *set, size_t field, const uint64_t *samples,
                            size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        if (!coffer_mldf_entry_at(&entry, set, samples[i], field, NULL) && entry.present && entry.size)
            out[found++] = (coffer_range){ entry.offset, entry.size };
    }
    return found;
}

void coffer_mldf_prefetch(const coffer_mldf *set, size_t field, const uint64_t *samples, size_t count)
{
    if (count < 2 || coffer_source_view(set->source, 0, 1))
        return;
    coffer_range *ranges = coffer__alloc_array(count, sizeof *ranges);
    if (!ranges)
        return; /* reads work without it */
    coffer_source_prefetch(set->source, ranges, locate_rows(ranges, set, samples, count));
    coffer_source_prefetch(set->source, ranges, locate_values(ranges, set, field, samples, count));
    coffer__free(ranges);
}
