/* Memory of the GPU and random payloads, for the test and the benchmark. */
#ifndef COFFER_TESTS_GPU_SUPPORT_H
#define COFFER_TESTS_GPU_SUPPORT_H

#include "gpu/gpu_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" const coffer__module *const coffer_module_cuda;

namespace gpu_support
{

inline const coffer__gpu_module &module()
{
    return *reinterpret_cast<const coffer__gpu_module *>(coffer_module_cuda);
}

inline void must(bool holds, const char *what)
{
    if (holds)
        return;
    printf("failed: %s\n", what);
    exit(1);
}

inline void must_run(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    printf("failed: %s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}

inline void must_succeed(coffer_status status, const coffer_error &err)
{
    if (!status)
        return;
    printf("failed: %s\n", err.text);
    exit(1);
}

struct random_bits {
    uint64_t state;
    uint32_t next()
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 32);
    }
    float between_ones()
    {
        return (float)(int32_t)next() * 0x1p-31f;
    }
};

struct type_name {
    coffer_dtype dtype;
    const char *name;
};

constexpr type_name TYPES[COFFER__QUANT_TYPE_COUNT] = {
    { COFFER_DTYPE_Q8, "q8" },     { COFFER_DTYPE_Q4, "q4" },     { COFFER_DTYPE_K6, "k6" },
    { COFFER_DTYPE_K4, "k4" },     { COFFER_DTYPE_K3, "k3" },     { COFFER_DTYPE_K2, "k2" },
    { COFFER_DTYPE_INT8, "int8" }, { COFFER_DTYPE_INT4, "int4" },
};

inline coffer__quant_layout plan(int type, uint64_t rows, uint64_t cols, bool activations)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__quant_layout layout;
    uint64_t dims[2] = { rows, cols };
    must_succeed(coffer__quant_plan(&layout, TYPES[type].dtype, 2, dims, activations, &err), err);
    return layout;
}

inline coffer__gpu_payload locate(const coffer__quant_layout &layout, const uint8_t *payload)
{
    coffer__gpu_payload out = {};
    for (int i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = layout.regions[i].size ? payload + layout.regions[i].offset : nullptr;
    out.rows = layout.rows, out.cols = layout.cols;
    out.blocks_per_row = layout.blocks_per_row, out.supers_per_row = layout.supers_per_row;
    out.type = layout.type->index;
    return out;
}

/* Random codes; finite scales of both signs, subnormal ones too. */
inline std::vector<uint8_t> random_payload(const coffer__quant_layout &layout, uint64_t seed)
{
    random_bits random = { seed };
    std::vector<uint8_t> bytes(layout.size);
    for (uint8_t &byte : bytes)
        byte = (uint8_t)(random.next() >> 13);
    const coffer__quant_region &scales = layout.regions[COFFER__QUANT_SCALES];
    if (layout.type->family == COFFER__QUANT_WHOLE) {
        float factors[2] = { 0.0078125f * 1.1f, 3.0f };
        memcpy(bytes.data() + scales.offset, &factors[0], 4);
        if (layout.regions[COFFER__QUANT_SUBS].size)
            memcpy(bytes.data() + layout.regions[COFFER__QUANT_SUBS].offset, &factors[1], 4);
        return bytes;
    }
    for (uint64_t i = 0; i < scales.size; i += 2)
        bytes[scales.offset + i + 1] &= 0xAF; /* below 2^-10 or so, or up to 2^5 */
    return bytes;
}

} // namespace gpu_support

#endif
