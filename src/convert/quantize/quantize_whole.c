/* int8 and int4 have one scale for a whole tensor: its bounds have to be known before the first code. Each is
 * a pass over the tensor; percentiles are exact, by counting the upper halves of the numbers' bits, then the
 * lower halves of those in the right place. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define PIECE 1024
#define BINS ((size_t)1 << 16)

/* Elements as float32, a piece at a time. What is not finite becomes 0: the first pass has found it. */
static size_t take_piece(float out[PIECE], const coffer__tensors_run *run, size_t done, size_t count)
{
    size_t now = count - done < PIECE ? count - done : PIECE;
    const uint8_t *at = (const uint8_t *)run->elements + done * coffer_dtype_size(run->dtype);
    coffer__elements_convert(out, COFFER_DTYPE_F32, at, run->dtype, now);
    return now;
}

/* ---- Least and greatest ---- */

typedef struct range {
    float min, max;
    uint64_t bad; /* index of the first that is not finite; UINT64_MAX = none */
} range;

static void range_init(void *result)
{
    *(range *)result = (range){ 0.0f, 0.0f, UINT64_MAX };
}

static void range_step(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                       size_t count)
{
    range *bounds = result;
    float piece[PIECE];
    (void)context;
    for (size_t done = 0, now; done < count; done += now) {
        now = take_piece(piece, runs, done, count);
        for (size_t i = 0; i < now; i++) {
            if (!isfinite(piece[i])) {
                bounds->bad = bounds->bad < first + done + i ? bounds->bad : first + done + i;
                continue;
            }
            bounds->min = piece[i] < bounds->min ? piece[i] : bounds->min;
            bounds->max = piece[i] > bounds->max ? piece[i] : bounds->max;
        }
    }
}

static void range_merge(void *into, const void *from)
{
    range *a = into;
    const range *b = from;
    a->min = b->min < a->min ? b->min : a->min;
    a->max = b->max > a->max ? b->max : a->max;
    a->bad = b->bad < a->bad ? b->bad : a->bad;
}

static const coffer__tensors_pass ranging = { sizeof(range), range_init, range_step, range_merge };

/* ---- Percentiles ---- */

/* Sums of whole numbers are the same in any order: all threads count in one place. */
typedef struct counting {
    atomic_uint_fast64_t *bins;
    bool magnitudes;
    bool lower; /* halves, of the numbers with this upper one */
    uint32_t upper;
} counting;

/* A number whose order is that of the values. */
static uint32_t key_of(float value, bool magnitudes)
{
    uint32_t bits;
    value = isfinite(value) ? value : 0.0f;
    memcpy(&bits, &value, sizeof bits);
    if (magnitudes)
        return bits & UINT32_C(0x7FFFFFFF);
    return bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
}

