/* The importer of memray's captures writes a trace without findings, or fails with an error. */
#include "mlyze_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    import_any(data, size, "memray");
    return 0;
}
