/* Names for addresses that carry a password or a signature, so that no message and no file ever shows them.
 */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/remote/remote.h"

#include <string.h>

#define MAX_HIDDEN 256

typedef struct hidden_address {
    char *name, *address;
} hidden_address;

static struct {
    hidden_address list[MAX_HIDDEN];
    size_t count;
} hidden; /* under the lock */

/* With the lock. */
static const hidden_address *find_name(const char *name)
{
    for (size_t i = 0; i < hidden.count; i++)
        if (strcmp(hidden.list[i].name, name) == 0)
            return &hidden.list[i];
    return NULL;
}

const char *coffer__remote_address_behind(const char *name)
{
    pthread_mutex_lock(&coffer__remote_lock);
    const hidden_address *found = find_name(name);
    pthread_mutex_unlock(&coffer__remote_lock);
    return found ? found->address : name;
}

/* "https://host/file?…", and "https://host/file?…2" for the next one that differs only in what is hidden. */
static bool choose_name(coffer__buffer *out, const char *shown, const coffer__url *url, const char *address)
{
    for (unsigned n = 1;; n++) {
        out->len = 0;
        coffer__buffer_printf(out, "%s%s", shown, url->query ? "?…" : "");
        if (n > 1)
            coffer__buffer_printf(out, "%s%u", url->query ? "" : "#", n);
        const hidden_address *taken = out->failed ? NULL : find_name(coffer__buffer_text(out));
        if (!taken || strcmp(taken->address, address) == 0)
            return !out->failed;
    }
}

static coffer_status remember(const char *name, const char *address, coffer_error *err)
{
    if (find_name(name))
        return COFFER_OK;
    if (hidden.count == MAX_HIDDEN)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "more than %d addresses with passwords or signatures", MAX_HIDDEN);
    hidden_address *entry = &hidden.list[hidden.count];
    entry->name = coffer__strdup(name);
    entry->address = coffer__strdup(address);
    if (!entry->name || !entry->address) {
        coffer__free(entry->name);
        coffer__free(entry->address);
        return coffer__fail_no_memory(err, strlen(address));
    }
    hidden.count++;
    return COFFER_OK;
}

coffer_status coffer_remote_name(char **out, const char *address, coffer_error *err)
{
    coffer__url url = COFFER__URL_INIT;
    coffer__buffer name = COFFER__BUFFER_INIT;
    bool is_http = strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0;
    coffer_status status = is_http ? coffer__url_parse(&url, address, err) : COFFER_OK;
    if (status)
        return status;
    if (!url.user && !url.query) {
        *out = coffer__strdup(address);
        coffer__url_free(&url);
        return *out ? COFFER_OK : coffer__fail_no_memory(err, strlen(address) + 1);
    }
    char *shown = coffer__url_without_secrets(&url);
    pthread_mutex_lock(&coffer__remote_lock);
    if (!shown || !choose_name(&name, shown, &url, address))
        status = coffer__fail_no_memory(err, strlen(address));
    else
        status = remember(coffer__buffer_text(&name), address, err);
    pthread_mutex_unlock(&coffer__remote_lock);
    if (!status) {
        coffer__buffer_append(&name, "", 1);
        status = name.failed ? coffer__fail_no_memory(err, name.len) : COFFER_OK;
    }
    if (!status)
        *out = (char *)coffer__buffer_release(&name, NULL);
    coffer__buffer_free(&name);
    coffer__free(shown);
    coffer__url_free(&url);
    return status;
}
