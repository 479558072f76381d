/* Threads that the library starts. */
#ifndef COFFER_BASE_THREAD_H
#define COFFER_BASE_THREAD_H

#include <signal.h>

/* Blocks the signals that are meant for the program's own threads, before a thread is started, which inherits
 * it; restore *before with pthread_sigmask afterwards. */
void coffer__thread_block_signals(sigset_t *before);

#endif
