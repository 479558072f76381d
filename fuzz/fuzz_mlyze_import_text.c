/* The importers of massif files and collapsed stacks, compressed or not, write a trace without findings, or
 * fail. */
#include "mlyze_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_massif = size > 5 && memcmp(data, "desc:", 5) == 0;
    import_any(data, size, is_massif ? "massif" : "collapsed");
    return 0;
}
