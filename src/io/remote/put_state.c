/* The file that remembers an unfinished upload: a line for each fact. It has no credentials in it. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "io/remote/put.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "coffer upload 1\n"
#define MAX_STATE 2048

/* Creates the folder and those above it that are ours. */
static bool find_folder(coffer__buffer *out, const char *given)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    static const char *const below[] = { "", "/coffer", "/uploads" };
    if (given) {
        coffer__buffer_printf(out, "%s", given);
        coffer__os_make_folder(coffer__buffer_text(out), 0700);
        return !out->failed;
    }
    if (cache && cache[0] == '/')
        coffer__buffer_printf(out, "%s", cache);
    else if (home && home[0] == '/')
        coffer__buffer_printf(out, "%s/.cache", home);
    else
        return false;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        coffer__buffer_printf(out, "%s", below[i]);
        coffer__os_make_folder(coffer__buffer_text(out), 0700);
    }
    return !out->failed;
}

/* The name tells nothing about the file and where it goes. */
static char *state_path(const char *given, const char *name, const char *url)
{
    coffer__buffer path = COFFER__BUFFER_INIT, key = COFFER__BUFFER_INIT;
    char digest[COFFER__SIGV4_HASH_HEX + 1];
    bool found = find_folder(&path, given);
    coffer__buffer_printf(&key, "%s\n%s", url, name);
    coffer__sigv4_hash(digest, key.data, key.len);
    coffer__buffer_printf(&path, "/%.32s.upload", digest);
    coffer__buffer_append(&path, "", 1);
    bool complete = found && !path.failed && !key.failed;
    coffer__buffer_free(&key);
    char *text = complete ? (char *)coffer__buffer_release(&path, NULL) : NULL;
    coffer__buffer_free(&path);
    return text;
}

/* A file that cannot be parsed counts as empty. */
static void parse(coffer__put *put, const char *text)
{
    char checksum[8] = "", id[COFFER__PUT_MAX_ID + 1] = "";
    uint64_t part_size = 0;
    if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0 ||
        sscanf(text + strlen(FIRST_LINE), "part-size %" SCNu64 "\nchecksum %7s\nid %1024s\n", &part_size,
               checksum, id) != 3)
        return;
    put->state.is_used = true;
    put->state.part_size = part_size;
    memcpy(put->upload_id, id, sizeof id);
    put->uses_md5 = strcmp(checksum, "md5") == 0;
}

coffer_status coffer__put_state_open(coffer__put *put, const char *folder, const char *name, const char *url,
                                     coffer_error *err)
{
    char text[MAX_STATE];
    size_t got = 0;
    coffer_error problem = COFFER_ERROR_INIT;
    char *path = state_path(folder, name, url);
    put->state = (coffer__put_state){ .fd = -1 };
    if (!path)
        return COFFER_OK;
    coffer__file_close(coffer__file_try_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    coffer_status status = coffer__lock_open(&put->state.fd, path, &problem);
    if (status) {
        coffer__free(path);
        return status != COFFER_E_LOCKED
                   ? COFFER_OK
                   : coffer__fail(err, status, COFFER_OFFSET_NONE,
                                  "another process is uploading this file to the same address");
    }
    put->state.path = path;
    if (!coffer__file_read_some(put->state.fd, text, sizeof text - 1, &got, path, NULL)) {
        text[got] = '\0';
        parse(put, text);
    }
    return COFFER_OK;
}

coffer_status coffer__put_state_save(coffer__put *put, coffer_error *err)
{
    coffer__put_state *state = &put->state;
    char text[MAX_STATE];
    if (!state->path)
        return COFFER_OK;
    int len = snprintf(text, sizeof text, FIRST_LINE "part-size %" PRIu64 "\nchecksum %s\nid %s\n",
                       put->part_size, put->uses_md5 ? "md5" : "sha256", put->upload_id);
    coffer_status status = coffer__file_truncate(state->fd, 0, state->path, err);
    if (!status)
        status = coffer__file_write_at(state->fd, text, (size_t)len, 0, state->path, err);
    if (!status)
        status = coffer__file_sync_data(state->fd, state->path, err);
    state->is_used = !status;
    return status;
}

void coffer__put_state_close(coffer__put_state *state, bool done)
{
    if (!state->path)
        return;
    if (done || !state->is_used)
        coffer__os_unlink(state->path);
    coffer__file_close(state->fd);
    coffer__free(state->path);
    *state = (coffer__put_state){ .fd = -1 };
}
