/* The importers of JSON lines, CSV and NumPy write a training set without findings, or fail. */
#include "mldf_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *kind = "csv";
    if (size && data[0] == '{')
        kind = "jsonl";
    else if (size && data[0] == 0x93)
        kind = "npy";
    else if (size && data[0] == 'P')
        kind = "npz";
    return fuzz_import(kind, data, size);
}
