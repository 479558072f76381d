/* The order in which samples are read: which one stands where, for each rank and worker, without a list. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/options.h"
#include "coffer/mldf.h"
#include "formats/mldf/read/mldf_shuffle.h"

#include <math.h>

/* A Feistel network over a rectangle of rows × columns instead of two halves of a number of bits: a round
 * adds a keyed hash of the column to the row, or of the row to the column. The rectangle has less than one
 * row more room than is needed, so hardly ever does a position fall outside; then it goes through again until
 * it is inside, which it must be in the end, since its cycle leads back to where it began. */

#define ROUNDS 8
#define ROUNDS_SMALL 24 /* a round changes little where there are few rows and columns */
#define SMALL_MAX 10000
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Every bit of the result depends on every bit of x. */
static uint64_t scramble(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

static uint64_t mldf_mix(uint64_t a, uint64_t b)
{
    return scramble(scramble(a + GOLDEN) ^ (b * GOLDEN + 1));
}

/* A number below `bound` that the round, the key and x decide. */
static uint64_t draw(const coffer__mldf_shuffle *shuffle, unsigned round, uint64_t x, uint64_t bound)
{
    uint64_t bits = scramble(x ^ (shuffle->key + round * GOLDEN));
    return coffer__mul_high(bits, bound);
}

coffer__mldf_shuffle coffer__mldf_shuffle_of(uint64_t count, uint64_t a, uint64_t b)
{
    coffer__mldf_shuffle shuffle = { count, mldf_mix(a, b), 1, 1,
                                     count <= SMALL_MAX ? ROUNDS_SMALL : ROUNDS };
    if (count > 1) {
        shuffle.rows = (uint64_t)sqrt((double)count) + 1;
        shuffle.columns = count / shuffle.rows + (count % shuffle.rows != 0);
    }
    return shuffle;
}

static uint64_t add(uint64_t value, uint64_t step, uint64_t bound)
{
    value += step;
    return value >= bound ? value - bound : value;
}

static uint64_t subtract(uint64_t value, uint64_t step, uint64_t bound)
{
    return value >= step ? value - step : value + bound - step;
}

uint64_t coffer__mldf_shuffle_forward(const coffer__mldf_shuffle *shuffle, uint64_t position)
{
    if (shuffle->count <= 1)
        return 0;
    do {
        uint64_t row = position / shuffle->columns, column = position % shuffle->columns;
        for (unsigned i = 0; i < shuffle->rounds; i += 2) {
            row = add(row, draw(shuffle, i, column, shuffle->rows), shuffle->rows);
            column = add(column, draw(shuffle, i + 1, row, shuffle->columns), shuffle->columns);
        }
        position = row * shuffle->columns + column;
    } while (position >= shuffle->count);
    return position;
}

uint64_t coffer__mldf_shuffle_back(const coffer__mldf_shuffle *shuffle, uint64_t value)
{
    if (shuffle->count <= 1)
        return 0;
    do {
        uint64_t row = value / shuffle->columns, column = value % shuffle->columns;
        for (unsigned i = shuffle->rounds; i > 0; i -= 2) {
            column = subtract(column, draw(shuffle, i - 1, row, shuffle->columns), shuffle->columns);
            row = subtract(row, draw(shuffle, i - 2, column, shuffle->rows), shuffle->rows);
        }
        value = row * shuffle->columns + column;
    } while (value >= shuffle->count);
    return value;
}

uint64_t coffer_mldf_shuffle_at(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t position)
{
    coffer__mldf_shuffle shuffle = coffer__mldf_shuffle_of(count, seed, epoch);
    /* The cycle of a position that is outside need not lead inside. */
    return coffer__mldf_shuffle_forward(&shuffle,
                                        position < count || count == 0 ? position : position % count);
}

/* Makes the order of pages differ from the order inside a window. */
#define PAGES 0x7061676573u

COFFER__INIT_FUNCTION(coffer_mldf_order, COFFER_MLDF_ORDER_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_order_opts, COFFER_MLDF_ORDER_OPTS_INIT)

static coffer_status check_share(const char *what, uint32_t number, uint32_t total, coffer_error *err)
{
    if (number < total)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s %lu of %lu: the first is 0",
                        what, (unsigned long)number, (unsigned long)total);
}

