#include "io/inputs.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "io/os.h"
#include "io/source_struct.h"

#include <pthread.h>

typedef struct input_file {
    dev_t device;
    ino_t inode;
    bool allowed; /* to be replaced */
    bool gone;    /* another file has its inode */
} input_file;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool protect_all;
    input_file *files;
    size_t count, capacity;
    coffer__table table;
    coffer__inputs_scope *scopes;
} inputs;

static uint64_t hash_file(dev_t device, ino_t inode)
{
    const uint64_t key[2] = { (uint64_t)device, (uint64_t)inode };
    return coffer__hash(key, sizeof key);
}

/* Under the mutex. */
static input_file *find(dev_t device, ino_t inode)
{
    coffer__table_probe probe = coffer__table_begin(&inputs.table, hash_file(device, inode));
    for (uint32_t i; (i = coffer__table_next(&probe)) != COFFER__TABLE_NONE;)
        if (inputs.files[i].device == device && inputs.files[i].inode == inode)
            return &inputs.files[i];
    return NULL;
}

/* Under the mutex. Without memory the file is not protected; the operation itself then fails too. */
static input_file *add(dev_t device, ino_t inode)
{
    input_file *file = find(device, inode);
    if (file)
        return file;
    if (inputs.count == inputs.capacity) {
        size_t capacity = inputs.capacity ? 2 * inputs.capacity : 16;
        input_file *larger = coffer__realloc(inputs.files, capacity * sizeof *larger);
        if (!larger)
            return NULL;
        inputs.files = larger;
        inputs.capacity = capacity;
    }
    if (coffer__table_add(&inputs.table, hash_file(device, inode), inputs.count, NULL))
        return NULL;
    inputs.files[inputs.count] = (input_file){ .device = device, .inode = inode };
    return &inputs.files[inputs.count++];
}

void coffer_protect_inputs(void)
{
    pthread_mutex_lock(&mutex);
    inputs.protect_all = true;
    pthread_mutex_unlock(&mutex);
}

void coffer__inputs_note(int fd)
{
    struct stat st;
    pthread_mutex_lock(&mutex);
    if (inputs.protect_all && coffer__os_fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        input_file *file = add(st.st_dev, st.st_ino);
        if (file)
            file->gone = false;
    }
    pthread_mutex_unlock(&mutex);
}

void coffer__inputs_forget(int fd)
{
    struct stat st;
    pthread_mutex_lock(&mutex);
    input_file *file = inputs.count > 0 && coffer__os_fstat(fd, &st) == 0 ? find(st.st_dev, st.st_ino) : NULL;
    if (file)
        file->gone = true;
    pthread_mutex_unlock(&mutex);
}

void coffer__inputs_allow(const char *path)
{
    struct stat st;
    pthread_mutex_lock(&mutex);
    if (inputs.protect_all && coffer__os_stat(path, &st) == 0) {
        input_file *file = add(st.st_dev, st.st_ino);
        if (file)
            file->allowed = true;
    }
    pthread_mutex_unlock(&mutex);
}

void coffer__inputs_enter(coffer__inputs_scope *scope, const coffer_source *src)
{
    struct stat st;
    *scope = (coffer__inputs_scope){ 0 };
    if (src->fd < 0 || coffer__os_fstat(src->fd, &st) != 0)
        return;
    pthread_mutex_lock(&mutex);
    *scope = (coffer__inputs_scope){ st.st_dev, st.st_ino, true, inputs.scopes };
    inputs.scopes = scope;
    pthread_mutex_unlock(&mutex);
}

void coffer__inputs_leave(coffer__inputs_scope *scope)
{
    if (!scope->entered)
        return;
    pthread_mutex_lock(&mutex);
    coffer__inputs_scope **link = &inputs.scopes;
    while (*link && *link != scope)
        link = &(*link)->next;
    if (*link)
        *link = scope->next;
    pthread_mutex_unlock(&mutex);
    scope->entered = false;
}

coffer_status coffer__inputs_check_output(const struct stat *output, coffer_error *err)
{
    pthread_mutex_lock(&mutex);
    const input_file *file = find(output->st_dev, output->st_ino);
    bool refused = file && !file->allowed && !file->gone;
    for (const coffer__inputs_scope *scope = inputs.scopes; scope; scope = scope->next)
        refused = refused || (scope->device == output->st_dev && scope->inode == output->st_ino);
    pthread_mutex_unlock(&mutex);
    if (!refused)
        return COFFER_OK;
    return coffer__fail_output(err, coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                                 "input and output are the same file"));
}
