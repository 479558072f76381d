/* Whatever an HDF5 file does to libhdf5, the library gets an answer or an error. Half of the inputs are read
 * by the program itself, half through the socket. */
#include "hdf5_input.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_source *src = NULL;
    int fd = -1;
    setenv("COFFER_MODULE_PATH", COFFER_FUZZ_MODULES, 1);
    MUST(coffer_source_from_memory(&src, data, size, NULL) == COFFER_OK);
    coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
    if (size % 2) {
        fd = memfd_create("input", MFD_CLOEXEC);
        MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        bytes.fd = fd;
    }
    bytes.memory_bytes = 1 << 26;
    hdf5_read_all(&bytes);
    if (fd >= 0)
        close(fd);
    coffer_source_close(src);
    return 0;
}
