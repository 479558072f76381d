#include "support/crash_record.h"

#include "support/temp.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

static size_t find_name(const crash_names *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->entries[i].name, name) != 0)
        i++;
    return i;
}

void crash_names_set(crash_names *names, const char *name, int file)
{
    size_t i = find_name(names, name);
    if (i == names->count) {
        assert_true(names->count < CRASH_MAX_NAMES && strlen(name) < CRASH_NAME_SIZE);
        strcpy(names->entries[names->count++].name, name);
    }
    names->entries[i].file = file;
}

void crash_names_drop(crash_names *names, const char *name)
{
    size_t i = find_name(names, name);
    if (i < names->count)
        names->entries[i] = names->entries[--names->count];
}

void crash_names_apply(crash_names *names, const crash_op *op)
{
    if (op->kind == CRASH_CREATE) {
        crash_names_set(names, op->name, op->file);
    } else if (op->kind == CRASH_RENAME) {
        crash_names_drop(names, op->name);
        crash_names_set(names, op->new_name, op->file);
    } else if (op->kind == CRASH_UNLINK) {
        crash_names_drop(names, op->name);
    }
}

static int file_named(const crash_names *names, const char *name)
{
    size_t i = find_name(names, name);
    return i < names->count ? names->entries[i].file : CRASH_OUTSIDE;
}

/* ---- Recording ---- */

static crash_op *add_op(crash_record *record, crash_kind kind, int file)
{
    if ((record->op_count & (record->op_count - 1)) == 0) {
        size_t capacity = record->op_count ? record->op_count * 2 : 1;
        record->ops = realloc(record->ops, capacity * sizeof *record->ops);
        assert_non_null(record->ops);
    }
    crash_op *op = &record->ops[record->op_count++];
    *op = (crash_op){ .kind = kind, .file = file };
    return op;
}

/* The name inside the folder, or NULL. */
static const char *inside(const crash_record *record, const char *path)
{
    size_t len = strlen(record->folder);
    return strncmp(path, record->folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static int *descriptor(crash_record *record, int fd)
{
    assert_in_range(fd, 0, CRASH_MAX_DESCRIPTORS - 1);
    return &record->descriptors[fd];
}

static void opened(void *context, const char *path, int flags, int fd)
{
    crash_record *record = context;
    const char *name = inside(record, path);
    int *slot = descriptor(record, fd);
    *slot = CRASH_OUTSIDE;
    if (!name)
        return;
    if (flags & O_DIRECTORY) {
        *slot = CRASH_FOLDER;
        return;
    }
    *slot = file_named(&record->now, name);
    if (*slot == CRASH_OUTSIDE) {
        assert_in_range(record->file_count, 0, CRASH_MAX_FILES - 1);
        *slot = record->file_count++;
        crash_op *op = add_op(record, CRASH_CREATE, *slot);
        strcpy(op->name, name);
        crash_names_apply(&record->now, op);
    } else if (flags & O_TRUNC) {
        add_op(record, CRASH_TRUNCATE, *slot);
    }
}

static void closed(void *context, int fd)
{
    *descriptor(context, fd) = CRASH_OUTSIDE;
}

static void wrote(void *context, int fd, const void *bytes, size_t len, uint64_t offset)
{
    int file = *descriptor(context, fd);
    if (file < 0)
        return;
    crash_op *op = add_op(context, CRASH_WRITE, file);
    op->bytes = malloc(len);
    assert_non_null(op->bytes);
    memcpy(op->bytes, bytes, len);
    op->len = len;
    op->offset = offset;
}

static void truncated(void *context, int fd, uint64_t size)
{
    int file = *descriptor(context, fd);
    if (file >= 0)
        add_op(context, CRASH_TRUNCATE, file)->offset = size;
}

static void synced(void *context, int fd)
{
    int file = *descriptor(context, fd);
    if (file == CRASH_FOLDER)
        add_op(context, CRASH_SYNC_FOLDER, file);
    else if (file >= 0)
        add_op(context, CRASH_SYNC_FILE, file);
}

static void renamed(void *context, const char *from, const char *to)
{
    crash_record *record = context;
    const char *name = inside(record, from), *new_name = inside(record, to);
    if (!name || !new_name)
        return;
    crash_op *op = add_op(record, CRASH_RENAME, file_named(&record->now, name));
    strcpy(op->name, name);
    strcpy(op->new_name, new_name);
    crash_names_apply(&record->now, op);
}

static void linked(void *context, const char *from, const char *to)
{
    crash_record *record = context;
    const char *name = inside(record, from), *new_name = inside(record, to);
    if (!name || !new_name)
        return;
    crash_op *op = add_op(record, CRASH_CREATE, file_named(&record->now, name));
    strcpy(op->name, new_name);
    crash_names_apply(&record->now, op);
}

static void unlinked(void *context, const char *path)
{
    crash_record *record = context;
    const char *name = inside(record, path);
    if (!name)
        return;
    crash_op *op = add_op(record, CRASH_UNLINK, CRASH_OUTSIDE);
    strcpy(op->name, name);
    crash_names_apply(&record->now, op);
}

void crash_record_begin(crash_record *record, const char *folder)
{
    memset(record, 0, sizeof *record);
    record->folder = folder;
    for (size_t i = 0; i < CRASH_MAX_DESCRIPTORS; i++)
        record->descriptors[i] = CRASH_OUTSIDE;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        crash_image *image = &record->files[record->file_count];
        image->bytes = temp_read(temp_path(folder, entry->d_name), &image->len);
        assert_non_null(image->bytes);
        crash_names_set(&record->first, entry->d_name, record->file_count++);
    }
    closedir(dir);
    record->now = record->first;
    record->observer =
        (shim_observer){ opened, closed, wrote, truncated, synced, renamed, linked, unlinked, record };
    shim_observe(&record->observer);
}

void crash_record_end(crash_record *record)
{
    (void)record;
    shim_observe(NULL);
}

void crash_record_free(crash_record *record)
{
    for (int i = 0; i < CRASH_MAX_FILES; i++)
        free(record->files[i].bytes);
    for (size_t i = 0; i < record->op_count; i++)
        free(record->ops[i].bytes);
    free(record->ops);
}
