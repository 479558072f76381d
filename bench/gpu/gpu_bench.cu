/* Rates of the module coffer-cuda, beside the rate of a copy in the same run: gpu_bench [decode|product|launch] */
#include "../../tests/gpu/gpu_support.h"

#include <algorithm>
#include <cstring>
#include <functional>

using namespace gpu_support;

namespace {

constexpr int RUNS = 11;
/* More than any cache: what is read comes from memory. */
constexpr uint64_t COLD_BYTES = 512u << 20;

cudaStream_t stream;

uint8_t *allocate(uint64_t size)
{
    uint8_t *memory = nullptr;
    must_run(cudaMalloc(&memory, size), "cudaMalloc");
    return memory;
}

/* Median of the seconds of one call among `calls` that follow each other. */
double seconds(int calls, const std::function<void(int)> &call)
{
    std::vector<double> times;
    cudaEvent_t begin, end;
    must_run(cudaEventCreate(&begin), "event");
    must_run(cudaEventCreate(&end), "event");
    for (int run = -2; run < RUNS; run++) {
        must_run(cudaEventRecord(begin, stream), "event");
        for (int i = 0; i < calls; i++)
            call(i);
        must_run(cudaEventRecord(end, stream), "event");
        must_run(cudaEventSynchronize(end), "run");
        float milliseconds = 0;
        must_run(cudaEventElapsedTime(&milliseconds, begin, end), "event");
        if (run >= 0)
            times.push_back(milliseconds / 1e3 / calls);
    }
    std::sort(times.begin(), times.end());
    return times[RUNS / 2];
}

double copy_rate()
{
    uint64_t size = 4ull << 30;
    uint8_t *from = allocate(size), *to = allocate(size);
    must_run(cudaMemset(from, 0x5A, size), "cudaMemset");
    double time = seconds(3, [&](int) { must_run(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream), "copy"); });
    must_run(cudaFree(from), "cudaFree");
    must_run(cudaFree(to), "cudaFree");
    return 2 * (double)size / time;
}

/* Decoding writes more than it reads: this is the rate of writing alone. */
double fill_rate()
{
    uint64_t size = 4ull << 30;
    uint8_t *to = allocate(size);
    double time = seconds(3, [&](int i) { must_run(cudaMemsetAsync(to, i, size, stream), "fill"); });
    must_run(cudaFree(to), "cudaFree");
    return (double)size / time;
}

/* Copies of a random payload that together are cold. */
struct payloads {
    coffer__quant_layout layout;
    uint8_t *memory;
    uint64_t pitch;
    int count;

    payloads(int type, uint64_t rows, uint64_t cols) : layout(plan(type, rows, cols, false))
    {
        std::vector<uint8_t> bytes = random_payload(plan(type, rows < 1024 ? rows : 1024, cols, false), 1);
        pitch = (layout.size + 255) / 256 * 256;
        count = (int)std::max<uint64_t>(1, (COLD_BYTES + pitch - 1) / pitch);
        memory = allocate(pitch * (uint64_t)count);
        for (uint64_t at = 0; at < pitch * (uint64_t)count; at += bytes.size())
            must_run(cudaMemcpy(memory + at, bytes.data(), std::min<uint64_t>(bytes.size(), pitch * (uint64_t)count - at),
                                cudaMemcpyHostToDevice),
                     "cudaMemcpy");
    }
    ~payloads() { (void)cudaFree(memory); }
    coffer__gpu_payload at(int i) const { return locate(layout, memory + pitch * (uint64_t)(i % count)); }
};

