/* The kernel in 128-bit registers: two lanes of a row at a time. */
#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_layout.h"

#include <arm_neon.h>

#define PREFETCH_BYTES 2048

typedef struct constants {
    uint8x16_t spread;     /* activation and grad_norm, each as a sum and doubled for its flags */
    uint16x8_t matches;    /* what the flag fields of a row count */
    uint16x8_t flags;      /* one in each field that counts */
    uint64x2_t sum, count; /* the field of a sum; a record in the lane of squares that counts them */
    uint16x8_t complement;
} constants;

static inline constants load_constants(void)
{
    enum { A = 4, G = 6, Z = 255 }; /* in the last 8 bytes of a record; zero */
    static const uint8_t spread[16] = {
        A, A + 1, Z, Z, A, A + 1, A, A + 1, G, G + 1, Z, Z, G, G + 1, G, G + 1
    };
    static const uint16_t matches[8] = { 0, 0, 0, UINT16_MAX, 0, 0, 0, UINT16_MAX };
    static const uint16_t flags[8] = { 0, 0, 1, 1, 0, 0, 1, 1 };
    return (constants){ vld1q_u8(spread),
                        vld1q_u16(matches),
                        vld1q_u16(flags),
                        vdupq_n_u64(UINT16_MAX),
                        vcombine_u64(vdup_n_u64(UINT64_C(1) << 48), vdup_n_u64(0)),
                        vld1q_u16(matches) };
}

/* Gives the lane whose top bit says that the row is full. */
static inline uint64_t take(coffer__mscan_row *row, const uint8_t *record, const constants *c)
{
    uint8x8_t tail = vld1_u8(record + COFFER__MSCAN_PARAM_AT);
    uint8x16_t bytes = vqtbl1q_u8(vcombine_u8(tail, tail), c->spread);
    uint16x8_t values = vreinterpretq_u16_u8(bytes);
    uint64x2_t plain = vandq_u64(vreinterpretq_u64_u8(bytes), c->sum);
    uint64x2_t found = vreinterpretq_u64_u16(vandq_u16(vceqq_u16(values, c->matches), c->flags));
    uint64x2_t squares = vmull_u32(vmovn_u64(plain), vmovn_u64(plain));
    uint64x2_t full = vaddq_u64(vld1q_u64(row->lane + 2), vorrq_u64(squares, c->count));
    vst1q_u64(row->lane, vaddq_u64(vld1q_u64(row->lane), vorrq_u64(plain, found)));
    vst1q_u64(row->lane + 2, full);
    vst1q_u16(row->extreme, vmaxq_u16(vld1q_u16(row->extreme), veorq_u16(values, c->complement)));
    return vgetq_lane_u64(full, 0);
}

static inline coffer__mscan_row *row_of(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *key)
{
    return &rows[(size_t)coffer__load_u16(key) << rows_shift];
}

size_t coffer__mscan_kernel_neon(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                 size_t count, const uint8_t *keys, size_t key_stride)
{
    const constants c = load_constants();
    const uint8_t *at = records;
    size_t taken = 0;
    for (; taken + 2 <= count; taken += 2, at += 2 * COFFER__MSCAN_RECORD_SIZE, keys += 2 * key_stride) {
        __builtin_prefetch(at + PREFETCH_BYTES);
        uint64_t full = take(row_of(rows, rows_shift, keys), at, &c);
        full |= take(row_of(rows, rows_shift, keys + key_stride) + rows_shift, at + COFFER__MSCAN_RECORD_SIZE,
                     &c);
        if (full >> 63)
            return taken + 2;
    }
    if (taken < count) {
        take(row_of(rows, rows_shift, keys), at, &c);
        taken++;
    }
    return taken;
}
