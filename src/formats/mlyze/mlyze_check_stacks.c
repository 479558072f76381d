#include "formats/mlyze/mlyze_check.h"

#include "base/report.h"

/* Ids that frames refer to and no table lists: the first, and how many. */
typedef struct dangling {
    const char *member, *table;
    uint64_t count, id, stack;
} dangling;

static void look_up(dangling *found, const coffer__mlyze_names *names, uint64_t id, uint64_t stack)
{
    if (id == COFFER__MLYZE_NO_ID || coffer__mlyze_ids_find(&names->ids, id) != SIZE_MAX)
        return;
    if (found->count++ == 0) {
        found->id = id;
        found->stack = stack;
    }
}

static void report(const coffer__mlyze_checker *check, const dangling *found)
{
    if (found->count > 0)
        coffer__report_add(check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR,
                           COFFER__MLYZE_HEADER_SIZE,
                           "stack %llu: %s %llu is not in %s (frames like it: %llu)",
                           (unsigned long long)found->stack, found->member, (unsigned long long)found->id,
                           found->table, (unsigned long long)found->count);
}

void coffer__mlyze_check_stacks(const coffer__mlyze_checker *check)
{
    const coffer__mlyze_metadata *metadata = &check->trace->metadata;
    dangling files = { .member = "file_id", .table = "files" };
    dangling functions = { .member = "func_id", .table = "functions" };
    for (size_t i = 0; i < metadata->stacks.ids.count; i++) {
        size_t depth;
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, check->trace, i);
        for (size_t j = 0; j < depth; j++) {
            look_up(&files, &metadata->files, frames[j].file_id, metadata->stacks.ids.items[i]);
            look_up(&functions, &metadata->functions, frames[j].func_id, metadata->stacks.ids.items[i]);
        }
    }
    report(check, &files);
    report(check, &functions);
}
