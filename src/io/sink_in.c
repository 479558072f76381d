/* New files whose names come from other files: they stay inside their folder. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The path of a name in an open folder: whatever happens to the names above it, it stays in that folder. */
static char *path_in(int folder, const char *name, size_t len)
{
    size_t size = sizeof "/proc/self/fd/2147483647/" + len;
    char *path = coffer__malloc(size);
    if (path)
        snprintf(path, size, "/proc/self/fd/%d/%.*s", folder, (int)len, name);
    return path;
}

static coffer_status fail_step(const char *name, size_t len, int error_number, coffer_error *err)
{
    if (error_number == ELOOP || error_number == EMLINK || error_number == ENOTDIR)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "%.*s is a symbolic link or not a folder: nothing is written through it",
                            (int)(len > 100 ? 100 : len), name);
    return coffer__fail_errno(err, "cannot create the folder", error_number);
}

static int open_folder(int in, const char *name)
{
    int fd;
    do
        fd = coffer__os_open_at(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Replaces *folder by the folder of that name in it, which is made when it does not exist. `end` : of the
 * name, which begins after the last slash before. */
static coffer_status step_into(int *folder, const char *name, const char *start, const char *end,
                               coffer_error *err)
{
    size_t len = (size_t)(end - start);
    char *part = coffer__strndup(start, len), *path = path_in(*folder, start, len);
    coffer_status status = part && path ? COFFER_OK : coffer__fail_no_memory(err, len);
    int next = status ? -1 : open_folder(*folder, part);
    if (!status && next < 0 && errno == ENOENT) {
        if (coffer__os_make_folder(path, 0777) == 0 || errno == EEXIST)
            next = open_folder(*folder, part);
    }
    if (!status && next < 0)
        status = fail_step(name, (size_t)(end - name), errno, err);
    if (!status) {
        coffer__file_close(*folder);
        *folder = next;
    }
    coffer__free(part);
    coffer__free(path);
    return status;
}

coffer_status coffer__sink_create_in(coffer__sink **out, const char *folder, const char *name,
                                     const coffer__sink_opts *opts, coffer_error *err)
{
    coffer__sink_opts options = opts ? *opts : (coffer__sink_opts){ 0 };
    const char *start = name;
    char *path = NULL;
    coffer__sink *sink = NULL;
    options.no_follow = true;
    int in = coffer__file_try_open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (in < 0)
        return coffer__fail_output(err, coffer__fail_errno(err, "cannot open the folder", errno));
    coffer_status status = COFFER_OK;
    for (const char *slash = strchr(start, '/'); !status && slash; slash = strchr(start, '/')) {
        status = step_into(&in, name, start, slash, err);
        start = slash + 1;
    }
    if (!status && !coffer__file_name_is_plain(start, strlen(start)))
        status = coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                              "not a plain file name: it could lead out of the folder");
    if (!status && !(path = path_in(in, start, strlen(start))))
        status = coffer__fail_no_memory(err, strlen(start));
    if (!status)
        status = coffer__sink_create(&sink, path, &options, err);
    coffer__free(path);
    if (status) {
        coffer__file_close(in);
        return coffer__fail_output(err, status);
    }
    sink->folder = in;
    *out = sink;
    return COFFER_OK;
}
