#include "support/temp.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what, const char *path)
{
    fail_msg("%s %s: %s", what, path, strerror(errno));
}

char *temp_make(void)
{
    const char *chosen = getenv("COFFER_TEST_TMPDIR");
    const char *usual = getenv("TMPDIR");
    const char *base = chosen ? chosen : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : usual ? usual : "/tmp";
    size_t size = strlen(base) + sizeof "/coffer-test-XXXXXX";
    char *folder = malloc(size);
    assert_non_null(folder);
    snprintf(folder, size, "%s/coffer-test-XXXXXX", base);
    if (!mkdtemp(folder))
        die("cannot make", folder);
    return folder;
}

void temp_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path) == 0)
            continue;
        temp_empty(path);
        rmdir(path);
    }
    closedir(dir);
}

void temp_remove(char *folder)
{
    if (!folder)
        return;
    temp_empty(folder);
    rmdir(folder);
    free(folder);
}

char *temp_folder;

int temp_setup(void **state)
{
    (void)state;
    temp_folder = temp_make();
    return 0;
}

int temp_teardown(void **state)
{
    (void)state;
    temp_remove(temp_folder);
    temp_folder = NULL;
    return 0;
}

const char *temp_path(const char *folder, const char *name)
{
    static char ring[4][PATH_MAX];
    static unsigned turn;
    char *path = ring[turn++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

void temp_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        die("cannot create", path);
    if (len > 0 && fwrite(bytes, 1, len, file) != len)
        die("cannot write", path);
    if (fclose(file) != 0)
        die("cannot write", path);
}

uint8_t *temp_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (!file)
        return NULL;
    if (fstat(fileno(file), &st) != 0)
        die("cannot examine", path);
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    if (fread(bytes, 1, size, file) != size)
        die("cannot read", path);
    fclose(file);
    bytes[size] = 0;
    if (len)
        *len = size;
    return bytes;
}

bool temp_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool temp_holds(const char *path, const void *bytes, size_t len)
{
    size_t found_len = 0;
    uint8_t *found = temp_read(path, &found_len);
    bool same = found && found_len == len && (len == 0 || memcmp(found, bytes, len) == 0);
    free(found);
    return same;
}

void temp_copy(const char *from, const char *to)
{
    size_t len = 0;
    uint8_t *bytes = temp_read(from, &len);
    if (!bytes)
        die("cannot read", from);
    temp_write(to, bytes, len);
    free(bytes);
}

static bool is_named(const char *name, va_list names)
{
    for (const char *known = va_arg(names, const char *); known; known = va_arg(names, const char *))
        if (strcmp(name, known) == 0)
            return true;
    return false;
}

/* Fails at a file that is not named. */
static void expect_named(const char *folder, va_list names)
{
    DIR *dir = opendir(folder);
    if (!dir)
        die("cannot list", folder);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        va_list again;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        va_copy(again, names);
        bool named = is_named(entry->d_name, again);
        va_end(again);
        if (!named) {
            char name[256];
            snprintf(name, sizeof name, "%s", entry->d_name);
            closedir(dir);
            fail_msg("left behind in the folder: %s", name);
        }
    }
    closedir(dir);
}

void temp_assert_only(const char *folder, ...)
{
    va_list names;
    va_start(names, folder);
    expect_named(folder, names);
    va_end(names);
    va_start(names, folder);
    for (const char *name = va_arg(names, const char *); name; name = va_arg(names, const char *))
        if (!temp_exists(temp_path(folder, name)))
            fail_msg("missing in the folder: %s", name);
    va_end(names);
}

void temp_assert_no_litter(const char *folder, ...)
{
    va_list names;
    va_start(names, folder);
    expect_named(folder, names);
    va_end(names);
}
