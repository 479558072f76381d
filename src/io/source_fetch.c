#include "io/source_fetch.h"

#include "base/fail.h"
#include "base/memory.h"

coffer_status coffer__source_fetch(const uint8_t **out, coffer_source *src, uint64_t offset, size_t len,
                                   void *scratch, coffer_error *err)
{
    const uint8_t *view = coffer_source_view(src, offset, len);
    if (view) {
        *out = view;
        return COFFER_OK;
    }
    coffer_status status = coffer_source_read_at(scratch, src, offset, len, err);
    if (!status)
        *out = scratch;
    return status;
}

coffer_status coffer__source_fetch_new(const uint8_t **out, uint8_t **own, coffer_source *src,
                                       uint64_t offset, size_t len, coffer_error *err)
{
    const uint8_t *view = coffer_source_view(src, offset, len);
    if (view) {
        *out = view;
        *own = NULL;
        return COFFER_OK;
    }
    uint8_t *copy = coffer__malloc(len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer_source_read_at(copy, src, offset, len, err);
    if (status) {
        coffer__free(copy);
        return status;
    }
    *out = *own = copy;
    return COFFER_OK;
}