void bench_decode(double copy)
{
    static const struct {
        coffer_dtype dtype;
        const char *name;
        uint64_t width;
    } outputs[] = { { COFFER_DTYPE_F32, "f32", 4 }, { COFFER_DTYPE_F16, "f16", 2 }, { COFFER_DTYPE_BF16, "bf16", 2 } };
    uint64_t rows = 65536, cols = 16384;
    uint8_t *out = allocate(rows * cols * 4);
    for (int type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        payloads weights(type, rows, cols);
        for (const auto &output : outputs) {
            double time = seconds(2, [&](int i) {
                coffer_error err = COFFER_ERROR_INIT;
                coffer__gpu_payload payload = weights.at(i);
                must_succeed(module().decode(out, output.dtype, &payload, 0, rows, stream, &err), err);
            });
            double rate = (double)(weights.layout.size + rows * cols * output.width) / time;
            printf("decode %-4s %-4s %7.1f GB/s  %5.1f %% of the copy\n", TYPES[type].name, output.name, rate / 1e9, 100 * rate / copy);
        }
    }
    must_run(cudaFree(out), "cudaFree");
}

void bench_products(double copy)
{
    static const uint64_t shapes[][2] = { { 4096, 4096 }, { 14336, 4096 }, { 8192, 8192 }, { 16384, 16384 }, { 65536, 8192 } };
    float *x = reinterpret_cast<float *>(allocate(16384 * 16 * 4)), *y = reinterpret_cast<float *>(allocate(65536 * 16 * 4));
    std::vector<float> numbers(16384 * 16);
    random_bits random = { 3 };
    for (float &number : numbers)
        number = random.between_ones();
    must_run(cudaMemcpy(x, numbers.data(), numbers.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (const auto &shape : shapes) {
        for (int type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
            payloads weights(type, shape[0], shape[1]);
            printf("product %-4s %5llu x %5llu  %6.1f MB ", TYPES[type].name, (unsigned long long)shape[0],
                   (unsigned long long)shape[1], (double)weights.layout.size / 1e6);
            for (uint32_t columns : { 1, 2, 4, 8, 16 }) {
                double time = seconds(std::max(8, weights.count), [&](int i) {
                    coffer_error err = COFFER_ERROR_INIT;
                    coffer__gpu_payload payload = weights.at(i);
                    coffer__gpu_products out = { y, columns, 1 };
                    must_succeed(module().product(&out, &payload, x, columns, stream, &err), err);
                });
                printf(" |%3u: %6.2f us %5.1f %%", columns, time * 1e6, 100 * (double)weights.layout.size / time / copy);
            }
            printf("\n");
        }
    }
    (void)cudaFree(x);
    (void)cudaFree(y);
}

/* One product of 4096 x 4096 alone: from the call until the stream is idle, and in a row of 200. */
void bench_launch()
{
    float *x = reinterpret_cast<float *>(allocate(4096 * 4)), *y = reinterpret_cast<float *>(allocate(4096 * 4));
    must_run(cudaMemset(x, 0, 4096 * 4), "cudaMemset");
    for (int type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        payloads weights(type, 4096, 4096);
        auto call = [&](int i) {
            coffer_error err = COFFER_ERROR_INIT;
            coffer__gpu_payload payload = weights.at(i);
            coffer__gpu_products out = { y, 1, 1 };
            must_succeed(module().product(&out, &payload, x, 1, stream, &err), err);
        };
        auto same = [&](int) { call(0); };
        printf("launch %-4s 4096 x 4096: in a row %5.2f us from memory, %5.2f us from the cache; alone %5.2f us\n", TYPES[type].name,
               seconds(200, call) * 1e6, seconds(200, same) * 1e6, seconds(1, call) * 1e6);
    }
    (void)cudaFree(x);
    (void)cudaFree(y);
}

} // namespace

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    cudaDeviceProp properties;
    must_run(cudaGetDeviceProperties(&properties, 0), "looking for a GPU");
    must_run(cudaStreamCreate(&stream), "stream");
    double copy = copy_rate();
    printf("%s, %d processors, cache %.1f MB; copy %.1f GB/s, read plus written; fill %.1f GB/s\n", properties.name,
           properties.multiProcessorCount, properties.l2CacheSize / 1e6, copy / 1e9, fill_rate() / 1e9);
    if (!*only || strcmp(only, "decode") == 0)
        bench_decode(copy);
    if (!*only || strcmp(only, "product") == 0)
        bench_products(copy);
    if (!*only || strcmp(only, "launch") == 0)
        bench_launch();
    return 0;
}
