/* Tests the module coffer-cuda on a GPU: gpu_test [--short]. Bytes around every buffer must not change; payloads end
 * where their memory ends, so that compute-sanitizer sees a read past them. */
#include "gpu_support.h"

#include <cmath>
#include <cstring>

using namespace gpu_support;

namespace {

bool is_short;
unsigned checks;

constexpr uint64_t SENTINELS = 1024;
constexpr uint8_t SENTINEL = 0xA5;

/* Memory with sentinels on both sides. */
struct guarded {
    uint8_t *memory = nullptr;
    uint64_t size, shift;

    guarded(uint64_t bytes, uint64_t shift_by) : size(bytes), shift(shift_by)
    {
        must_run(cudaMalloc(&memory, size + 2 * SENTINELS + shift), "cudaMalloc");
        must_run(cudaMemset(memory, SENTINEL, size + 2 * SENTINELS + shift), "cudaMemset");
    }
    ~guarded() { (void)cudaFree(memory); }
    uint8_t *data() const { return memory + SENTINELS + shift; }
    std::vector<uint8_t> read() const
    {
        std::vector<uint8_t> all(size + 2 * SENTINELS + shift);
        must_run(cudaMemcpy(all.data(), memory, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (uint64_t i = 0; i < all.size(); i++) {
            bool outside = i < SENTINELS + shift || i >= SENTINELS + shift + size;
            must(!outside || all[i] == SENTINEL, "a byte next to the output was changed");
        }
        return std::vector<uint8_t>(all.begin() + (int64_t)(SENTINELS + shift), all.end() - (int64_t)SENTINELS);
    }
};

/* A payload at the end of its allocation. */
struct device_bytes {
    uint8_t *memory = nullptr, *at;

    device_bytes(const void *bytes, uint64_t size, uint64_t shift)
    {
        must_run(cudaMalloc(&memory, size + shift), "cudaMalloc");
        at = memory + shift;
        must_run(cudaMemcpy(at, bytes, size, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    ~device_bytes() { (void)cudaFree(memory); }
};

void fail_at(const char *what, int type, uint64_t rows, uint64_t cols, uint64_t detail)
{
    printf("failed: %s: %s, %llu rows of %llu columns, at %llu\n", what, TYPES[type].name, (unsigned long long)rows,
           (unsigned long long)cols, (unsigned long long)detail);
    exit(1);
}

/* ---- Decoding ---- */

void check_decode(int type, coffer_dtype as, uint64_t rows, uint64_t cols, bool activations, uint64_t first,
                  uint64_t count, uint64_t shift)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__quant_layout layout = plan(type, rows, cols, activations);
    std::vector<uint8_t> bytes = random_payload(layout, rows * 1000003 + cols * 31 + (uint64_t)type);
    uint64_t width = as == COFFER_DTYPE_F32 ? 4 : 2;
    std::vector<uint8_t> expected(count * cols * width);
    if (as == COFFER_DTYPE_F32)
        coffer__quant_decode_rows(reinterpret_cast<float *>(expected.data()), &layout, bytes.data(), first, count);
    else
        coffer__quant_decode_rows_as(expected.data(), as, &layout, bytes.data(), first, count);
    device_bytes payload(bytes.data(), bytes.size(), shift);
    guarded out(expected.size(), shift * width);
    coffer__gpu_payload located = locate(layout, payload.at);
    must_succeed(module().decode(out.data(), as, &located, first, count, nullptr, &err), err);
    must_run(cudaDeviceSynchronize(), "decoding");
    std::vector<uint8_t> found = out.read();
    for (uint64_t i = 0; i < found.size(); i++) {
        if (found[i] != expected[i])
            fail_at("decoded bits differ from the processor's", type, rows, cols, i / width);
    }
    checks++;
}

void check_decodes()
{
    static const uint64_t sizes[] = { 1, 31, 32, 33, 64, 255, 256, 257, 320, 2048, 4096 };
    static const uint64_t some[] = { 1, 33, 257, 512 };
    static const coffer_dtype outputs[] = { COFFER_DTYPE_F32, COFFER_DTYPE_F16, COFFER_DTYPE_BF16 };
    for (int type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        bool whole = type >= COFFER__QUANT_INT8;
        for (coffer_dtype as : outputs) {
            for (size_t i = 0; i < (is_short ? sizeof some : sizeof sizes) / sizeof sizes[0]; i++) {
                uint64_t cols = is_short ? some[i] : sizes[i];
                for (uint64_t rows : { 1, 3, 37 }) {
                    check_decode(type, as, rows, cols, false, 0, rows, 0);
                    check_decode(type, as, rows, cols, whole, rows / 3, rows - rows / 3, 0);
                }
                check_decode(type, as, 5, cols, whole, 1, 3, 1);
            }
        }
    }
}

/* ---- Products ---- */

struct product_case {
    int type;
    uint64_t rows, cols;
    uint32_t columns;
    bool activations;
    uint64_t shift; /* of the payload; x is shifted by as many floats */
};

std::vector<float> random_x(uint64_t count, random_bits &random)
{
    std::vector<float> x(count);
    for (float &number : x)
        number = random.between_ones() * (random.next() % 16 ? 1.0f : 1000.0f);
    return x;
}

void run_product(std::vector<float> &y, const product_case &test, const coffer__gpu_payload &payload, const float *x)
{
    coffer_error err = COFFER_ERROR_INIT;
    guarded out(test.rows * test.columns * 4, 0);
    coffer__gpu_products to = { reinterpret_cast<float *>(out.data()), test.columns, 1 };
    must_succeed(module().product(&to, &payload, x, test.columns, nullptr, &err), err);
    must_run(cudaDeviceSynchronize(), "multiplying");
    std::vector<uint8_t> bytes = out.read();
    y.resize(test.rows * test.columns);
    memcpy(y.data(), bytes.data(), bytes.size());
}

/* Largest error as a share of what cuda.h promises. */
double worst_share;

void check_product(const product_case &test)
{
    coffer__quant_layout layout = plan(test.type, test.rows, test.cols, test.activations);
    random_bits random = { test.rows * 7 + test.cols + test.columns };
    std::vector<uint8_t> bytes = random_payload(layout, test.rows * 31 + test.cols);
    std::vector<float> x = random_x(test.cols * test.columns, random), decoded(test.rows * test.cols), y, again;
    coffer__quant_decode_rows(decoded.data(), &layout, bytes.data(), 0, test.rows);
    device_bytes payload(bytes.data(), bytes.size(), test.shift);
    device_bytes vectors(x.data(), x.size() * 4, 4 * test.shift);
    coffer__gpu_payload located = locate(layout, payload.at);
    run_product(y, test, located, reinterpret_cast<const float *>(vectors.at));
    run_product(again, test, located, reinterpret_cast<const float *>(vectors.at));
    if (memcmp(y.data(), again.data(), y.size() * 4) != 0)
        fail_at("two runs have different bits", test.type, test.rows, test.cols, 0);
    for (uint64_t row = 0; row < test.rows; row++) {
        for (uint32_t column = 0; column < test.columns; column++) {
            double sum = 0, magnitude = 0;
            for (uint64_t col = 0; col < test.cols; col++) {
                double part = (double)decoded[row * test.cols + col] * x[column * test.cols + col];
                sum += part;
                magnitude += std::fabs(part);
            }
            double bound = ((double)test.cols / 8 + 16) * 0x1p-24 * magnitude + 1e-30;
            double share = std::fabs(sum - y[row * test.columns + column]) / bound;
            worst_share = share > worst_share ? share : worst_share;
            if (!(share <= 1))
                fail_at("the error of a product is too large", test.type, test.rows, test.cols, row);
        }
    }
    checks++;
}

void check_products()
{
    static const uint64_t sizes[] = { 1, 31, 32, 33, 255, 256, 257, 1024, 2048, 2880, 4352 };
    static const uint64_t some[] = { 33, 257, 512 };
    for (int type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        for (size_t i = 0; i < (is_short ? sizeof some : sizeof sizes) / sizeof sizes[0]; i++) {
            uint64_t cols = is_short ? some[i] : sizes[i];
            for (uint32_t columns : { 1, 2, 3, 5, 8, 16, 19 }) {
                check_product({ type, 1 + cols % 37, cols, columns, false, 0 });
                if (is_short)
                    break;
            }
            check_product({ type, 19, cols, 2, type >= COFFER__QUANT_INT8, 1 });
        }
        if (is_short)
            continue;
        check_product({ type, 3000, 512, 1, false, 0 });
        check_product({ type, 5000, 256, 4, false, 0 });
        check_product({ type, 17, 60000, 1, false, 0 }); /* x does not fit into shared memory at once */
        check_product({ type, 17, 8192, 16, false, 0 });
    }
}

/* A number of x that is not finite reaches exactly its own rows and vectors. */
void check_infinite()
{
    coffer__quant_layout layout = plan(COFFER__QUANT_Q4, 16, 256, false);
    std::vector<uint8_t> bytes = random_payload(layout, 5);
    random_bits random = { 9 };
    std::vector<float> x = random_x(512, random), y;
    x[40] = INFINITY;
    device_bytes payload(bytes.data(), bytes.size(), 0), vectors(x.data(), x.size() * 4, 0);
    product_case test = { COFFER__QUANT_Q4, 16, 256, 2, false, 0 };
    run_product(y, test, locate(layout, payload.at), reinterpret_cast<const float *>(vectors.at));
    for (int row = 0; row < 16; row++) {
        must(!std::isfinite(y[2 * row]), "an infinite x gave a finite product");
        must(std::isfinite(y[2 * row + 1]), "an infinite x reached another vector");
    }
    checks++;
}

/* ---- The rest of the table ---- */

void check_upload()
{
    coffer_error err = COFFER_ERROR_INIT;
    void *pinned = nullptr;
    must_succeed(module().host_alloc(&pinned, 12345, &err), err);
    for (int i = 0; i < 12345; i++)
        static_cast<uint8_t *>(pinned)[i] = (uint8_t)(i * 7);
    guarded out(12345, 3);
    must_succeed(module().upload(out.data(), pinned, 12345, nullptr, &err), err);
    must(memcmp(out.read().data(), pinned, 12345) == 0, "the uploaded bytes differ");
    float y = 0;
    coffer__gpu_payload none = {};
    must(module().decode(&y, COFFER_DTYPE_F32, &none, 0, 1, nullptr, &err) == COFFER_E_INVALID_ARGUMENT,
         "memory of the processor was accepted");
    module().host_free(pinned, 12345);
    checks++;
}

} // namespace

int main(int argc, char **argv)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint32_t devices = 0;
    is_short = argc > 1 && strcmp(argv[1], "--short") == 0;
    must_succeed(module().device_count(&devices, &err), err);
    if (!devices) {
        printf("skipped: no GPU\n");
        return 77;
    }
    check_upload();
    check_infinite();
    check_decodes();
    check_products();
    printf("%u checks passed; the largest error of a product is %.3f of the bound\n", checks, worst_share);
    return 0;
}
