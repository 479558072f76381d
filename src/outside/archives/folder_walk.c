#include "outside/archives/folder_walk.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Size of the first read; a file that fills it is read further. */
#define FIRST_READ ((size_t)128 << 10)

/* A folder that is still to be listed, and the folders above it, which a link must not lead back to. */
typedef struct waiting {
    const char *path; /* relative; "" is the root */
    bool hidden;
    dev_t device;
    ino_t inode;
    const struct waiting *parent;
} waiting;

typedef struct walk {
    coffer__folder_list *list;
    const char *root;
    const coffer__folder_walk_opts *opts;
    const coffer_limits *limits;
    coffer__arena arena;
    const waiting **folders;
    size_t folder_count, folder_capacity;
} walk;

static bool is_hidden(const char *name)
{
    return name[0] == '.' || strcasecmp(name, "Thumbs.db") == 0 || strcasecmp(name, "desktop.ini") == 0;
}

const char *coffer__folder_entry_name(coffer__folder_entry entry)
{
    static const char *const names[] = { "a file",   "a symbolic link", "a named pipe",
                                         "a socket", "a device",        "a folder that cannot be listed" };
    return names[entry];
}

static const char *join(coffer__arena *arena, const char *folder, const char *name)
{
    size_t folder_len = strlen(folder), name_len = strlen(name);
    char *path = coffer__arena_take(arena, folder_len + name_len + 2);
    if (!path)
        return NULL;
    memcpy(path, folder, folder_len);
    if (folder_len)
        path[folder_len++] = '/';
    memcpy(path + folder_len, name, name_len + 1);
    return path;
}

static coffer_status add_file(walk *work, const waiting *folder, const char *name, coffer__folder_entry entry,
                              coffer_error *err)
{
    coffer__folder_list *list = work->list;
    if (list->count >= work->limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "more than %" PRIu64 " files in the folder", work->limits->entries);
    coffer_status status =
        coffer__array_reserve_one(&list->files, &list->capacity, list->count, sizeof *list->files, err);
    if (status)
        return status;
    const char *path = join(&list->paths, folder->path, name);
    if (!path)
        return coffer__fail_no_memory(err, strlen(name));
    list->files[list->count++] =
        (coffer__folder_file){ path, entry, folder->hidden || is_hidden(name), work->opts->root };
    return COFFER_OK;
}

static coffer_status add_folder(walk *work, const waiting *parent, const char *name, const struct stat *st,
                                coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&work->folders, &work->folder_capacity,
                                                     work->folder_count, sizeof *work->folders, err);
    if (status)
        return status;
    waiting *folder = coffer__arena_take(&work->arena, sizeof *folder);
    const char *path = join(&work->arena, parent ? parent->path : "", name);
    if (!folder || !path)
        return coffer__fail_no_memory(err, strlen(name));
    *folder =
        (waiting){ path, parent && (parent->hidden || is_hidden(name)), st->st_dev, st->st_ino, parent };
    work->folders[work->folder_count++] = folder;
    return COFFER_OK;
}

static coffer__folder_entry entry_of(mode_t mode)
{
    return S_ISREG(mode)    ? COFFER__ENTRY_FILE
           : S_ISLNK(mode)  ? COFFER__ENTRY_LINK
           : S_ISFIFO(mode) ? COFFER__ENTRY_PIPE
           : S_ISSOCK(mode) ? COFFER__ENTRY_SOCKET
                            : COFFER__ENTRY_DEVICE;
}

/* *st becomes what a link leads to; a link that leads nowhere, or back to a folder above, stays a link. */
static void follow(const walk *work, const waiting *folder, const char *name, struct stat *st)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    struct stat target;
    coffer__buffer_printf(&path, "%s/%s%s%s", work->root, folder->path, *folder->path ? "/" : "", name);
    bool found = !path.failed && coffer__os_stat(coffer__buffer_text(&path), &target) == 0;
    coffer__buffer_free(&path);
    for (const waiting *above = folder; found && S_ISDIR(target.st_mode) && above; above = above->parent)
        found = above->device != target.st_dev || above->inode != target.st_ino;
    if (found)
        *st = target;
}

static coffer_status add_name(walk *work, void *open_folder, const waiting *folder, const char *name,
                              unsigned char type, coffer_error *err)
{
    struct stat st = { .st_mode = S_IFREG };
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return COFFER_OK;
    if (type != DT_REG && coffer__os_stat_in(open_folder, name, &st) != 0)
        return coffer__fail_other(err, coffer__fail_errno(err, "cannot examine", errno), name);
    if (S_ISLNK(st.st_mode) && work->opts->follow_links)
        follow(work, folder, name, &st);
    return S_ISDIR(st.st_mode) ? add_folder(work, folder, name, &st, err)
                               : add_file(work, folder, name, entry_of(st.st_mode), err);
}

/* folder : "" for the folder that the caller named. */
static coffer_status fail_listing(walk *work, const waiting *folder, int error_number, coffer_error *err)
{
    if (work->opts->keep_unreadable && *folder->path)
        return add_file(work, folder, "", COFFER__ENTRY_UNREADABLE, err);
    return coffer__fail_other(err, coffer__fail_errno(err, "cannot list", error_number),
                              *folder->path ? folder->path : NULL);
}

