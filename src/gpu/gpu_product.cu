/* y = W · x on the tensor cores. The codes are small integers, which a half holds exactly; a number of x is the
 * sum of two halves (gpu_codes.h). Products are exact, sums are float32, and their order is fixed: the same bits
 * in every run.
 *
 * A tile is 16 rows. A warp multiplies a super, 256 columns of a tile, at a time; lane 4g + t loads blocks 2t and
 * 2t + 1 of rows g and g + 8. The warps of a block share a tile, each takes every KS-th super, and their sums are
 * added in the order of the warps. */
#include "gpu/gpu_tiles.h"

#include <atomic>

using namespace coffer_gpu;

namespace {

/* ---- One vector ---- */

/* Column 2t + p of the tensor core is piece p of the block that the lanes t have: B is zero elsewhere, so that
 * four blocks with different scales go through at once. step : between the blocks of x, or 0 in zeros. */
template <int TYPE>
__device__ __forceinline__ void multiply_super(float sums[4], const weights<TYPE> rows[2], const uint8_t *halves,
                                               uint32_t step, float factor)
{
    constexpr int BITS = code_bits(TYPE);
    float super[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll
    for (int phase = 0; phase < 2; phase++) {
        float part[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll
        for (int chunk = 0; chunk < 4; chunk++) {
            uint32_t quads[2], low[4], high[4];
            uint4 x = *(const uint4 *)(halves + phase * step + chunk * 16);
            chunk_of_words<BITS>(quads, rows[0].words + phase * BITS, chunk);
            chunk_to_halves<BITS>(low, quads);
            chunk_of_words<BITS>(quads, rows[1].words + phase * BITS, chunk);
            chunk_to_halves<BITS>(high, quads);
            multiply_tile(part, low[0], high[0], low[1], high[1], x.x, x.y);
            multiply_tile(part, low[2], high[2], low[3], high[3], x.z, x.w);
        }
        float first = scale_of(rows[0], phase), second = scale_of(rows[1], phase);
        super[0] = fmaf(first, part[0], super[0]);
        super[1] = fmaf(first, part[1], super[1]);
        super[2] = fmaf(second, part[2], super[2]);
        super[3] = fmaf(second, part[3], super[3]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sums[i] = fmaf(factor, super[i], sums[i]);
}

constexpr int ONE_WARPS = 8;

/* Supers of a warp whose bytes are on their way: enough to keep the memory busy, few enough for the registers. */
GPU_FUNCTION constexpr int depth_of(int type)
{
    return code_bits(type) == 8 ? 1 : 2;
}

template <int TYPE, bool EVEN>
__global__ void __launch_bounds__(32 * ONE_WARPS, 2) multiply_vector(product_call call)
{
    constexpr int DEPTH = depth_of(TYPE), WARPS = ONE_WARPS;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ float sums_of_warps[2][WARPS * TILE];
    __shared__ __align__(128) uint8_t zero_line[128];
    /* At this place, no bank of the zeros is one that the other lanes of a load use. */
    uint8_t *zeros = zero_line + 32;
    float *factors = (float *)(shared + call.blocks * (2 * PIECE_BYTES));
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = lane % 4, g = lane / 4;
    float whole = is_whole(TYPE) ? load_whole(call.payload).scale : 1.0f;
    walk walk(call, WARPS);
    position at = { 0, walk.turn };
    loader<TYPE, EVEN> loader = { at, {} };

    weights<TYPE> ring[DEPTH][2];
    loader.enter_tile(call, walk);
#pragma unroll
    for (int i = 0; i < DEPTH; i++)
        loader.next(ring[i], call, walk);
    start_next_product();
    await_work_before();
    split_x<WARPS>(shared, factors, call, 1);
    if (threadIdx.x < PIECE_BYTES)
        zeros[threadIdx.x] = 0;
    __syncthreads();

    /* Lanes whose column belongs to another block multiply with zeros. */
    bool mine = g / 2 == t;
    const uint8_t *halves = mine ? shared + 2 * t * (2 * PIECE_BYTES) + g % 2 * PIECE_BYTES : zeros;
    uint32_t step = mine ? 2 * PIECE_BYTES : 0;
    float sums[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    while (at.round < walk.rounds) {
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (at.round >= walk.rounds)
                break;
            multiply_super<TYPE>(sums, ring[i], halves + at.super * BLOCKS_OF_SUPER * step, step, factors[at.super]);
            loader.next(ring[i], call, walk);
            uint32_t round = at.round;
            if (!at.advance(walk))
                continue;
            float first = fmaf(sums[1], SECOND_HALF, sums[0]), second = fmaf(sums[3], SECOND_HALF, sums[2]);
            for (int mask = 1; mask <= 2; mask *= 2) {
                first += __shfl_xor_sync(~0u, first, mask);
                second += __shfl_xor_sync(~0u, second, mask);
            }
            float *kept = sums_of_warps[round % 2];
            if (t == 0)
                kept[warp * TILE + g] = first, kept[warp * TILE + g + 8] = second;
            __syncthreads();
            store_sums<WARPS, 1>(call, kept, walk, round, whole);
            sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
        }
    }
}

/* ---- Several vectors ---- */

/* Bytes of a row of a super in shared memory: the padding spreads the rows over the banks. */
GPU_FUNCTION constexpr int staged_pitch(int bits)
{
    return BLOCKS_OF_SUPER * 4 * bits + 16;
}

/* Puts the two blocks of a lane where every lane finds its chunk of each block. */
template <int BITS>
__device__ __forceinline__ void stage_row(uint8_t *to, const uint32_t *words)
{
    constexpr int WORDS = BITS == 3 ? 2 : 4; /* of a store */
#pragma unroll
    for (int i = 0; i < 2 * BITS / WORDS; i++) {
        const uint32_t *from = words + WORDS * i;
        if (WORDS == 2)
            ((uint2 *)to)[i] = make_uint2(from[0], from[1]);
        else
            ((uint4 *)to)[i] = make_uint4(from[0], from[1], from[2 % WORDS], from[3 % WORDS]);
    }
}

/* Column 2v + p of the tensor core is piece p of vector v. Lane 4g + t has chunk t of a block of rows g, g + 8. */
template <int TYPE, int TILES>
__device__ __forceinline__ void multiply_super_many(float sums[TILES][4], const weights<TYPE> rows[2], uint8_t *staged,
                                                    const uint8_t *halves, const float *factors)
{
    constexpr int BITS = code_bits(TYPE), PITCH = staged_pitch(BITS), VECTORS = 4 * TILES;
    uint32_t lane = threadIdx.x % 32, t = lane % 4, g = lane / 4;
    float scales[2][2], super[TILES][4] = {};
    __syncwarp();
#pragma unroll
    for (int row = 0; row < 2; row++) {
        stage_row<BITS>(staged + (g + 8 * row) * PITCH + t * (8 * BITS), rows[row].words);
        scales[row][0] = scale_of(rows[row], 0);
        scales[row][1] = scale_of(rows[row], 1);
    }
    __syncwarp();
#pragma unroll
    for (int block = 0; block < BLOCKS_OF_SUPER; block++) {
        uint32_t quads[2], low[4], high[4];
        load_chunk<BITS>(quads, staged + g * PITCH, block * 4 + t);
        chunk_to_halves<BITS>(low, quads);
        load_chunk<BITS>(quads, staged + (g + 8) * PITCH, block * 4 + t);
        chunk_to_halves<BITS>(high, quads);
        float first = __shfl_sync(~0u, scales[0][block % 2], (lane & ~3u) + block / 2);
        float second = __shfl_sync(~0u, scales[1][block % 2], (lane & ~3u) + block / 2);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            uint4 x = *(const uint4 *)(halves + (block * VECTORS + tile * 4) * (2 * PIECE_BYTES) + g * PIECE_BYTES + t * 16);
            float part[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
            multiply_tile(part, low[0], high[0], low[1], high[1], x.x, x.y);
            multiply_tile(part, low[2], high[2], low[3], high[3], x.z, x.w);
            super[tile][0] = fmaf(first, part[0], super[tile][0]);
            super[tile][1] = fmaf(first, part[1], super[tile][1]);
            super[tile][2] = fmaf(second, part[2], super[tile][2]);
            super[tile][3] = fmaf(second, part[3], super[tile][3]);
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        float factor = factors[tile * 4 + t];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[tile][i] = fmaf(factor, super[tile][i], sums[tile][i]);
    }
}

constexpr int MANY_WARPS = 16;

/* TILES : of four vectors. */
template <int TYPE, bool EVEN, int TILES>
__global__ void __launch_bounds__(32 * MANY_WARPS, 1) multiply_vectors(product_call call)
{
    constexpr int VECTORS = 4 * TILES, WARPS = MANY_WARPS, PITCH = staged_pitch(code_bits(TYPE));
    extern __shared__ __align__(128) uint8_t shared[];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = lane % 4, g = lane / 4;
    uint8_t *staged = shared + warp * (TILE * PITCH), *halves = shared + WARPS * TILE * PITCH;
    float *factors = (float *)(halves + call.blocks * VECTORS * (2 * PIECE_BYTES));
    float *sums_of_warps = factors + call.blocks / BLOCKS_OF_SUPER * VECTORS; /* twice [warp][row][vector] */
    float whole = is_whole(TYPE) ? load_whole(call.payload).scale : 1.0f;
    walk walk(call, WARPS);
    position at = { 0, walk.turn };
    loader<TYPE, EVEN> loader = { at, {} };

    weights<TYPE> rows[2];
    loader.enter_tile(call, walk);
    loader.next(rows, call, walk);
    start_next_product();
    await_work_before();
    split_x<WARPS>(halves, factors, call, VECTORS);
    __syncthreads();

    float sums[TILES][4] = {};
    while (at.round < walk.rounds) {
        uint32_t vector = at.super * VECTORS;
        multiply_super_many<TYPE, TILES>(sums, rows, staged, halves + vector * (BLOCKS_OF_SUPER * 2 * PIECE_BYTES),
                                         factors + vector);
        loader.next(rows, call, walk);
        uint32_t round = at.round;
        if (!at.advance(walk))
            continue;
        float *kept = sums_of_warps + round % 2 * (WARPS * TILE * VECTORS);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            float *to = kept + (warp * TILE + g) * VECTORS + tile * 4 + t;
            to[0] = fmaf(sums[tile][1], SECOND_HALF, sums[tile][0]);
            to[8 * VECTORS] = fmaf(sums[tile][3], SECOND_HALF, sums[tile][2]);
            sums[tile][0] = sums[tile][1] = sums[tile][2] = sums[tile][3] = 0.0f;
        }
        __syncthreads();
        store_sums<WARPS, VECTORS>(call, kept, walk, round, whole);
    }
}

/* ---- Any shape, any address ---- */

constexpr int ELEMENT_WARPS = 8;

/* A warp takes a row, its lanes every 32nd column. */
template <int TYPE>
__global__ void __launch_bounds__(32 * ELEMENT_WARPS) multiply_elements(product_call call)
{
    uint64_t cols = call.payload.cols, step = (uint64_t)gridDim.x * ELEMENT_WARPS;
    uint32_t lane = threadIdx.x % 32;
    for (uint64_t row = (uint64_t)blockIdx.x * ELEMENT_WARPS + threadIdx.x / 32; row < call.payload.rows; row += step) {
        for (uint32_t vector = 0; vector < call.columns; vector++) {
            float sum = 0.0f;
            for (uint64_t col = lane; col < cols; col += 32)
                sum = fmaf(decode_element<TYPE>(call.payload, row, col), call.x[vector * cols + col], sum);
            for (int mask = 16; mask > 0; mask /= 2)
                sum += __shfl_xor_sync(~0u, sum, mask);
            if (lane == 0)
                call.y[row * call.row_stride + vector * call.vector_stride] = sum;
        }
    }
}

/* ---- Launching ---- */

struct product_launch {
    int device, processors;
    bool overlaps; /* the device can start a product before the one before it has ended */
    cudaStream_t stream;
    cudaError_t result;
};

/* Blocks of a kernel that a processor runs at once. Asking takes longer than a small product, so the last answer is
 * kept for each kernel. */
template <typename Kernel>
int blocks_per_processor(std::atomic<uint64_t> &kept, Kernel kernel, product_launch &to, int threads, size_t shared)
{
    uint64_t key = ((uint64_t)to.device + 1) << 48 | (uint64_t)shared << 16, last = kept.load(std::memory_order_relaxed);
    int blocks = (int)(last & 0xFFFF);
    if ((last & ~(uint64_t)0xFFFF) == key)
        return blocks;
    to.result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (to.result == cudaSuccess)
        to.result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared);
    if (to.result == cudaSuccess)
        kept.store(key | (uint64_t)blocks, std::memory_order_relaxed);
    return blocks;
}

/* Starts a kernel on as many blocks as the device runs at once. */
template <typename Kernel>
void launch(std::atomic<uint64_t> &kept, Kernel kernel, product_launch &to, const product_call &call, int warps, size_t shared)
{
    int blocks = blocks_per_processor(kept, kernel, to, 32 * warps, shared);
    if (to.result != cudaSuccess)
        return;
    uint64_t tiles = (call.payload.rows + TILE - 1) / TILE, groups = (uint64_t)(warps / call.ks);
    uint64_t wanted = (tiles + groups - 1) / groups, most = (uint64_t)to.processors * (uint64_t)blocks;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(wanted < most ? wanted : most));
    config.blockDim = dim3((unsigned)(32 * warps));
    config.dynamicSmemBytes = shared;
    config.stream = to.stream;
    config.attrs = &overlap;
    config.numAttrs = to.overlaps ? 1 : 0;
    to.result = cudaLaunchKernelEx(&config, kernel, call);
}

/* Vectors that a kernel works on: a power of two. */
uint64_t padded_vectors(uint32_t columns)
{
    return columns == 1 ? 1 : columns <= 4 ? 4 : columns <= 8 ? 8 : 16;
}

/* Shared memory beside x. */
uint64_t fixed_bytes(uint64_t vectors, int bits)
{
    return vectors == 1 ? 0 : MANY_WARPS * TILE * ((uint64_t)staged_pitch(bits) + 2 * vectors * sizeof(float));
}

/* Shared memory for a super of x. */
uint64_t super_bytes(uint64_t vectors)
{
    return vectors * (BLOCKS_OF_SUPER * 2 * PIECE_BYTES + sizeof(float));
}

template <int TYPE, bool EVEN, int TILES>
void launch_many(product_launch &to, const product_call &call, size_t shared)
{
    static std::atomic<uint64_t> kept;
    launch(kept, multiply_vectors<TYPE, EVEN, TILES>, to, call, MANY_WARPS, shared);
}

template <int TYPE, bool EVEN>
void launch_tiles(product_launch &to, product_call &call)
{
    static std::atomic<uint64_t> kept;
    uint64_t vectors = padded_vectors(call.columns), supers = call.blocks / BLOCKS_OF_SUPER;
    size_t shared = fixed_bytes(vectors, code_bits(TYPE)) + supers * super_bytes(vectors);
    for (call.ks = vectors == 1 ? ONE_WARPS : MANY_WARPS; (uint64_t)call.ks > supers; call.ks /= 2)
        ;
    if (vectors == 1)
        launch(kept, multiply_vector<TYPE, EVEN>, to, call, ONE_WARPS, shared);
    else if (vectors == 4)
        launch_many<TYPE, EVEN, 1>(to, call, shared);
    else if (vectors == 8)
        launch_many<TYPE, EVEN, 2>(to, call, shared);
    else
        launch_many<TYPE, EVEN, 4>(to, call, shared);
}

/* Up to VECTORS_AT_ONCE columns. x goes into shared memory in parts of whole supers, about equally many each. */
template <int TYPE>
void launch_product(product_launch &to, product_call call)
{
    if (!has_tiles<TYPE>(call.payload)) {
        uint64_t blocks = (call.payload.rows + ELEMENT_WARPS - 1) / ELEMENT_WARPS;
        multiply_elements<TYPE>
            <<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 32 * ELEMENT_WARPS, 0, to.stream>>>(call);
        to.result = cudaGetLastError();
        return;
    }
    uint64_t vectors = padded_vectors(call.columns), all = (call.payload.cols + BLOCK - 1) / BLOCK;
    uint64_t supers = (all + BLOCKS_OF_SUPER - 1) / BLOCKS_OF_SUPER;
    uint64_t most = (SHARED_MOST - fixed_bytes(vectors, code_bits(TYPE))) / super_bytes(vectors);
    uint64_t parts = (supers + most - 1) / most, at_once = (supers + parts - 1) / parts;
    call.payload.blocks_per_row = all;
    call.aligned_x = is_aligned(call.x, 16) && call.payload.cols % 4 == 0;
    for (uint64_t first = 0; first < supers && to.result == cudaSuccess; first += at_once) {
        uint64_t left = supers - first;
        call.first_block = first * BLOCKS_OF_SUPER;
        call.blocks = (left < at_once ? left : at_once) * BLOCKS_OF_SUPER;
        call.add = first > 0;
        if (all % BLOCKS_OF_SUPER == 0)
            launch_tiles<TYPE, true>(to, call);
        else
            launch_tiles<TYPE, false>(to, call);
    }
}

} // namespace

coffer_status coffer__gpu_product(const coffer__gpu_products *out, const coffer__gpu_payload *payload, const float *x,
                                  uint32_t columns, void *stream, coffer_error *err)
{
    device_guard guard;
    product_launch to = { 0, 0, false, static_cast<cudaStream_t>(stream), cudaSuccess };
    int major = 0;
    coffer_status status = guard.enter(out->y, err);
    to.device = guard.device();
    if (!status)
        status = check_cuda(cudaDeviceGetAttribute(&to.processors, cudaDevAttrMultiProcessorCount, to.device),
                            "looking at the device", err);
    if (!status)
        status = check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, to.device),
                            "looking at the device", err);
    to.overlaps = major >= 9;
    for (uint32_t first = 0; !status && first < columns; first += VECTORS_AT_ONCE) {
        product_call call = {};
        call.y = out->y + first * out->vector_stride;
        call.row_stride = out->row_stride;
        call.vector_stride = out->vector_stride;
        call.x = x + (uint64_t)first * payload->cols;
        call.payload = *payload;
        call.columns = columns - first < VECTORS_AT_ONCE ? columns - first : VECTORS_AT_ONCE;
        switch (payload->type) {
#define PRODUCT_CASE(type)               \
    case type:                           \
        launch_product<type>(to, call);  \
        break;
            GPU_FOR_EACH_TYPE(PRODUCT_CASE)
#undef PRODUCT_CASE
        default:
            break;
        }
        status = check_cuda(to.result, "starting the product", err);
    }
    return status;
}
