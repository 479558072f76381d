#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_layout.h"

#define PREFETCH_BYTES 2048

/* A value of one column as it is added to lane 0 or 1. */
static inline uint64_t packed(uint64_t value)
{
    return value | (uint64_t)(value == 0) << 32 | (uint64_t)(value == UINT16_MAX) << 48;
}

static inline void raise_to(uint16_t *largest, unsigned value)
{
    *largest = value > *largest ? (uint16_t)value : *largest;
}

/* Gives the lane whose top bit says that the row is full. */
static inline uint64_t take(coffer__mscan_row *row, const uint8_t *record)
{
    uint64_t values = coffer__load_u32(record + COFFER__MSCAN_ACTIVATION_AT);
    uint64_t activation = values & UINT16_MAX;
    uint64_t grad_norm = values >> 16;
    row->lane[0] += packed(activation);
    row->lane[1] += packed(grad_norm);
    row->lane[2] += activation * activation + (UINT64_C(1) << 48);
    row->lane[3] += grad_norm * grad_norm;
    raise_to(&row->extreme[COFFER__MSCAN_MAX_ACTIVATION], (unsigned)activation);
    raise_to(&row->extreme[COFFER__MSCAN_MIN_ACTIVATION], (unsigned)activation ^ UINT16_MAX);
    raise_to(&row->extreme[COFFER__MSCAN_MAX_GRAD_NORM], (unsigned)grad_norm);
    raise_to(&row->extreme[COFFER__MSCAN_MIN_GRAD_NORM], (unsigned)grad_norm ^ UINT16_MAX);
    return row->lane[2];
}

size_t coffer__mscan_kernel_generic(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                    size_t count, const uint8_t *keys, size_t key_stride)
{
    coffer__mscan_row *second_rows = rows + rows_shift;
    const uint8_t *at = records;
    size_t taken = 0;
    for (; taken + 2 <= count; taken += 2, at += 2 * COFFER__MSCAN_RECORD_SIZE, keys += 2 * key_stride) {
        __builtin_prefetch(at + PREFETCH_BYTES);
        uint64_t full = take(&rows[(size_t)coffer__load_u16(keys) << rows_shift], at);
        full |= take(&second_rows[(size_t)coffer__load_u16(keys + key_stride) << rows_shift],
                     at + COFFER__MSCAN_RECORD_SIZE);
        if (full >> 63)
            return taken + 2;
    }
    if (taken < count) {
        take(&rows[(size_t)coffer__load_u16(keys) << rows_shift], at);
        taken++;
    }
    return taken;
}
