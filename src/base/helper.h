/* Helpers: programs of Coffer that parse untrusted files with libraries whose memory errors must not reach
 * this process. A helper talks over a socket in frames (a kind, a length, bytes), each side in turn. It reads
 * no file by name: it gets bytes, or a descriptor. */
#ifndef COFFER_BASE_HELPER_H
#define COFFER_BASE_HELPER_H

#include "base/buffer.h"
#include "base/module.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of a helper. Both sides know these numbers. */
enum { COFFER__HELPER_SOCKET = 3, COFFER__HELPER_FILE = 4 };

/* The largest frame; longer data is sent in several. */
#define COFFER__FRAME_MAX ((size_t)1 << 20)

/* The first frame of every helper: COFFER_VERSION_STRING, NUL, version of its library. Other kinds are the
 * helper's own and begin at 1. */
enum { COFFER__FRAME_HELLO = 0 };

typedef struct coffer__helper {
    coffer__module_id id;
    int fd; /* −1 = not running */
    pid_t pid;
} coffer__helper;

/* Starts a helper and waits for its first frame. pass_fd : open for reading, becomes COFFER__HELPER_FILE; −1
 * = none. frame : receives the text of the first frame. */
coffer_status coffer__helper_start(coffer__helper *out, coffer__module_id id, int pass_fd,
                                   coffer__buffer *frame, coffer_error *err);
/* Ends the helper, whatever it is doing. */
void coffer__helper_stop(coffer__helper *helper);
/* After a frame could not be sent or received: stops the helper and says how it ended. */
coffer_status coffer__helper_fail(coffer__helper *helper, coffer_error *err);
/* The version of the library that the helper uses; NULL when it cannot be started. */
const char *coffer__helper_version(coffer__module_id id, coffer_error *err);

/* One frame: `head`, then `tail`, which together have at most COFFER__FRAME_MAX bytes. False when the other
 * side is gone. */
bool coffer__frame_send(int fd, uint32_t kind, const void *head, size_t head_len, const void *tail,
                        size_t tail_len);
/* Replaces the content of the buffer. False when the other side is gone, or what comes is not a frame. */
bool coffer__frame_receive(int fd, uint32_t *kind, coffer__buffer *frame);

/* Takes away from a helper program what it does not need. */

/* From now on this process has at most memory_bytes of memory, and can only compute, allocate, and read and
 * write descriptors that are open: it cannot open files, start programs or use the network. False when the
 * system does not support a part of it; the rest still holds. Built with sanitizers, it does nothing. */
bool coffer__sandbox_enter(uint64_t memory_bytes);
/* Processor time for the next step; a process that uses more is ended by SIGPROF. */
void coffer__sandbox_allow_seconds(unsigned seconds);

#endif
