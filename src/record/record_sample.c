/* Sampling by bytes: every byte has the same chance to be hit, so the distance between two hits is drawn from
 * an exponential distribution. The blocks that were hit are remembered, since only their releases count. */
#include "record/record_thread.h"

#include <string.h>

enum { LINE_BITS = 17, LINE_WORDS = 8, LINES_TRIED = 4, FILTER_BITS = 16 };

/* Addresses of sampled blocks. An address is in one of a few lines, each of a cache line. */
static _Alignas(64) _Atomic uintptr_t sampled[(size_t)1 << LINE_BITS][LINE_WORDS];
/* How many sampled addresses have this hash: almost every release is answered by this small table. */
static _Atomic uint16_t filter[(size_t)1 << FILTER_BITS];

static uint64_t hash_of(uintptr_t address)
{
    return (uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t next_random(coffer__record_thread *thread)
{
    uint64_t x = thread->sample_seed;
    if (x == 0)
        x = (uint64_t)(uintptr_t)thread * UINT64_C(0x9e3779b97f4a7c15) ^ coffer__record_now() ^ 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    thread->sample_seed = x;
    return x;
}

/* The natural logarithm of 0 < x <= 1; the mathematical library is not linked. */
static double logarithm(double x)
{
    const double ln2 = 0.69314718055994530942;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    memcpy(&x, &bits, sizeof x); /* 1 <= x < 2 */
    double t = (x - 1) / (x + 1), square = t * t, power = t, sum = 0;
    for (int i = 1; i < 22; i += 2) {
        sum += power / i;
        power *= square;
    }
    return exponent * ln2 + 2 * sum;
}

static int64_t next_distance(coffer__record_thread *thread)
{
    const double scale = 1.0 / 9007199254740992.0; /* 2^53 */
    double uniform = ((double)(next_random(thread) >> 11) + 1) * scale;
    double distance = -logarithm(uniform) * (double)coffer__record_shared->control.sample_bytes;
    return distance < 1e18 ? (int64_t)distance : (int64_t)1e18;
}

static bool remember(uintptr_t address)
{
    uint64_t hash = hash_of(address);
    for (size_t i = 0; i < LINES_TRIED; i++) {
        _Atomic uintptr_t *line = sampled[((hash >> (64 - LINE_BITS)) + i) % ((size_t)1 << LINE_BITS)];
        for (size_t j = 0; j < LINE_WORDS; j++) {
            uintptr_t empty = 0;
            if (!atomic_compare_exchange_strong(&line[j], &empty, address))
                continue;
            atomic_fetch_add(&filter[hash >> 20 & (((size_t)1 << FILTER_BITS) - 1)], 1);
            return true;
        }
    }
    return false;
}

bool coffer__record_sample(coffer__record_thread *thread, const void *block, size_t size)
{
    if (thread->sample_seed == 0)
        thread->sample_left = next_distance(thread);
    /* One byte more, so that empty blocks can be hit too. */
    thread->sample_left -= size < INT64_MAX / 2 ? (int64_t)size + 1 : INT64_MAX / 2;
    if (COFFER__RECORD_LIKELY(thread->sample_left > 0))
        return false;
    thread->sample_left = next_distance(thread);
    return remember((uintptr_t)block);
}

bool coffer__record_sampled(const void *block)
{
    uintptr_t address = (uintptr_t)block;
    uint64_t hash = hash_of(address);
    _Atomic uint16_t *count = &filter[hash >> 20 & (((size_t)1 << FILTER_BITS) - 1)];
    if (COFFER__RECORD_LIKELY(atomic_load_explicit(count, memory_order_relaxed) == 0))
        return false;
    for (size_t i = 0; i < LINES_TRIED; i++) {
        _Atomic uintptr_t *line = sampled[((hash >> (64 - LINE_BITS)) + i) % ((size_t)1 << LINE_BITS)];
        for (size_t j = 0; j < LINE_WORDS; j++) {
            uintptr_t found = address;
            if (!atomic_compare_exchange_strong(&line[j], &found, 0))
                continue;
            atomic_fetch_sub(count, 1);
            return true;
        }
    }
    return false;
}
