/* A malicious file may control the program of HDF5 files, which then answers anything. The input is what it
 * says after its first frame; replay_answers.c says it. */
#include "hdf5_input.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t content[64];
    coffer_source *src = NULL;
    setenv("COFFER_MODULE_PATH", COFFER_FUZZ_REPLAY, 1);
    MUST(coffer_source_from_memory(&src, content, sizeof content, NULL) == COFFER_OK);
    coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
    bytes.fd = memfd_create("answers", MFD_CLOEXEC);
    MUST(bytes.fd >= 0 && write(bytes.fd, data, size) == (ssize_t)size);
    hdf5_read_all(&bytes);
    close(bytes.fd);
    coffer_source_close(src);
    return 0;
}
