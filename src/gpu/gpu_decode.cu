/* Decoding on the GPU: each thread stores 16 bytes at a time, next to those of its neighbors, and has several
 * loads on their way before it uses the first. */
#include "gpu/gpu_cuda.h"

using namespace coffer_gpu;

namespace {

constexpr int THREADS = 128;

/* Stores of a thread, chosen by measuring. */
GPU_FUNCTION constexpr int stores_of(int type, int as)
{
    return as == TO_F32 && (code_bits(type) == 6 || code_bits(type) == 3) ? 3 : 2;
}

__device__ __forceinline__ void store_streaming(uint4 *to, const uint32_t words[4])
{
    __stcs(to, make_uint4(words[0], words[1], words[2], words[3]));
}

template <int TYPE, int AS, bool ROWS>
__global__ void __launch_bounds__(THREADS) decode_pieces(uint4 *out, coffer__gpu_payload payload, uint64_t first, uint64_t count)
{
    constexpr int UNROLL = stores_of(TYPE, AS);
    uint64_t begin = (uint64_t)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
    decode_piece<TYPE, AS> pieces[UNROLL];
    whole_factors whole = {};
    if (is_whole(TYPE))
        whole = load_whole(payload);
#pragma unroll
    for (int i = 0; i < UNROLL; i++) {
        if (begin + i * THREADS < count)
            load_piece<TYPE, AS, ROWS>(pieces[i], payload, first + begin + i * THREADS);
    }
#pragma unroll
    for (int i = 0; i < UNROLL; i++) {
        uint32_t words[4];
        if (begin + i * THREADS < count) {
            decode<TYPE, AS>(words, pieces[i], whole);
            store_streaming(out + begin + i * THREADS, words);
        }
    }
}

template <int AS>
__device__ __forceinline__ void store_element(void *out, uint64_t index, float value)
{
    if (AS == TO_F32)
        static_cast<float *>(out)[index] = value;
    else
        static_cast<uint16_t *>(out)[index] = AS == TO_F16 ? f32_to_f16(value) : f32_to_bf16(value);
}

/* Elements [begin, end) of the rows from `first` on, of any shape and at any address. */
template <int TYPE, int AS>
__global__ void __launch_bounds__(THREADS)
    decode_elements(void *out, coffer__gpu_payload payload, uint64_t first, uint64_t begin, uint64_t end)
{
    uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = begin + (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < end; i += step) {
        uint64_t row = (i | payload.cols) >> 32 ? i / payload.cols : (uint32_t)i / (uint32_t)payload.cols;
        store_element<AS>(out, i, decode_element<TYPE>(payload, first + row, i - row * payload.cols));
    }
}

struct decode_call {
    void *out;
    coffer__gpu_payload payload;
    uint64_t first, count;
    cudaStream_t stream;
};

template <int TYPE, int AS>
void launch_elements(const decode_call &call, uint64_t begin)
{
    uint64_t end = call.count * call.payload.cols;
    uint64_t blocks = (end - begin + THREADS - 1) / THREADS;
    if (begin < end)
        decode_elements<TYPE, AS><<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0, call.stream>>>(
            call.out, call.payload, call.first, begin, end);
}

/* Pieces of 16 bytes at the front of the output; the rest goes element by element. */
template <int TYPE, int AS>
void launch(const decode_call &call)
{
    constexpr int ELEMENTS = stored_elements(AS), UNROLL = stores_of(TYPE, AS);
    const coffer__gpu_payload &payload = call.payload;
    uint64_t first = call.first * payload.cols;
    uint64_t count = count_pieces<TYPE, AS>(call.out, payload, call.first, call.count);
    if (count > MOST_BLOCKS * THREADS * UNROLL)
        count = 0;
    if (count > 0) {
        unsigned blocks = (unsigned)((count + THREADS * UNROLL - 1) / (THREADS * UNROLL));
        uint4 *out = static_cast<uint4 *>(call.out);
        if (has_supers(TYPE) && has_open_supers(payload))
            decode_pieces<TYPE, AS, true><<<blocks, THREADS, 0, call.stream>>>(out, payload, first / ELEMENTS, count);
        else
            decode_pieces<TYPE, AS, false><<<blocks, THREADS, 0, call.stream>>>(out, payload, first / ELEMENTS, count);
    }
    launch_elements<TYPE, AS>(call, count * ELEMENTS);
}

template <int TYPE>
void launch_as(const decode_call &call, coffer_dtype as)
{
    if (as == COFFER_DTYPE_F32)
        launch<TYPE, TO_F32>(call);
    else if (as == COFFER_DTYPE_F16)
        launch<TYPE, TO_F16>(call);
    else
        launch<TYPE, TO_BF16>(call);
}

} // namespace

coffer_status coffer__gpu_decode(void *out, coffer_dtype as, const coffer__gpu_payload *payload, uint64_t first,
                                 uint64_t count, void *stream, coffer_error *err)
{
    device_guard guard;
    coffer_status status = guard.enter(out, err);
    if (status)
        return status;
    decode_call call = { out, *payload, first, count, static_cast<cudaStream_t>(stream) };
    switch (payload->type) {
#define DECODE_CASE(type)           \
    case type:                      \
        launch_as<type>(call, as);  \
        break;
        GPU_FOR_EACH_TYPE(DECODE_CASE)
#undef DECODE_CASE
    default:
        break;
    }
    return check_cuda(cudaGetLastError(), "starting the decoder", err);
}
