/* Tiles of a product: x in shared memory, weights in registers, the walk of the warps, the sums.
 * gpu_product.cu describes the whole. */
#ifndef COFFER_GPU_GPU_TILES_H
#define COFFER_GPU_GPU_TILES_H

#include "gpu/gpu_cuda.h"

namespace coffer_gpu
{

constexpr int TILE = 16;
constexpr int VECTORS_AT_ONCE = 16;
constexpr int PIECE_BYTES = BLOCK * 2; /* one half of each number of a block of x */
constexpr size_t SHARED_MOST = 200 * 1024;

/* Columns [first block, first block + blocks) of all rows. */
struct product_call {
    float *y;
    const float *x;
    coffer__gpu_payload payload;
    uint64_t first_block, blocks; /* the first is a multiple of a super */
    uint32_t columns;
    uint64_t row_stride, vector_stride; /* of y */
    bool add;                           /* to what y has from the columns before */
    bool aligned_x;
    int ks; /* warps of a tile */
};

/* ---- x in shared memory ---- */

/* Eight numbers of x; those past the end are 0. */
__device__ __forceinline__ void load_numbers(float out[8], const product_call &call, uint32_t vector,
                                             uint64_t col)
{
    uint64_t cols = call.payload.cols;
    const float *from = call.x + vector * cols + col;
    if (vector < call.columns && call.aligned_x && col + 8 <= cols) {
        float4 low = __ldg((const float4 *)from), high = __ldg((const float4 *)from + 1);
        out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
        out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = vector < call.columns && col + i < cols ? __ldg(from + i) : 0.0f;
}

/* Writes eight numbers as halves, at the place of their chunk, and returns what sums are multiplied by. */
__device__ __forceinline__ float split_chunk(uint8_t *to, const float numbers[8])
{
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++)
        largest = is_finite(numbers[i]) ? fmaxf(largest, fabsf(numbers[i])) : largest;
    /* The order of floats that are not negative is that of their bits. */
    float factor = factor_for(bits_to_f32(__reduce_max_sync(~0u, f32_to_bits(largest))));
    uint16_t parts[8][2];
#pragma unroll
    for (int i = 0; i < 8; i++)
        split(parts[i], numbers[i], factor);
#pragma unroll
    for (int piece = 0; piece < 2; piece++) {
        uint32_t pairs[4];
        for (int i = 0; i < 4; i++)
            pairs[i] = parts[i][piece] | (uint32_t)parts[i + 4][piece] << 16;
        *(uint4 *)(to + piece * PIECE_BYTES) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
    return inverse_factor(factor);
}

/* halves : for each block and vector two pieces of 64 bytes, in the order of the chunks' pairs. factors :
 * what the sums of a super are multiplied by. vectors : with those that fill the last tile of columns. A warp
 * takes a super of a vector; the loads of several are on their way at once. */
template <int WARPS>
__device__ __forceinline__ void split_x(uint8_t *halves, float *factors, const product_call &call,
                                        uint32_t vectors)
{
    constexpr int AHEAD = 4;
    uint32_t tasks = (uint32_t)call.blocks / BLOCKS_OF_SUPER * vectors, lane = threadIdx.x % 32;
    for (uint32_t first = threadIdx.x / 32; first < tasks; first += AHEAD * WARPS) {
        float numbers[AHEAD][8];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            uint32_t task = first + i * WARPS, block = task / vectors * BLOCKS_OF_SUPER + lane / 4;
            if (task < tasks)
                load_numbers(numbers[i], call, task % vectors,
                             (call.first_block + block) * BLOCK + lane % 4 * 8);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            uint32_t task = first + i * WARPS, block = task / vectors * BLOCKS_OF_SUPER + lane / 4;
            if (task >= tasks)
                break;
            float factor =
                split_chunk(halves + (size_t)(block * vectors + task % vectors) * (2 * PIECE_BYTES) +
                                lane % 4 * 16,
                            numbers[i]);
            if (lane == 0)
                factors[task] = factor;
        }
    }
}

/* ---- Weights in registers ---- */

/* Two blocks of a row. */
template <int TYPE> struct weights {
    uint32_t words[2 * code_bits(TYPE)];
    uint32_t factors; /* two scales, or two sub-scales; one after the other, as they are stored */
    uint16_t super;
};

/* Words that follow each other, `SIZE` bytes at a time. */
template <int COUNT, int SIZE> __device__ __forceinline__ void load_words(uint32_t *out, const uint8_t *from)
{
    constexpr int LOADS = COUNT * 4 / SIZE;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (SIZE == 16) {
            uint4 part = __ldcs((const uint4 *)(from + 16 * i));
            out[4 * i] = part.x, out[4 * i + 1] = part.y, out[4 * i + 2] = part.z, out[4 * i + 3] = part.w;
        } else if (SIZE == 8) {
            uint2 part = __ldcs((const uint2 *)(from + 8 * i));
            out[2 * i] = part.x, out[2 * i + 1] = part.y;
        } else {
            out[i] = __ldcs((const uint32_t *)(from + 4 * i));
        }
    }
}

