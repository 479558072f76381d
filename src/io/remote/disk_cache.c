#include "io/remote/disk_cache.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "io/file.h"
#include "io/os.h"
#include "io/remote/remote.h"
#include "io/remote/sigv4.h"
#include "io/temporary.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define SUM_SIZE 8

struct coffer__disk_cache {
    int blocks, sums;
};

/* The name of a cached version tells nothing about where it came from. */
static bool cache_path(coffer__buffer *out, const char *folder, const char *name, const char *etag,
                       uint64_t size, const char *extension)
{
    coffer__buffer key = COFFER__BUFFER_INIT;
    char digest[COFFER__SIGV4_HASH_HEX + 1];
    coffer__buffer_printf(&key, "%s\n%s\n%" PRIu64 "\n%zu", name, etag, size, COFFER__REMOTE_BLOCK);
    coffer__sigv4_hash(digest, key.data, key.len);
    coffer__buffer_printf(out, "%s/%s.%s", folder, digest, extension);
    bool complete = !key.failed && !out->failed;
    coffer__buffer_free(&key);
    return complete;
}

static int open_part(const char *folder, const char *name, const char *etag, uint64_t size,
                     const char *extension)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    int fd = -1;
    if (cache_path(&path, folder, name, etag, size, extension))
        fd = coffer__file_try_open(coffer__buffer_text(&path), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    coffer__buffer_free(&path);
    return fd;
}

coffer__disk_cache *coffer__disk_cache_open(const char *folder, const char *name, const char *etag,
                                            uint64_t size)
{
    coffer__disk_cache *cache = coffer__malloc(sizeof *cache);
    if (!cache)
        return NULL;
    coffer__os_make_folder(folder, 0700);
    cache->blocks = open_part(folder, name, etag, size, "blocks");
    cache->sums = cache->blocks >= 0 ? open_part(folder, name, etag, size, "sums") : -1;
    if (cache->sums >= 0)
        return cache;
    coffer__disk_cache_close(cache);
    return NULL;
}

coffer__disk_cache *coffer__disk_cache_open_unnamed(void)
{
    coffer__disk_cache *cache = coffer__malloc(sizeof *cache);
    if (!cache)
        return NULL;
    cache->blocks = cache->sums = -1;
    if (!coffer__temporary_unnamed(&cache->blocks, NULL) && !coffer__temporary_unnamed(&cache->sums, NULL))
        return cache;
    coffer__disk_cache_close(cache);
    return NULL;
}

void coffer__disk_cache_close(coffer__disk_cache *cache)
{
    if (!cache)
        return;
    if (cache->blocks >= 0)
        coffer__file_close(cache->blocks);
    if (cache->sums >= 0)
        coffer__file_close(cache->sums);
    coffer__free(cache);
}

/* The next version may compute another sum: then the cache is empty. Never 0, which is what a file has
 * where nothing was written. */
static uint64_t sum_of(uint64_t block, const void *bytes, size_t len)
{
    uint64_t sum = coffer__hash_keyed(bytes, len, block);
    return sum ? sum : 1;
}

static bool read_whole(int fd, void *out, size_t len, uint64_t offset)
{
    return coffer__os_pread(fd, out, len, offset) == (ssize_t)len;
}

bool coffer__disk_cache_load(coffer__disk_cache *cache, uint64_t block, void *out, size_t len)
{
    uint8_t stored[SUM_SIZE];
    if (!read_whole(cache->sums, stored, sizeof stored, block * SUM_SIZE) || coffer__load_u64(stored) == 0)
        return false;
    return read_whole(cache->blocks, out, len, block * COFFER__REMOTE_BLOCK) &&
           coffer__load_u64(stored) == sum_of(block, out, len);
}

void coffer__disk_cache_store(coffer__disk_cache *cache, uint64_t block, const void *bytes, size_t len)
{
    uint8_t sum[SUM_SIZE];
    coffer__store_u64(sum, sum_of(block, bytes, len));
    if (coffer__os_pwrite(cache->blocks, bytes, len, block * COFFER__REMOTE_BLOCK) == (ssize_t)len)
        coffer__ignore(coffer__os_pwrite(cache->sums, sum, sizeof sum, block * SUM_SIZE) ==
                       (ssize_t)sizeof sum);
}
