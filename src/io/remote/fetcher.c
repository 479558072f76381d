/* The thread that talks to the servers. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/remote/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 15000
#define STALL_MS 20000
#define IDLE_MS 10000
#define EXIT_MS 500
#define SMALL_PER_LARGE 4
#define SMALL_IN_ALL ((uint64_t)256 * 1024) /* bytes that run for each of the parallel requests */

pthread_mutex_t coffer__remote_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t coffer__remote_progress = PTHREAD_COND_INITIALIZER;

typedef struct fetch_list {
    coffer__remote_fetch *first, *last;
} fetch_list;

/* Under the lock, but for what is marked. */
static struct fetcher {
    const coffer__http_module *module;
    coffer__http_client *client;
    pthread_t thread;
    fetch_list waited_for, ahead; /* not begun */
    fetch_list paused;            /* before another try */
    coffer__remote_fetch *running;
    unsigned running_count;
    bool is_started, is_stopping, is_stopped, must_forget;
} fetcher;

static void append(fetch_list *list, coffer__remote_fetch *fetch)
{
    fetch->next = NULL;
    if (list->last)
        list->last->next = fetch;
    else
        list->first = fetch;
    list->last = fetch;
}

static void remove_from(fetch_list *list, coffer__remote_fetch *fetch)
{
    coffer__remote_fetch **at = &list->first, *before = NULL;
    while (*at != fetch) {
        before = *at;
        at = &(*at)->next;
    }
    *at = fetch->next;
    if (list->last == fetch)
        list->last = before;
    fetch->next = NULL;
}

static bool on_header(void *context, const char *line, size_t len)
{
    coffer__remote_fetch *fetch = context;
    return coffer__http_answer_line(&fetch->answer, line, len);
}

static bool keep_words(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    size_t room = sizeof fetch->words - 1 - fetch->words_len;
    size_t kept = len < room ? len : room;
    memcpy(fetch->words + fetch->words_len, bytes, kept);
    fetch->words_len += kept;
    fetch->words[fetch->words_len] = '\0';
    return kept == len; /* the rest of a long explanation is not worth its transfer */
}

static bool on_body(void *context, const void *bytes, size_t len)
{
    coffer__remote_fetch *fetch = context;
    if (!coffer__remote_accepts(fetch))
        return !fetch->is_refused && keep_words(fetch, bytes, len);
    size_t wanted = len;
    if (!fetch->wants_whole && wanted > fetch->len - fetch->got)
        wanted = (size_t)(fetch->len - fetch->got);
    if (wanted && !fetch->take(fetch, bytes, wanted)) {
        fetch->is_refused = true;
        return false;
    }
    fetch->got += wanted;
    fetch->patience.progress_ms = coffer__remote_clock();
    fetch->patience.tries = 0;
    return wanted == len;
}

/* Only bytes that belong to the file that was opened. A validator in quotes makes the server check it. */
static coffer_status make_request(coffer__remote_fetch *fetch, coffer_error *err)
{
    const coffer__remote_file *file = fetch->file;
    const coffer__url *url = file->has_moved ? &file->moved : &file->address.url;
    coffer__remote_request *request = &fetch->request;
    coffer_status status =
        coffer__remote_request_make(request, &file->address, url, &(coffer__request_line){ .method = "GET" },
                                    time(NULL), err);
    if (!status)
        status = coffer__remote_request_add(request, err, "Accept-Encoding: identity");
    if (!status && !fetch->wants_whole)
        status = coffer__remote_request_add(request, err, "Range: bytes=%" PRIu64 "-%" PRIu64,
                                            fetch->first + fetch->got, fetch->first + fetch->len - 1);
    if (!status && file->etag[0] == '"')
        status = coffer__remote_request_add(request, err, "If-Match: %s", file->etag);
    return status;
}

static coffer_status begin(coffer__remote_fetch *fetch)
{
    coffer_status status = make_request(fetch, &fetch->error);
    if (status)
        return status;
    fetch->answer = (coffer__http_answer){ 0 };
    fetch->is_accepted = false;
    fetch->words_len = 0;
    fetch->words[0] = '\0';
    fetch->exchange = (coffer__http_exchange){
        .method = "GET",
        .url = fetch->request.url,
        .headers = (const char *const *)fetch->request.headers,
        .header_count = fetch->request.header_count,
        .connect_ms = CONNECT_MS,
        .stall_ms = STALL_MS,
        .context = fetch,
        .on_header = on_header,
        .on_body = on_body,
    };
    if (!fetcher.module->begin(fetcher.client, &fetch->exchange)) {
        coffer__remote_request_free(&fetch->request);
        return coffer__fail_no_memory(&fetch->error, sizeof fetch->exchange);
    }
    return COFFER_OK;
}

