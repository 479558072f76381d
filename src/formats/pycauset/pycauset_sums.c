/* CRC-32 sums of a payload. */
#include "formats/pycauset/pycauset_private.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

coffer_status coffer__pycauset_sum_payload(coffer__buffer *out, coffer_source *src,
                                           const coffer_pycauset_info *info, coffer_error *err)
{
    uint8_t *scratch = NULL;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; done < info->payload_needed && status == COFFER_OK;) {
        uint64_t left = info->payload_needed - done, offset = info->payload_offset + done;
        size_t len = (size_t)(left < COFFER__PYCAUSET_CHECKSUM_GROUP ? left : COFFER__PYCAUSET_CHECKSUM_GROUP);
        const uint8_t *bytes = coffer_source_view(src, offset, len);
        uint8_t sum[4];
        if (!bytes && !scratch && !(scratch = coffer__malloc(COFFER__PYCAUSET_CHECKSUM_GROUP)))
            return coffer__fail_no_memory(err, COFFER__PYCAUSET_CHECKSUM_GROUP);
        if (!bytes && !(status = coffer_source_read_at(scratch, src, offset, len, err)))
            bytes = scratch;
        if (status)
            break;
        coffer__store_u32(sum, coffer__crc32(0, bytes, len));
        if (!coffer__buffer_append(out, sum, sizeof sum))
            status = coffer__fail_no_memory(err, out->len);
        done += len;
    }
    coffer__free(scratch);
    return status ? status : coffer_source_intact(src, err);
}
