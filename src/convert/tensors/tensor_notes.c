/* Notes about tensors whose type changes: how many, from which type to which, and the bytes before and after.
 */
#include "base/report.h"
#include "base/text.h"
#include "convert/tensors/tensor_selection.h"

#include <inttypes.h>
#include <string.h>

#define MOST_CHANGES (sizeof((coffer__type_changes *)NULL)->items / sizeof(coffer__type_change))

void coffer__type_changes_add(coffer__type_changes *changes, const coffer_tensor *tensor, const char *how,
                              const char *to, uint64_t after)
{
    const char *from = coffer_tensor_dtype_name(tensor);
    size_t i = 0;
    for (; i < changes->count; i++) {
        const coffer__type_change *item = &changes->items[i];
        if (strcmp(item->from, from) == 0 && strcmp(item->to, to) == 0 && strcmp(item->how, how) == 0)
            break;
    }
    if (i == MOST_CHANGES)
        i--;
    else if (i == changes->count)
        changes->items[changes->count++] = (coffer__type_change){ .from = from, .to = to, .how = how };
    changes->items[i].tensors++;
    changes->items[i].before += tensor->size;
    changes->items[i].after += after;
}

void coffer__type_changes_note(coffer_report *notes, const coffer__type_changes *changes)
{
    for (size_t i = 0; notes && i < changes->count; i++) {
        const coffer__type_change *item = &changes->items[i];
        coffer__size_text before, after;
        coffer__size_text_of(before, item->before);
        coffer__size_text_of(after, item->after);
        bool same = strcmp(before, after) == 0;
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%" PRIu64 " %s %s %s %s: %s%s%s", item->tensors,
                           item->tensors == 1 ? "tensor of type" : "tensors of type", item->from, item->how,
                           item->to, before, same ? ", as before" : " become ", same ? "" : after);
    }
}

void coffer__selection_note(coffer_report *notes, const coffer__selection *selection)
{
    coffer__type_changes changes = { .count = 0 };
    for (size_t i = 0; notes && i < selection->count; i++) {
        const coffer__chosen_tensor *chosen = &selection->items[i];
        /* A cast of plain floats is what the caller asked for. */
        if (chosen->as_is || chosen->quantize || coffer_dtype_size(chosen->tensor->dtype) != 0)
            continue;
        coffer__type_changes_add(&changes, chosen->tensor,
                                 chosen->repack ? "stored exactly as" : "decoded to",
                                 coffer_dtype_name(chosen->dtype), chosen->size);
    }
    coffer__type_changes_note(notes, &changes);
}
