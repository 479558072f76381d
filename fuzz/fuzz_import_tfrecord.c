/* The importer of TFRecord writes a training set without findings, or fails. Half of the inputs get correct
 * checksums. */
#include "base/buffer.h"
#include "mldf_import.h"
#include "outside/records/tfrecord.h"

#include "base/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer__buffer repaired = COFFER__BUFFER_INIT;
    if (size % 2)
        return fuzz_import("tfrecord", data, size);
    for (size_t at = 0; size - at > 16;) {
        uint64_t stated = coffer__load_u64(data + at);
        size_t left = size - at - 16, len = stated < left ? (size_t)stated : left;
        coffer__tfrecord_put_front(&repaired, len);
        coffer__buffer_append(&repaired, data + at + 12, len);
        coffer__tfrecord_put_back(&repaired, data + at + 12, len);
        at += len + 16;
    }
    MUST(!repaired.failed);
    int result = fuzz_import("tfrecord", repaired.data ? repaired.data : data, repaired.len);
    coffer__buffer_free(&repaired);
    return result;
}
