/* Settings of remote files, from the environment and the program. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "io/remote/remote.h"

#include <stdlib.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_remote_opts, COFFER_REMOTE_OPTS_INIT)

#define CACHE_DEFAULT (UINT64_C(64) << 20)
#define PARALLEL_DEFAULT 16
#define DEADLINE_DEFAULT_MS 180000

static coffer__remote_settings settings = {
    .cache_bytes = CACHE_DEFAULT,
    .parallel = PARALLEL_DEFAULT,
    .deadline_ms = DEADLINE_DEFAULT_MS,
};

static void take_environment(void)
{
    const char *cache = getenv("COFFER_CACHE"), *folder = getenv("COFFER_CACHE_DIR");
    uint64_t bytes;
    if (cache && *cache && coffer__parse_size(&bytes, cache))
        settings.cache_bytes = bytes;
    if (folder && *folder)
        settings.cache_folder = coffer__strdup(folder);
}

const coffer__remote_settings *coffer__remote_settings_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_environment);
    return &settings;
}

coffer_status coffer_remote_configure(const coffer_remote_opts *opts, coffer_error *err)
{
    coffer_remote_opts known = COFFER_REMOTE_OPTS_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, opts, err);
    if (status)
        return status;
    coffer__remote_settings_now();
    char *folder = NULL;
    if (known.cache_folder) {
        folder = coffer__strdup(known.cache_folder);
        if (!folder)
            return coffer__fail_no_memory(err, strlen(known.cache_folder) + 1);
    }
    pthread_mutex_lock(&coffer__remote_lock);
    if (known.cache_bytes)
        settings.cache_bytes = known.cache_bytes;
    if (known.parallel)
        settings.parallel = known.parallel;
    if (known.deadline_ms)
        settings.deadline_ms = known.deadline_ms;
    settings.download = known.download;
    settings.spool = known.spool;
    settings.one_version = known.one_version;
    if (folder) {
        coffer__free(settings.cache_folder);
        settings.cache_folder = folder;
    }
    pthread_mutex_unlock(&coffer__remote_lock);
    return COFFER_OK;
}
