/* Takes away from a helper program what it does not need. */
#ifndef COFFER_BASE_SANDBOX_H
#define COFFER_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* From now on this process has at most memory_bytes of memory, and can only compute, allocate, and read and
 * write descriptors that are open: it cannot open files, start programs or use the network. False when the
 * system does not support a part of it; the rest still holds. Built with sanitizers, it does nothing. */
bool coffer__sandbox_enter(uint64_t memory_bytes);
/* Processor time for the next step; a process that uses more is ended by SIGPROF. */
void coffer__sandbox_allow_seconds(unsigned seconds);

#endif
