/* A file by mapping. Pages that a journal changes are private copies with the old bytes written into them. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/guard.h"
#include "io/os.h"
#include "io/source_private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct mapped_file {
    int fd;
    int guard; /* −1 for an empty file, which has no mapping */
    uint8_t *base;
    size_t len;
    const char *name; /* the source's */
    coffer__journal *journal;
};

/* Whether the bytes before `end` were there. The size is looked at each time: a file that is cut inside a
 * page has zeros in the rest of it, and no signal tells. */
static coffer_status expect_bytes(const struct mapped_file *map, uint64_t end, coffer_error *err)
{
    uint64_t now;
    if (map->guard < 0)
        return COFFER_OK;
    bool damaged = coffer__guard_damaged(map->guard);
    coffer_status status = coffer__file_size(&now, map->fd, map->name, err);
    if (status != COFFER_OK)
        return status;
    if (now < end || (damaged && now < map->len))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "%s: cut from %zu to %llu bytes while it was read", map->name, map->len,
                            (unsigned long long)now);
    if (damaged)
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "%s: a part of its %zu bytes could not be read, or was gone for a time",
                            map->name, map->len);
    return COFFER_OK;
}

static coffer_status map_intact(void *context, coffer_error *err)
{
    const struct mapped_file *map = context;
    return expect_bytes(map, map->len, err);
}

static coffer_status map_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const struct mapped_file *map = context;
    memcpy(out, map->base + offset, len);
    return expect_bytes(map, offset + len, err);
}

static const uint8_t *map_view(void *context, uint64_t offset, size_t len)
{
    (void)len;
    return ((const struct mapped_file *)context)->base + offset;
}

static void unmap(const struct mapped_file *map)
{
    if (map->guard < 0)
        return;
    coffer__guard_remove(map->guard);
    coffer__os_unmap(map->base, map->len);
}

static void map_close(void *context)
{
    struct mapped_file *map = context;
    unmap(map);
    coffer__file_close(map->fd);
    coffer__journal_free(map->journal);
    coffer__free(map);
}

/* Maps and guards map->len bytes of map->fd. */
static coffer_status map_file(struct mapped_file *map, const char *name, coffer_error *err)
{
    static uint8_t nothing;
    if (map->len == 0) {
        map->base = &nothing;
        return COFFER_OK;
    }
    void *base = coffer__os_map(map->fd, map->len, map->journal != NULL);
    if (base == MAP_FAILED)
        return coffer__fail_errno(err, "cannot map", name, errno);
    int guard = coffer__guard_add(base, map->len);
    if (guard < 0) {
        coffer__os_unmap(base, map->len);
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%s: too many files are mapped", name);
    }
    map->base = base;
    map->guard = guard;
    if (!map->journal)
        return COFFER_OK;
    coffer__journal_lay_over(map->journal, base, 0, map->len);
    if (coffer__os_protect(base, map->len) != 0) {
        coffer_status status = coffer__fail_errno(err, "cannot protect the mapping", name, errno);
        unmap(map);
        return status;
    }
    return COFFER_OK;
}

coffer_status coffer__source_over_map(coffer_source **out, int fd, uint64_t size, const char *name,
                                      coffer__journal *journal, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = map_read_at,
        .view = map_view,
        .intact = map_intact,
        .close = map_close,
    };
    uint64_t shown = journal ? journal->old_size : size;
    struct mapped_file map = { .fd = fd, .guard = -1, .journal = journal };
    if (shown > size || !coffer__to_size(&map.len, shown))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s: %llu bytes cannot be mapped, the file has %llu", name,
                            (unsigned long long)shown, (unsigned long long)size);
    struct mapped_file *context = coffer__malloc(sizeof *context);
    if (!context)
        return coffer__fail_no_memory(err, sizeof *context);
    coffer_source *src = NULL;
    coffer_status status = map_file(&map, name, err);
    if (status != COFFER_OK)
        goto out;
    status = coffer_source_new(&src, &ops, context, shown, name, err);
    if (status != COFFER_OK) {
        unmap(&map);
        goto out;
    }
    *context = map;
    context->name = src->name;
    src->fd = fd;
    src->interrupted = journal != NULL;
    *out = src;
    context = NULL;
out:
    coffer__free(context);
    return status;
}
