#include "coffer/source.h"

#include <string.h>

static coffer_status memory_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    (void)err;
    memcpy(out, (const uint8_t *)context + offset, len);
    return COFFER_OK;
}

static const uint8_t *memory_view(void *context, uint64_t offset, size_t len)
{
    (void)len;
    return (const uint8_t *)context + offset;
}

coffer_status coffer_source_from_memory(coffer_source **out, const void *data, size_t size, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = memory_read_at,
        .view = memory_view,
    };
    /* The operations only read: the context is const in all but type. NULL is fine for no bytes. */
    void *context = (void *)(uintptr_t)(size > 0 ? data : "");
    return coffer_source_new(out, &ops, context, size, "memory", err);
}
