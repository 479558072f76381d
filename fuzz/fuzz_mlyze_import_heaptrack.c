/* Is what the importer of heaptrack files accepts a clean trace, and does it refuse everything else without
 * harm? */
#include "mlyze_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    import_any(data, size, "heaptrack");
    return 0;
}
