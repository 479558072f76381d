/* A Feistel network over a rectangle of rows × columns instead of two halves of a number of bits: a round
 * adds a keyed hash of the column to the row, or of the row to the column. The rectangle has less than one
 * row more room than is needed, so hardly ever does a position fall outside; then it goes through again until
 * it is inside, which it must be in the end, since its cycle leads back to where it began. */
#include "formats/mldf/read/mldf_shuffle.h"
#include "base/checked.h"

#include "coffer/mldf.h"

#include <math.h>

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

uint64_t coffer__mldf_mix(uint64_t a, uint64_t b)
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
    coffer__mldf_shuffle shuffle = { count, coffer__mldf_mix(a, b), 1, 1,
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