static coffer_status list_folder(walk *work, const waiting *folder, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    /* The last part of a path is not followed when it is a link; "." is not one. */
    coffer__buffer_printf(&path, "%s/%s%s", work->root, folder->path, work->opts->follow_links ? "/." : "");
    void *open_folder = path.failed ? NULL : coffer__os_open_folder(coffer__buffer_text(&path));
    if (!open_folder)
        status = path.failed ? coffer__fail_no_memory(err, strlen(folder->path))
                             : fail_listing(work, folder, errno, err);
    while (!status && open_folder) {
        unsigned char type = DT_UNKNOWN;
        const char *name = coffer__os_next_name(open_folder, &type);
        if (!name) {
            if (errno)
                status = fail_listing(work, folder, errno, err);
            break;
        }
        status = add_name(work, open_folder, folder, name, type, err);
    }
    if (open_folder)
        coffer__os_close_folder(open_folder);
    coffer__buffer_free(&path);
    return status;
}

/* By bytes, but a slash comes before all of them: folder by folder, in the order of their names. */
static int compare_paths(const void *a, const void *b)
{
    const char *x = ((const coffer__folder_file *)a)->path, *y = ((const coffer__folder_file *)b)->path;
    while (*x && *x == *y)
        x++, y++;
    int left = *x == '/' ? 1 : *x ? (unsigned char)*x + 1 : 0;
    int right = *y == '/' ? 1 : *y ? (unsigned char)*y + 1 : 0;
    return left - right;
}

coffer_status coffer__folder_list_read(coffer__folder_list *list, const char *folder,
                                       const coffer__folder_walk_opts *opts, const coffer_limits *limits,
                                       coffer_error *err)
{
    static const coffer__folder_walk_opts usual = { 0 };
    walk work = { .list = list, .root = folder, .opts = opts ? opts : &usual, .limits = limits };
    struct stat st;
    coffer_status status = coffer__os_stat(folder, &st) == 0 ? add_folder(&work, NULL, "", &st, err)
                                                             : coffer__fail_errno(err, "cannot list", errno);
    while (!status && work.folder_count)
        status = list_folder(&work, work.folders[--work.folder_count], err);
    coffer__free(work.folders);
    coffer__arena_free(&work.arena);
    if (!status && list->count)
        qsort(list->files, list->count, sizeof *list->files, compare_paths);
    return status;
}

void coffer__folder_list_free(coffer__folder_list *list)
{
    coffer__arena_free(&list->paths);
    coffer__free(list->files);
    *list = (coffer__folder_list){ 0 };
}

static coffer_status fail_unsafe(const char *path, const char *why, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "\"%s\" %s", path, why);
}

static coffer_status open_part(int *fd, int folder, const char *part, bool last, const char *path,
                               coffer_error *err)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    do {
        *fd = coffer__os_open_at(folder, part, flags);
    } while (*fd < 0 && errno == EINTR);
    if (*fd >= 0) {
        coffer__inputs_note(*fd);
        return COFFER_OK;
    }
    if (errno == ELOOP || (!last && errno == ENOTDIR))
        return fail_unsafe(path, "passes a symbolic link", err);
    if (errno == ENOENT)
        return coffer__fail_other(
            err, coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the file does not exist"), path);
    return coffer__fail_other(err, coffer__fail_errno(err, "cannot open", errno), path);
}

coffer_status coffer__folder_open_inside(int *fd, int folder, const char *path, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    char part[256];
    int at = -1;
    struct stat st;
    if (path[0] == '/' || !path[0])
        return fail_unsafe(path, "is not a path below the folder", err);
    for (const char *name = path; *name && !status;) {
        size_t len = strcspn(name, "/"), slashes = strspn(name + len, "/");
        bool last = !name[len + slashes];
        int next = -1;
        if (len >= sizeof part)
            status = fail_unsafe(path, "has too long a name in it", err);
        else if (len == 2 && memcmp(name, "..", 2) == 0)
            status = fail_unsafe(path, "leads out of its folder", err);
        if (status)
            break;
        memcpy(part, name, len);
        part[len] = 0;
        status = open_part(&next, at < 0 ? folder : at, part, last, path, err);
        coffer__file_close(at);
        at = next;
        name += len + slashes;
    }
    if (!status && (coffer__os_fstat(at, &st) != 0 || !S_ISREG(st.st_mode)))
        status = fail_unsafe(path, "is not a regular file", err);
    if (status) {
        coffer__file_close(at);
        return status;
    }
    *fd = at;
    return COFFER_OK;
}

coffer_status coffer__folder_read_file(coffer__buffer *out, int fd, uint64_t max, const char *name,
                                       coffer_error *err)
{
    size_t got = 1;
    out->len = 0;
    while (got) {
        size_t begin = out->len, want = begin > FIRST_READ ? begin : FIRST_READ;
        uint8_t *to = coffer__buffer_extend(out, want);
        if (!to)
            return coffer__fail_no_memory(err, want);
        coffer_status status = coffer__file_read_some(fd, to, want, &got, name, err);
        out->len = begin + got;
        if (status)
            return status;
        if (out->len > max)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "%s: more than the limit of %" PRIu64 " bytes", name, max);
    }
    return COFFER_OK;
}
