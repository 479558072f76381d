#if defined(__x86_64__)
#include "formats/mscan/mscan_kernel_x86.h"

size_t coffer__mscan_kernel_avx2(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                 size_t count, const uint8_t *keys, size_t key_stride)
{
    return take_all(rows, rows_shift, records, count, keys, key_stride);
}
#endif
