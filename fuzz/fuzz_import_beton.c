/* The importer of beton files writes a training set without findings, or fails. */
#include "mldf_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_import("beton", data, size);
}