coffer_status coffer_mldf_order_prepare(coffer_mldf_order *out, uint64_t sample_count,
                                        const coffer_mldf_order_opts *opts, coffer_error *err)
{
    coffer_mldf_order_opts options = COFFER_MLDF_ORDER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (options.world == 0)
        options.world = 1;
    if (options.workers == 0)
        options.workers = 1;
    status = check_share("rank", options.rank, options.world, err);
    if (!status)
        status = check_share("worker", options.worker, options.workers, err);
    if (status)
        return status;
    if (options.tail > COFFER_MLDF_TAIL_PAD)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no such tail: %d",
                            (int)options.tail);
    if (options.window_pages > 0 && options.page_samples == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a window needs page_samples: coffer_mldf_samples_per_page gives them");
    coffer_mldf_order order = {
        .struct_size = sizeof order,
        .count = sample_count,
        .seed = options.seed,
        .page_samples = options.page_samples,
        .window_pages = options.window_pages,
        .rank = options.rank,
        .world = options.world,
        .worker = options.worker,
        .workers = options.workers,
        .sequential = options.sequential,
        .tail = options.tail,
    };
    return coffer__give_struct(out, &order, sizeof order, err);
}

/* Samples per epoch of the rank, all workers together. */
static uint64_t rank_length(const coffer_mldf_order *order)
{
    uint64_t share = order->count / order->world, left = order->count % order->world;
    switch (order->tail) {
    case COFFER_MLDF_TAIL_DROP:
        return share;
    case COFFER_MLDF_TAIL_PAD:
        return share + (left != 0);
    default:
        return share + (order->rank < left);
    }
}

uint64_t coffer_mldf_order_length(const coffer_mldf_order *order)
{
    uint64_t length = rank_length(order);
    return length / order->workers + (order->worker < length % order->workers);
}

/* All samples shuffled, or none: they are dealt to the ranks one by one. */
static uint64_t dealt(const coffer_mldf_order *order, uint64_t epoch, uint64_t index)
{
    uint64_t at = (index * order->world + order->rank) % order->count;
    return order->sequential ? at : coffer_mldf_shuffle_at(order->count, order->seed, epoch, at);
}

/* Number `at` of the samples in the order of shuffled pages. The last page may be a short one: those that
 * come after it are that much nearer. */
static uint64_t on_pages(const coffer_mldf_order *order, uint64_t epoch, uint64_t at)
{
    uint64_t size = order->page_samples, pages = coffer__divide_up(order->count, size);
    uint64_t last_size = order->count - (pages - 1) * size;
    coffer__mldf_shuffle shuffle = coffer__mldf_shuffle_of(pages, mldf_mix(order->seed, PAGES), epoch);
    uint64_t short_at = coffer__mldf_shuffle_back(&shuffle, pages - 1) * size;
    uint64_t place = at / size, inside = at % size;
    if (at >= short_at + last_size) {
        place = (at - short_at - last_size) / size + short_at / size + 1;
        inside = (at - short_at - last_size) % size;
    }
    return coffer__mldf_shuffle_forward(&shuffle, place) * size + inside;
}

/* Each rank has a stretch of the shuffled pages, and so pages of its own; a stretch is shuffled window by
 * window. */
static uint64_t windowed(const coffer_mldf_order *order, uint64_t epoch, uint64_t index)
{
    uint64_t length = rank_length(order), share = order->count / order->world;
    uint64_t left = order->count % order->world, start = order->rank * length;
    uint64_t window, first, size;
    if (index >= length)
        index = length ? index % length : 0;
    if (order->tail == COFFER_MLDF_TAIL_UNEVEN)
        start = order->rank * share + (order->rank < left ? order->rank : left);
    if (!coffer__mul_u64(&window, order->page_samples, order->window_pages))
        window = UINT64_MAX;
    first = index - index % window;
    size = length - first < window ? length - first : window;
    index = first + coffer_mldf_shuffle_at(size, mldf_mix(order->seed, start + first), epoch, index - first);
    return on_pages(order, epoch, (start + index) % order->count);
}

uint64_t coffer_mldf_order_at(const coffer_mldf_order *order, uint64_t epoch, uint64_t position)
{
    uint64_t index = position * order->workers + order->worker;
    if (order->count == 0)
        return 0;
    return order->window_pages > 0 && !order->sequential ? windowed(order, epoch, index)
                                                         : dealt(order, epoch, index);
}

uint64_t coffer_mldf_samples_per_page(const coffer_mldf *set)
{
    uint64_t samples = set->header.samples, end = 0, bytes, each;
    if (samples == 0 || coffer__mldf_data_end(&end, set, NULL) != COFFER_OK || end < set->header.data)
        return 1;
    bytes = end - set->header.data;
    if (bytes == 0)
        bytes = samples * set->schema.row_size;
    each = coffer__divide_up(bytes, samples);
    return each == 0 || set->header.page_size < each ? 1 : set->header.page_size / each;
}
