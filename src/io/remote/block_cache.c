#include "io/remote/block_cache.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "io/remote/remote.h"

#include <sys/mman.h>

typedef struct frame {
    uint64_t file, block;
    uint32_t next_in_bucket;
    uint32_t older, newer; /* a ring through the frame `count`, its head */
    uint32_t holders;
    coffer__frame_state state;
} frame;

static struct block_cache {
    frame *frames; /* count + 1 */
    uint32_t *buckets;
    uint8_t *bytes;
    uint32_t count, bucket_mask;
} cache;

static void unlink_age(uint32_t i)
{
    frame *f = &cache.frames[i];
    cache.frames[f->older].newer = f->newer;
    cache.frames[f->newer].older = f->older;
}

/* Next to the head, on its older side: the youngest. */
static void make_youngest(uint32_t i)
{
    frame *head = &cache.frames[cache.count], *f = &cache.frames[i];
    f->newer = cache.count;
    f->older = head->older;
    cache.frames[head->older].newer = i;
    head->older = i;
}

static void make_oldest(uint32_t i)
{
    frame *head = &cache.frames[cache.count], *f = &cache.frames[i];
    f->older = cache.count;
    f->newer = head->newer;
    cache.frames[head->newer].older = i;
    head->newer = i;
}

coffer_status coffer__cache_prepare(uint64_t bytes, coffer_error *err)
{
    uint64_t count = bytes / COFFER__REMOTE_BLOCK;
    uint32_t buckets = 1;
    if (cache.frames)
        return COFFER_OK;
    count = count < 256 ? 256 : count > (UINT32_C(1) << 24) ? UINT32_C(1) << 24 : count;
    while (buckets < 2 * count)
        buckets *= 2;
    frame *frames = coffer__calloc((size_t)count + 1, sizeof *frames);
    uint32_t *heads = coffer__alloc_array(buckets, sizeof *heads);
    void *slab = mmap(NULL, (size_t)count * COFFER__REMOTE_BLOCK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!frames || !heads || slab == MAP_FAILED) {
        coffer__free(frames);
        coffer__free(heads);
        if (slab != MAP_FAILED)
            munmap(slab, (size_t)count * COFFER__REMOTE_BLOCK);
        return coffer__fail_no_memory(err, count * COFFER__REMOTE_BLOCK);
    }
    cache = (struct block_cache){ frames, heads, slab, (uint32_t)count, buckets - 1 };
    for (uint32_t i = 0; i < buckets; i++)
        heads[i] = COFFER__FRAME_NONE;
    frames[count].older = frames[count].newer = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++)
        make_youngest(i);
    return COFFER_OK;
}

uint32_t coffer__cache_capacity(void)
{
    return cache.count;
}

static uint32_t *bucket_of(uint64_t file, uint64_t block)
{
    const uint64_t key[2] = { file, block };
    return &cache.buckets[coffer__hash(key, sizeof key) & cache.bucket_mask];
}

uint32_t coffer__cache_find(uint64_t file, uint64_t block)
{
    uint32_t i = *bucket_of(file, block);
    while (i != COFFER__FRAME_NONE && (cache.frames[i].file != file || cache.frames[i].block != block))
        i = cache.frames[i].next_in_bucket;
    return i;
}

static void empty(uint32_t i)
{
    frame *f = &cache.frames[i];
    if (f->state == COFFER__FRAME_FREE)
        return;
    uint32_t *at = bucket_of(f->file, f->block);
    while (*at != i)
        at = &cache.frames[*at].next_in_bucket;
    *at = f->next_in_bucket;
    f->state = COFFER__FRAME_FREE;
}

uint32_t coffer__cache_claim(uint64_t file, uint64_t block)
{
    uint32_t i = cache.frames[cache.count].newer; /* the oldest */
    while (i != cache.count && cache.frames[i].holders)
        i = cache.frames[i].newer;
    if (i == cache.count)
        return COFFER__FRAME_NONE;
    empty(i);
    uint32_t *head = bucket_of(file, block);
    cache.frames[i].file = file;
    cache.frames[i].block = block;
    cache.frames[i].next_in_bucket = *head;
    cache.frames[i].holders = 1;
    cache.frames[i].state = COFFER__FRAME_LOADING;
    *head = i;
    unlink_age(i);
    make_youngest(i);
    return i;
}

void coffer__cache_pin(uint32_t number)
{
    cache.frames[number].holders++;
}

void coffer__cache_refresh(uint32_t number)
{
    unlink_age(number);
    make_youngest(number);
}

void coffer__cache_hold(uint32_t number)
{
    coffer__cache_pin(number);
    coffer__cache_refresh(number);
}

static void give_up(uint32_t i)
{
    empty(i);
    unlink_age(i);
    make_oldest(i);
}

void coffer__cache_release(uint32_t number)
{
    if (--cache.frames[number].holders == 0 && cache.frames[number].state == COFFER__FRAME_FAILED)
        give_up(number);
}

coffer__frame_state coffer__cache_state(uint32_t number)
{
    return cache.frames[number].state;
}

void coffer__cache_settle(uint32_t number, bool ready)
{
    cache.frames[number].state = ready ? COFFER__FRAME_READY : COFFER__FRAME_FAILED;
}

uint8_t *coffer__cache_bytes(uint32_t number)
{
    return cache.bytes + (size_t)number * COFFER__REMOTE_BLOCK;
}

void coffer__cache_forget(uint64_t file)
{
    for (uint32_t i = 0; i < cache.count; i++)
        if (cache.frames[i].state != COFFER__FRAME_FREE && cache.frames[i].file == file &&
            !cache.frames[i].holders)
            give_up(i);
}
