/* Replaces coffer-hdf5: it says hello, and then sends the bytes of the file that it was given. */
#include "base/helper.h"
#include "coffer/version.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    static const char hello[] = COFFER_VERSION_STRING "\0replay";
    static uint8_t bytes[1 << 16];
    ssize_t len, offset = 0;
    if (!coffer__frame_send(COFFER__HELPER_SOCKET, COFFER__FRAME_HELLO, hello, sizeof hello - 1, NULL, 0))
        return 1;
    while ((len = pread(COFFER__HELPER_FILE, bytes, sizeof bytes, offset)) > 0) {
        if (send(COFFER__HELPER_SOCKET, bytes, (size_t)len, MSG_NOSIGNAL) < 0)
            return 1;
        offset += len;
    }
    return 0;
}
