/* Declarations that the files of the module share: errors, the device of a pointer, the functions of its
 * table. */
#ifndef COFFER_GPU_GPU_CUDA_H
#define COFFER_GPU_GPU_CUDA_H

#include "gpu/gpu_codes.h"

#include <cuda_runtime.h>

namespace coffer_gpu
{

/* Blocks of a grid; CUDA accepts 2^31 - 1. */
constexpr uint64_t MOST_BLOCKS = 1u << 30;

/* COFFER_OK, or an error with CUDA's words. */
coffer_status check_cuda(cudaError_t result, const char *what, coffer_error *err);

/* Makes the device of a pointer the current one of this thread until the end of the scope. */
class device_guard
{
  public:
    device_guard() = default;
    device_guard(const device_guard &) = delete;
    device_guard &operator=(const device_guard &) = delete;
    ~device_guard();
    /* COFFER_E_INVALID_ARGUMENT when the pointer is not memory of a GPU. */
    coffer_status enter(const void *pointer, coffer_error *err);
    int device() const
    {
        return device_;
    }

  private:
    int before_ = -1, device_ = -1;
};

} // namespace coffer_gpu

coffer_status coffer__gpu_decode(void *out, coffer_dtype as, const coffer__gpu_payload *payload,
                                 uint64_t first, uint64_t count, void *stream, coffer_error *err);
coffer_status coffer__gpu_product(const coffer__gpu_products *out, const coffer__gpu_payload *payload,
                                  const float *x, uint32_t columns, void *stream, coffer_error *err);

#endif
