/* The module coffer-cuda: its table, devices, pinned memory. */
#include "gpu/gpu_cuda.h"

#include <cstdio>
#include <mutex>

extern "C" {
#include "base/fail.h"
}

namespace coffer_gpu {

coffer_status check_cuda(cudaError_t result, const char *what, coffer_error *err)
{
    if (result == cudaSuccess)
        return COFFER_OK;
    (void)cudaGetLastError(); /* it is reported once, here */
    if (result == cudaErrorInsufficientDriver)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "CUDA: the NVIDIA driver is missing, or older than CUDA %d.%d; install a newer one",
                            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    coffer_status status = result == cudaErrorMemoryAllocation ? COFFER_E_NO_MEMORY :
                           result == cudaErrorInvalidValue     ? COFFER_E_INVALID_ARGUMENT :
                           result == cudaErrorNoDevice ||
                                   result == cudaErrorNoKernelImageForDevice ?
                                                                 COFFER_E_UNSUPPORTED :
                                                                 COFFER_E_IO;
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "CUDA: %s: %s", what, cudaGetErrorString(result));
}

device_guard::~device_guard()
{
    if (before_ >= 0)
        (void)cudaSetDevice(before_);
}

coffer_status device_guard::enter(const void *pointer, coffer_error *err)
{
    cudaPointerAttributes attributes = {};
    coffer_status status = check_cuda(cudaPointerGetAttributes(&attributes, pointer), "looking at a pointer", err);
    if (status)
        return status;
    if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the output is not memory of a GPU; allocate it with cudaMalloc");
    int before = -1;
    status = check_cuda(cudaGetDevice(&before), "looking for the current device", err);
    device_ = attributes.device;
    if (status || before == device_)
        return status;
    status = check_cuda(cudaSetDevice(device_), "choosing the device", err);
    if (!status)
        before_ = before;
    return status;
}

} // namespace coffer_gpu

using namespace coffer_gpu;

namespace {

coffer_status device_count(uint32_t *out, coffer_error *err)
{
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        result = cudaSuccess;
    }
    coffer_status status = check_cuda(result, "counting GPUs", err);
    if (!status)
        *out = (uint32_t)count;
    return status;
}

/* Pinned memory that was freed: allocating it takes longer than a tensor of some megabytes. */
struct pinned {
    void *memory;
    size_t size;
};
std::mutex pinned_lock;
pinned spare[2];

coffer_status host_alloc(void **out, size_t size, coffer_error *err)
{
    {
        std::lock_guard<std::mutex> hold(pinned_lock);
        for (pinned &kept : spare) {
            if (kept.memory && kept.size == size) {
                *out = kept.memory;
                kept.memory = nullptr;
                return COFFER_OK;
            }
        }
    }
    return check_cuda(cudaHostAlloc(out, size, cudaHostAllocPortable), "allocating pinned memory", err);
}

void host_free(void *memory, size_t size)
{
    {
        std::lock_guard<std::mutex> hold(pinned_lock);
        for (pinned &kept : spare) {
            if (!kept.memory) {
                kept = { memory, size };
                return;
            }
        }
    }
    (void)cudaFreeHost(memory);
}

coffer_status upload(void *out, const void *from, size_t size, void *stream, coffer_error *err)
{
    cudaStream_t queue = static_cast<cudaStream_t>(stream);
    device_guard guard;
    coffer_status status = guard.enter(out, err);
    if (!status)
        status = check_cuda(cudaMemcpyAsync(out, from, size, cudaMemcpyHostToDevice, queue), "copying to the GPU", err);
    if (!status)
        status = check_cuda(cudaStreamSynchronize(queue), "copying to the GPU", err);
    return status;
}

const char *library_version()
{
    static char text[16];
    int version = 0;
    if (!text[0] && cudaRuntimeGetVersion(&version) == cudaSuccess)
        snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    return text;
}

const coffer__gpu_module module = {
    COFFER__MODULE_INIT(coffer__gpu_module, library_version),
    device_count,
    coffer__gpu_decode,
    coffer__gpu_product,
    host_alloc,
    host_free,
    upload,
};

} // namespace

extern "C" {
/* COFFER__MODULE_EXPORT in C++, where the first declaration decides about the visibility. */
extern __attribute__((visibility("default"))) const coffer__module *const coffer_module_cuda;
const coffer__module *const coffer_module_cuda = &module.common;
}
