/* MSCAN byte by byte (docs/formats/mscan.md). Little-endian, nothing aligned: load, never cast.
 *
 *   offset  type     field
 *   0       5 bytes  "MSCAN"
 *   5       u16      version, 1
 *   7       u32      header length: 15 + bytes of JSON and of the spaces after it; the records start here
 *   11      u32      record count
 *   15               JSON metadata
 *
 *   record, 12 bytes, packed
 *   0       u32      token_idx, global over all sequences
 *   4       u16      param_id
 *   6       u16      block_idx
 *   8       u16      activation, quantized
 *   10      u16      grad_norm, quantized
 */
#ifndef COFFER_FORMATS_MSCAN_LAYOUT_H
#define COFFER_FORMATS_MSCAN_LAYOUT_H

#include "base/bytes.h"
#include "coffer/mscan.h"

#define COFFER__MSCAN_MAGIC "MSCAN"
#define COFFER__MSCAN_MAGIC_SIZE 5
#define COFFER__MSCAN_VERSION 1
#define COFFER__MSCAN_VERSION_AT 5
#define COFFER__MSCAN_HEADER_LEN_AT 7
#define COFFER__MSCAN_COUNT_AT 11
#define COFFER__MSCAN_HEADER_SIZE 15 /* the JSON begins here */

#define COFFER__MSCAN_RECORD_SIZE 12
#define COFFER__MSCAN_TOKEN_AT 0
#define COFFER__MSCAN_PARAM_AT 4
#define COFFER__MSCAN_BLOCK_AT 6
#define COFFER__MSCAN_ACTIVATION_AT 8
#define COFFER__MSCAN_GRAD_NORM_AT 10

#define COFFER__MSCAN_PARAM_IDS 65536                /* what a u16 can name */
#define COFFER__MSCAN_MAX_RECORDS UINT32_MAX         /* the header's count is a u32 */
#define COFFER__MSCAN_MAX_TOKENS (UINT64_C(1) << 32) /* token_idx is a u32 */
#define COFFER__MSCAN_ALIGNMENT 64                   /* where our writer starts the records */

static inline uint32_t coffer__mscan_load_token(const uint8_t *record)
{
    return coffer__load_u32(record + COFFER__MSCAN_TOKEN_AT);
}

static inline uint16_t coffer__mscan_load_param(const uint8_t *record)
{
    return coffer__load_u16(record + COFFER__MSCAN_PARAM_AT);
}

static inline coffer_mscan_record coffer__mscan_load(const uint8_t *from)
{
    coffer_mscan_record record;
    record.token_idx = coffer__mscan_load_token(from);
    record.param_id = coffer__mscan_load_param(from);
    record.block_idx = coffer__load_u16(from + COFFER__MSCAN_BLOCK_AT);
    record.activation = coffer__load_u16(from + COFFER__MSCAN_ACTIVATION_AT);
    record.grad_norm = coffer__load_u16(from + COFFER__MSCAN_GRAD_NORM_AT);
    return record;
}

static inline void coffer__mscan_store(uint8_t *to, const coffer_mscan_record *record)
{
    coffer__store_u32(to + COFFER__MSCAN_TOKEN_AT, record->token_idx);
    coffer__store_u16(to + COFFER__MSCAN_PARAM_AT, record->param_id);
    coffer__store_u16(to + COFFER__MSCAN_BLOCK_AT, record->block_idx);
    coffer__store_u16(to + COFFER__MSCAN_ACTIVATION_AT, record->activation);
    coffer__store_u16(to + COFFER__MSCAN_GRAD_NORM_AT, record->grad_norm);
}

#endif