/* With the lock. */
static void finish(coffer__remote_fetch *fetch)
{
    coffer__remote_file *file = fetch->file;
    fetch->ended(fetch);
    coffer__remote_file_release(file);
    pthread_cond_broadcast(&coffer__remote_progress);
}

static void run(coffer__remote_fetch *fetch)
{
    fetch->next = fetcher.running;
    fetcher.running = fetch;
    fetcher.running_count++;
    pthread_mutex_unlock(&coffer__remote_lock);
    coffer_status status = begin(fetch);
    pthread_mutex_lock(&coffer__remote_lock);
    fetch->is_running = !status;
    if (status) {
        fetcher.running = fetch->next; /* nothing else adds to the list */
        fetcher.running_count--;
        finish(fetch);
    }
}

static void leave_running(coffer__remote_fetch *fetch)
{
    coffer__remote_fetch **at = &fetcher.running;
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
    fetcher.running_count--;
    fetch->is_running = false;
    coffer__remote_request_free(&fetch->request);
}

static coffer__remote_fetch *take_due(uint64_t now)
{
    for (coffer__remote_fetch *fetch = fetcher.paused.first; fetch; fetch = fetch->next)
        if (fetch->patience.resume_ms <= now) {
            remove_from(&fetcher.paused, fetch);
            return fetch;
        }
    fetch_list *list = fetcher.waited_for.first ? &fetcher.waited_for : &fetcher.ahead;
    coffer__remote_fetch *fetch = list->first;
    if (fetch)
        remove_from(list, fetch);
    return fetch;
}

/* Small requests fill the line only when there are more of them. */
static bool has_room(void)
{
    unsigned parallel = coffer__remote_settings_now()->parallel;
    if (fetcher.running_count < parallel)
        return true;
    uint64_t bytes = 0;
    for (const coffer__remote_fetch *fetch = fetcher.running; fetch; fetch = fetch->next)
        bytes += fetch->len;
    return fetcher.running_count / SMALL_PER_LARGE < parallel && bytes / SMALL_IN_ALL < parallel;
}

static void begin_due(void)
{
    while (has_room()) {
        coffer__remote_fetch *fetch = take_due(coffer__remote_clock());
        if (!fetch)
            return;
        run(fetch);
    }
}

static int time_to_wait(void)
{
    uint64_t now = coffer__remote_clock(), wait = IDLE_MS;
    for (const coffer__remote_fetch *fetch = fetcher.paused.first; fetch; fetch = fetch->next) {
        uint64_t left = fetch->patience.resume_ms > now ? fetch->patience.resume_ms - now : 0;
        if (left < wait)
            wait = left;
    }
    return (int)wait;
}

static void drop_list(fetch_list *list)
{
    for (coffer__remote_fetch *fetch = list->first, *next; fetch; fetch = next) {
        next = fetch->next;
        if (!fetch->file->closed)
            continue;
        remove_from(list, fetch);
        coffer__fail(&fetch->error, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "closed");
        finish(fetch);
    }
}

/* Ends what runs for files that were closed. */
static void forget_closed(void)
{
    fetcher.must_forget = false;
    drop_list(&fetcher.waited_for);
    drop_list(&fetcher.ahead);
    drop_list(&fetcher.paused);
    for (coffer__remote_fetch *fetch = fetcher.running, *next; fetch; fetch = next) {
        next = fetch->next;
        if (!fetch->file->closed || !fetch->is_running)
            continue;
        fetcher.module->abandon(fetcher.client, &fetch->exchange);
        leave_running(fetch);
        coffer__fail(&fetch->error, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "closed");
        finish(fetch);
    }
}