static float value_of(uint32_t key, bool magnitudes)
{
    uint32_t bits = key;
    float value;
    if (!magnitudes)
        bits = key >> 31 ? key & UINT32_C(0x7FFFFFFF) : ~key;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void nothing(void *result)
{
    *(char *)result = 0;
}

static void count_step(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                       size_t count)
{
    const counting *counts = context;
    float piece[PIECE];
    (void)result;
    (void)first;
    for (size_t done = 0, now; done < count; done += now) {
        now = take_piece(piece, runs, done, count);
        for (size_t i = 0; i < now; i++) {
            uint32_t key = key_of(piece[i], counts->magnitudes);
            if (!counts->lower)
                atomic_fetch_add_explicit(&counts->bins[key >> 16], 1, memory_order_relaxed);
            else if (key >> 16 == counts->upper)
                atomic_fetch_add_explicit(&counts->bins[key & 0xFFFF], 1, memory_order_relaxed);
        }
    }
}

static void count_merge(void *into, const void *from)
{
    (void)into;
    (void)from;
}

static const coffer__tensors_pass counting_pass = { 1, nothing, count_step, count_merge };

/* The bin that holds the number of a rank; *rank becomes its rank in there. */
static uint32_t find_bin(uint64_t *rank, const counting *counts)
{
    uint32_t bin = 0;
    for (; bin < BINS - 1; bin++) {
        uint64_t here = atomic_load_explicit(&counts->bins[bin], memory_order_relaxed);
        if (*rank < here)
            break;
        *rank -= here;
    }
    return bin;
}

static coffer_status select_rank(float *out, uint64_t rank, counting *counts,
                                 const coffer__tensors_place *place, coffer__tensors_workers *workers,
                                 coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint32_t halves[2] = { 0, 0 };
    for (int i = 0; !status && i < 2; i++) {
        char no_result;
        for (size_t bin = 0; bin < BINS; bin++)
            atomic_store_explicit(&counts->bins[bin], 0, memory_order_relaxed);
        counts->lower = i == 1;
        counts->upper = halves[0];
        status = coffer__tensors_pass_run(&no_result, workers, &counting_pass, counts, place, 1, err);
        if (!status)
            halves[i] = find_bin(&rank, counts);
    }
    *out = value_of(halves[0] << 16 | halves[1], counts->magnitudes);
    return status;
}

/* Narrows the range to the percentile. */
static coffer_status clip(range *bounds, double percentile, bool activations,
                          const coffer__tensors_place *place, coffer__tensors_workers *workers,
                          coffer_error *err)
{
    uint64_t count = coffer_tensors_at(place->set, place->tensor)->elements;
    uint64_t rank = (uint64_t)ceil(percentile / 100.0 * (double)count);
    counting counts = { .magnitudes = !activations };
    rank = rank > count ? count - 1 : rank > 0 ? rank - 1 : 0;
    counts.bins = coffer__calloc(BINS, sizeof *counts.bins);
    if (!counts.bins)
        return coffer__fail_no_memory(err, BINS * sizeof *counts.bins);
    coffer_status status = select_rank(&bounds->max, rank, &counts, place, workers, err);
    bounds->min = -bounds->max;
    if (!status && activations)
        status = select_rank(&bounds->min, count - 1 - rank, &counts, place, workers, err);
    coffer__free(counts.bins);
    return status;
}

/* ---- The scale ---- */

static coffer__quantize_whole scale_of(const range *bounds, bool activations, int largest)
{
    float low = bounds->min < 0.0f ? bounds->min : 0.0f, high = bounds->max > 0.0f ? bounds->max : 0.0f;
    float magnitude = -low > high ? -low : high;
    coffer__quantize_whole out = { 0.0f, 0.0f, -magnitude, magnitude };
    if (!activations) {
        out.scale = (float)((double)magnitude / largest);
        return out;
    }
    out.min_clip = low;
    out.max_clip = high;
    out.scale = (float)(((double)high - (double)low) / (2 * largest));
    if (out.scale > 0.0f) /* an integer, so that 0 stays 0 */
        out.zero = (float)rint(-largest - (double)low / (double)out.scale);
    if (out.zero > (float)largest)
        out.zero = (float)largest;
    return out;
}

coffer_status coffer__quantize_find_whole(coffer__quantize_whole *out, const coffer__quantize_task *task,
                                          double percentile, coffer__tensors_workers *workers,
                                          coffer_error *err)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    coffer__tensors_place place = { task->chosen->set, task->chosen->index };
    range bounds;
    coffer_status status = coffer__tensors_pass_run(&bounds, workers, &ranging, NULL, &place, 1, err);
    if (status)
        return status;
    if (bounds.bad != UINT64_MAX && !task->nan_to_zero)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "\"%s\" is not finite at row %" PRIu64 ", column %" PRIu64, tensor->name,
                            bounds.bad / tensor->dims[1], bounds.bad % tensor->dims[1]);
    if (percentile > 0)
        status = clip(&bounds, percentile, task->activations, &place, workers, err);
    if (status)
        return status;
    *out = scale_of(&bounds, task->activations, coffer__quant_largest_code(task->type));
    return COFFER_OK;
}
