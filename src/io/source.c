/* Functions that all kinds of source share. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_struct.h"

#include <inttypes.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_source_ops, COFFER_SOURCE_OPS_INIT)

coffer_status coffer_source_new(coffer_source **out, const coffer_source_ops *ops, void *context,
                                uint64_t size, const char *name, coffer_error *err)
{
    coffer_source_ops known = COFFER_SOURCE_OPS_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, ops, err);
    if (status)
        return status;
    if (!known.read_at)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a source needs a read_at function");
    coffer_source *src = coffer__calloc(1, sizeof *src);
    if (!src)
        return coffer__fail_no_memory(err, sizeof *src);
    src->name = coffer__strdup(name);
    if (!src->name) {
        coffer__free(src);
        return coffer__fail_no_memory(err, strlen(name) + 1);
    }
    src->ops = known;
    src->context = context;
    src->size = size;
    src->fd = -1;
    src->damage = coffer__source_default_damage_report();
    *out = src;
    return COFFER_OK;
}

void coffer_source_close(coffer_source *src)
{
    if (!src)
        return;
    if (src->ops.close)
        src->ops.close(src->context);
    coffer__free(src->facts.path);
    coffer__free(src->name);
    coffer__free(src);
}

uint64_t coffer_source_size(const coffer_source *src)
{
    return src->size;
}

const char *coffer_source_name(const coffer_source *src)
{
    return src->name;
}

const char *coffer__source_other_name(const coffer_source *src)
{
    return src->other ? src->name : NULL;
}

bool coffer_source_interrupted_update(const coffer_source *src)
{
    return src->interrupted;
}

coffer_status coffer_source_read_at(void *out, coffer_source *src, uint64_t offset, size_t len,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!coffer__range_fits(offset, len, src->size))
        status =
            coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                         "%zu bytes at %" PRIu64 " requested, the file has %" PRIu64, len, offset, src->size);
    else if (len > 0)
        status = src->ops.read_at(src->context, out, offset, len, err);
    return status ? coffer__fail_other(err, status, coffer__source_other_name(src)) : COFFER_OK;
}

const uint8_t *coffer_source_view(coffer_source *src, uint64_t offset, size_t len)
{
    if (!src->ops.view || !coffer__range_fits(offset, len, src->size))
        return NULL;
    return src->ops.view(src->context, offset, len);
}

coffer_status coffer_source_intact(coffer_source *src, coffer_error *err)
{
    coffer_status status = src->ops.intact ? src->ops.intact(src->context, err) : COFFER_OK;
    return status ? coffer__fail_other(err, status, coffer__source_other_name(src)) : COFFER_OK;
}