/* The widest load that the bytes of a pair of blocks, or of one, allow. */
GPU_FUNCTION constexpr int pair_load(int bits)
{
    return bits == 3 ? 8 : 16;
}

GPU_FUNCTION constexpr int block_load(int bits)
{
    return bits == 3 ? 4 : bits == 6 || bits == 2 ? 8 : 16;
}

/* Where the bytes of a lane's two blocks of a row are. */
struct place {
    const uint8_t *codes, *scales, *subs;
};

template <int TYPE>
__device__ __forceinline__ place place_of(const coffer__gpu_payload &payload, uint64_t row, uint64_t block)
{
    uint64_t at = row * payload.blocks_per_row + block;
    place out = { payload.parts[COFFER__QUANT_CODES] + at * (4 * code_bits(TYPE)), nullptr, nullptr };
    if (has_supers(TYPE)) {
        out.scales = payload.parts[COFFER__QUANT_SCALES] +
                     2 * (row * payload.supers_per_row + block / BLOCKS_OF_SUPER);
        out.subs = payload.parts[COFFER__QUANT_SUBS] + at;
    } else if (!is_whole(TYPE)) {
        out.scales = payload.parts[COFFER__QUANT_SCALES] + 2 * at;
    }
    return out;
}

/* Steps over some supers. */
template <int TYPE> __device__ __forceinline__ void move_by(place &at, uint32_t supers)
{
    at.codes += supers * (BLOCKS_OF_SUPER * 4 * code_bits(TYPE));
    if (has_supers(TYPE)) {
        at.scales += supers * 2;
        at.subs += supers * BLOCKS_OF_SUPER;
    } else if (!is_whole(TYPE)) {
        at.scales += supers * (2 * BLOCKS_OF_SUPER);
    }
}

/* EVEN : the row consists of whole supers, so that both blocks exist and are aligned together. left : blocks
 * of the row from the first one on, otherwise. */
template <int TYPE, bool EVEN>
__device__ __forceinline__ void load_weights(weights<TYPE> &out, const place &at, int64_t left)
{
    constexpr int BITS = code_bits(TYPE);
    if (has_supers(TYPE))
        out.super = EVEN || left > 0 ? load<uint16_t>(at.scales) : 0;
    if (EVEN) {
        load_words<2 * BITS, pair_load(BITS)>(out.words, at.codes);
        if (has_supers(TYPE))
            out.factors = load<uint16_t>(at.subs);
        else if (!is_whole(TYPE))
            out.factors = load<uint32_t>(at.scales);
    } else {
        out.factors = 0;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            bool exists = i < left;
#pragma unroll
            for (int word = 0; word < BITS; word++)
                out.words[i * BITS + word] = 0;
            if (exists)
                load_words<BITS, block_load(BITS)>(out.words + i * BITS, at.codes + i * (4 * BITS));
            if (has_supers(TYPE))
                out.factors |= exists ? (uint32_t)at.subs[i] << (8 * i) : 0;
            else if (!is_whole(TYPE))
                out.factors |= exists ? (uint32_t)load<uint16_t>(at.scales + 2 * i) << (16 * i) : 0;
        }
    }
}

/* Block 0 or 1 of the pair. The scale of a whole tensor is applied at the end. */
template <int TYPE> __device__ __forceinline__ float scale_of(const weights<TYPE> &from, int block)
{
    return is_whole(TYPE)     ? 1.0f
           : has_supers(TYPE) ? super_scale(from.super, (uint8_t)(from.factors >> (8 * block)))
                              : f16_to_f32((uint16_t)(from.factors >> (16 * block)));
}

