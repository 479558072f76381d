/* Files whose names come from other files: they stay inside their folder. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"
#include "io/source_struct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static coffer_status fail_open(int error_number, coffer_error *err)
{
    if (error_number == ELOOP || error_number == EMLINK)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "a symbolic link, which is not followed here");
    if (error_number == ENOENT)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the file does not exist");
    return coffer__fail_errno(err, "cannot open", error_number);
}

/* The descriptor of a regular file; a pipe or a device is not waited for. */
static coffer_status open_regular(int *out, uint64_t *size, const char *folder, bool follow, const char *name,
                                  coffer_error *err)
{
    struct stat st;
    coffer_status status = COFFER_OK;
    int in = coffer__file_try_open(folder, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW), 0), fd;
    if (in < 0) /* Linux says ENOTDIR of a link that is not to be followed */
        return coffer__fail_other(err, fail_open(errno == ENOTDIR && !follow ? ELOOP : errno, err), folder);
    do
        fd = coffer__os_open_at(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        status = fail_open(errno, err);
    else if (coffer__os_fstat(fd, &st) != 0)
        status = coffer__fail_errno(err, "cannot examine", errno);
    else if (!S_ISREG(st.st_mode))
        status = coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "not a regular file");
    coffer__file_close(in);
    if (!status)
        coffer__inputs_note(fd);
    if (status) {
        coffer__file_close(fd);
        return coffer__fail_other(err, status, name);
    }
    *out = fd;
    *size = (uint64_t)st.st_size;
    return COFFER_OK;
}

coffer_status coffer__source_open_in(coffer_source **out, const char *folder, bool follow, const char *name,
                                     coffer_error *err)
{
    uint64_t size = 0;
    int fd = -1;
    if (!coffer__file_name_is_plain(name, strlen(name)))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "\"%s\" is not a plain file name: it could lead out of the folder", name);
    size_t path_size = strlen(folder) + strlen(name) + 2;
    char *path = coffer__malloc(path_size);
    if (!path)
        return coffer__fail_no_memory(err, path_size);
    snprintf(path, path_size, "%s/%s", folder, name);
    coffer_status status = open_regular(&fd, &size, folder, follow, name, err);
    if (!status && coffer__source_over_map(out, fd, size, path, NULL, false, NULL)) {
        status = coffer__source_over_fd(out, fd, true, size, path, NULL, err);
        if (status)
            coffer__file_close(fd);
    }
    if (!status)
        (*out)->other = true;
    coffer__free(path);
    return status;
}