static void take_end(coffer__http_exchange *exchange)
{
    coffer__remote_fetch *fetch = exchange->context;
    bool ended = coffer__remote_has_ended(fetch);
    pthread_mutex_lock(&coffer__remote_lock);
    leave_running(fetch);
    if (ended)
        finish(fetch);
    else
        append(&fetcher.paused, fetch);
    pthread_mutex_unlock(&coffer__remote_lock);
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&coffer__remote_lock);
    while (!fetcher.is_stopping) {
        if (fetcher.must_forget)
            forget_closed();
        begin_due();
        int wait = time_to_wait();
        pthread_mutex_unlock(&coffer__remote_lock);
        coffer__http_exchange *ended = fetcher.module->wait(fetcher.client, wait);
        while (ended) {
            take_end(ended);
            ended = fetcher.module->wait(fetcher.client, 0);
        }
        pthread_mutex_lock(&coffer__remote_lock);
    }
    fetcher.is_stopped = true;
    pthread_cond_broadcast(&coffer__remote_progress);
    pthread_mutex_unlock(&coffer__remote_lock);
    return NULL;
}

/* The libraries under curl are torn down at exit: the thread must not be inside them then. */
static void stop_at_exit(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += EXIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&coffer__remote_lock);
    fetcher.is_stopping = true;
    if (fetcher.is_started)
        fetcher.module->wake(fetcher.client);
    while (fetcher.is_started && !fetcher.is_stopped &&
           pthread_cond_timedwait(&coffer__remote_progress, &coffer__remote_lock, &until) == 0)
        ;
    bool is_ending = fetcher.is_stopped;
    pthread_mutex_unlock(&coffer__remote_lock);
    if (is_ending)
        pthread_join(fetcher.thread, NULL); /* which frees what OpenSSL keeps for the thread */
}

static void before_fork(void)
{
    pthread_mutex_lock(&coffer__remote_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&coffer__remote_lock);
}

/* The child has no fetcher and none of its connections: what was under way ends here. What curl holds is left
 * as it is: closing it would say goodbye on the parent's connections. */
static void after_fork_in_child(void)
{
    fetch_list lists[] = { fetcher.waited_for, fetcher.ahead, fetcher.paused };
    coffer__remote_fetch *running = fetcher.running;
    pthread_cond_init(&coffer__remote_progress, NULL);
    fetcher = (struct fetcher){ .module = fetcher.module };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        while (lists[i].first) {
            coffer__remote_fetch *fetch = lists[i].first;
            lists[i].first = fetch->next;
            coffer__fail(&fetch->error, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "forked");
            finish(fetch);
        }
    while (running) {
        coffer__remote_fetch *fetch = running;
        running = running->next;
        coffer__fail(&fetch->error, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "forked");
        finish(fetch);
    }
    pthread_mutex_unlock(&coffer__remote_lock);
}

static void watch_process(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    atexit(stop_at_exit);
}

/* With the lock. Signals are for the threads of the program. */
static coffer_status start(coffer_error *err)
{
    static bool watches;
    sigset_t all, before;
    fetcher.module = coffer__module_load(COFFER__MODULE_HTTP, sizeof *fetcher.module, err);
    if (!fetcher.module)
        return COFFER_E_UNSUPPORTED;
    fetcher.client = fetcher.module->client_new();
    if (!fetcher.client)
        return coffer__fail_no_memory(err, sizeof(void *));
    if (!watches)
        watch_process();
    watches = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error_number = pthread_create(&fetcher.thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error_number) {
        fetcher.module->client_free(fetcher.client);
        return coffer__fail_errno(err, "cannot start a thread", error_number);
    }
    fetcher.is_started = true;
    return COFFER_OK;
}

coffer_status coffer__remote_submit(coffer__remote_fetch *fetch, coffer_error *err)
{
    if (!fetcher.is_started) {
        coffer_status status = start(err);
        if (status)
            return status;
    }
    if (fetcher.is_stopping)
        return coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "the program is ending");
    fetch->patience.progress_ms = coffer__remote_clock();
    fetch->file->users++;
    append(fetch->is_ahead ? &fetcher.ahead : &fetcher.waited_for, fetch);
    fetcher.module->wake(fetcher.client);
    return COFFER_OK;
}

void coffer__remote_forget(coffer__remote_file *file)
{
    if (!fetcher.is_started || file->users <= 1)
        return;
    fetcher.must_forget = true;
    fetcher.module->wake(fetcher.client);
}
