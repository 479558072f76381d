/* Is what the importer of beton accepts a clean training set? */
#include "mldf_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_import("beton", data, size);
}