/* The next product of the stream may start, and load its weights, before this one has ended. */
__device__ __forceinline__ void start_next_product()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Returns when the work before this product is complete: x is read, and y written, after it. */
__device__ __forceinline__ void await_work_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void multiply_tile(float sums[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                              uint32_t a3, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* ---- The walk over tiles and supers ---- */

/* Which supers of which tiles the warps work on. Every warp visits every round, so that all meet at the
 * barriers. */
struct walk {
    uint32_t groups, rounds, supers, ks;
    uint32_t group, turn; /* of the warp: its tile among those of the block, its first super */

    __device__ walk(const product_call &call, uint32_t warps)
    {
        uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0); /* known to be the same for all lanes */
        ks = (uint32_t)call.ks;
        groups = warps / ks;
        uint32_t tiles = (uint32_t)((call.payload.rows + TILE - 1) / TILE);
        rounds = (tiles + groups * gridDim.x - 1) / (groups * gridDim.x);
        supers = (uint32_t)(call.blocks / BLOCKS_OF_SUPER);
        group = warp / ks;
        turn = warp % ks;
    }
    __device__ uint32_t tile_of(uint32_t round) const
    {
        return (round * gridDim.x + blockIdx.x) * groups + group;
    }
};

/* The place of a warp in the walk. */
struct position {
    uint32_t round, super;

    /* True when the tile is complete. */
    __device__ __forceinline__ bool advance(const walk &walk)
    {
        super += walk.ks;
        if (super < walk.supers)
            return false;
        super = walk.turn;
        round++;
        return true;
    }
};

/* Loads the supers of a warp one after the other, ahead of the products. */
template <int TYPE, bool EVEN> struct loader {
    position at;
    place rows[2];

    /* Rows past the end repeat the last one; their sums are not stored. */
    __device__ __forceinline__ void enter_tile(const product_call &call, const walk &walk)
    {
        uint32_t lane = threadIdx.x % 32;
        uint64_t block = call.first_block + at.super * BLOCKS_OF_SUPER + lane % 4 * 2;
        uint64_t row = (uint64_t)walk.tile_of(at.round) * TILE + lane / 4, last = call.payload.rows - 1;
        rows[0] = place_of<TYPE>(call.payload, row < last ? row : last, block);
        rows[1] = place_of<TYPE>(call.payload, row + 8 < last ? row + 8 : last, block);
    }
    __device__ __forceinline__ void next(weights<TYPE> out[2], const product_call &call, const walk &walk)
    {
        if (at.round >= walk.rounds)
            return;
        int64_t left = EVEN ? 2
                            : (int64_t)call.payload.blocks_per_row - (int64_t)call.first_block -
                                  at.super * BLOCKS_OF_SUPER - threadIdx.x % 4 * 2;
        load_weights<TYPE, EVEN>(out[0], rows[0], left);
        load_weights<TYPE, EVEN>(out[1], rows[1], left);
        if (at.advance(walk)) {
            enter_tile(call, walk);
        } else {
            move_by<TYPE>(rows[0], walk.ks);
            move_by<TYPE>(rows[1], walk.ks);
        }
    }
};

/* Adds the sums of the warps of a tile, in their order, and stores them. sums : [warp][row][vector]. factor :
 * the scale of a whole tensor. */
template <int WARPS, int VECTORS>
__device__ __forceinline__ void store_sums(const product_call &call, const float *sums, const walk &walk,
                                           uint32_t round, float factor)
{
    for (uint32_t i = threadIdx.x; i < walk.groups * TILE * VECTORS; i += 32 * WARPS) {
        uint32_t group = i / (TILE * VECTORS), row = i / VECTORS % TILE, vector = i % VECTORS;
        uint64_t at = (uint64_t)((round * gridDim.x + blockIdx.x) * walk.groups + group) * TILE + row;
        if (at >= call.payload.rows || vector >= call.columns)
            continue;
        float sum = 0.0f;
        for (uint32_t warp = 0; warp < walk.ks; warp++)
            sum += sums[((group * walk.ks + warp) * TILE + row) * VECTORS + vector];
        float *y = call.y + at * call.row_stride + vector * call.vector_stride;
        *y = call.add ? *y + sum * factor : sum * factor;
    }
}

} // namespace coffer_gpu

#endif
