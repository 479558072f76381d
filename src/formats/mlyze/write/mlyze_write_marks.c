#include "formats/mlyze/write/mlyze_write.h"

#include "base/array.h"
#include "base/memory.h"

static coffer_status add(coffer__mlyze_moments *moments, uint64_t event, uint64_t time, uint64_t id,
                         coffer_error *err)
{
    if (moments->count >= COFFER__MLYZE_MARKS_MAX)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&moments->items, &moments->capacity, moments->count,
                                                     sizeof *moments->items, err);
    if (status == COFFER_OK)
        moments->items[moments->count++] = (coffer__mlyze_moment){ event, time, id };
    return status;
}

coffer_status coffer__mlyze_marks_add(coffer__mlyze_marks *marks, const coffer_mlyze_events *events,
                                      uint64_t first, uint64_t time, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; status == COFFER_OK && i < events->count; i++) {
        if (events->time[i] > time)
            time = events->time[i];
        if (events->type[i] == COFFER_MLYZE_MARKER)
            status = add(&marks->markers, first + i, time, events->id[i], err);
        else if (events->type[i] == COFFER_MLYZE_GC)
            status = add(&marks->collections, first + i, time, 0, err);
    }
    return status;
}

void coffer__mlyze_marks_free(coffer__mlyze_marks *marks)
{
    coffer__free(marks->markers.items);
    coffer__free(marks->collections.items);
    *marks = (coffer__mlyze_marks){ 0 };
}
