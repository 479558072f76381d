/* A view: its first picture, the thread that reads the rest, and the table of questions. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "view/view_private.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

COFFER__INIT_FUNCTION(coffer_view_state, COFFER_VIEW_STATE_INIT)

static const coffer__view_kind *const kinds[] = {
    &coffer__view_trace, &coffer__view_model, &coffer__view_scan, &coffer__view_matrix, &coffer__view_set,
};

enum { BACKGROUND = 10 }; /* of nice */

enum { MADE_FIRST, MADE_FULL, MADE_FINDINGS, MADE_COUNT };
static const char *const made_names[MADE_COUNT] = { "first", "full", "findings" };

/* A bundle that is made once, or the error of its making. */
typedef struct made_bundle {
    coffer_bytes bytes;
    coffer_error err;
    bool ready;
} made_bundle;

struct coffer_view {
    const coffer_file *files[2];
    coffer_chunks_opts opts;
    coffer_limits limits;
    coffer_progress progress;
    char *names[2];
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* for the members below */
    pthread_cond_t changed;
    coffer_view_state state;
    bool stops;
    made_bundle made[MADE_COUNT];
    /* Answers: the files opened once more, with the first question about a part. */
    pthread_mutex_t opening;
    const coffer__view_kind *kind; /* NULL: the page has no questions */
    void *answers;
};

/* ---- Making bundles ---- */

static coffer_status start_chunks(coffer_chunks **out, coffer_view *view, coffer_error *err)
{
    return coffer__chunks_start(out, view->files[0], view->files[1], &view->opts, err);
}

static coffer_status make_page(coffer_bytes *out, coffer_view *view, bool quick, coffer_error *err)
{
    coffer_chunks *chunks = NULL;
    coffer_status status = start_chunks(&chunks, view, err);
    if (!status) {
        chunks->served = chunks->unchecked = true;
        chunks->quick = quick;
        status = coffer__chunks_fill(chunks, err);
    }
    if (!status)
        status = coffer__view_bundle(out, chunks, err);
    coffer_chunks_free(chunks);
    return status;
}

static coffer_status make_findings(coffer_bytes *out, coffer_view *view, coffer_error *err)
{
    coffer_chunks *chunks = NULL;
    coffer_node *root = NULL;
    coffer_status status = start_chunks(&chunks, view, err);
    if (!status)
        status = coffer_node_new(&root, err);
    coffer_node *list = status ? NULL : coffer_node_add_list(root, "files");
    for (size_t i = 0; !status && i < chunks->file_count; i++)
        status = coffer__page_check(coffer_node_add_map(list, NULL), chunks, i, err);
    if (!status)
        status = coffer_node_status(root, err);
    if (!status) {
        coffer__chunks_json(chunks, "findings", root);
        status = coffer__view_bundle(out, chunks, err);
    }
    coffer_node_free(root);
    coffer_chunks_free(chunks);
    return status;
}

static void set_stage(coffer_view *view, coffer_view_stage stage)
{
    view->state.stage = stage;
    view->state.permille = 0;
    pthread_cond_broadcast(&view->changed);
}

/* Called with the mutex locked, which is open while the bundle is made. */
static void make(coffer_view *view, size_t which, coffer_view_stage next)
{
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    pthread_mutex_unlock(&view->mutex);
    coffer_status status =
        which == MADE_FULL ? make_page(&bytes, view, false, &err) : make_findings(&bytes, view, &err);
    pthread_mutex_lock(&view->mutex);
    if (status)
        coffer_free(bytes.data);
    else
        view->made[which].bytes = bytes;
    view->made[which].err = err;
    view->made[which].ready = true;
    set_stage(view, next);
}

static void *read_rest(void *context)
{
    coffer_view *view = context;
    /* Answers, and the browser, come first. The threads that this one starts have its priority. */
    setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND);
    pthread_mutex_lock(&view->mutex);
    make(view, MADE_FULL, COFFER_VIEW_CHECKING);
    if (!view->stops)
        make(view, MADE_FINDINGS, COFFER_VIEW_DONE);
    pthread_mutex_unlock(&view->mutex);
    return NULL;
}

static int step(void *context, uint64_t done, uint64_t total)
{
    coffer_view *view = context;
    uint32_t permille = total && done < total ? (uint32_t)((double)done / (double)total * 1000) : 0;
    pthread_mutex_lock(&view->mutex);
    bool stops = view->stops;
    if (permille != view->state.permille) {
        view->state.permille = permille;
        pthread_cond_broadcast(&view->changed);
    }
    pthread_mutex_unlock(&view->mutex);
    return stops;
}

/* ---- Create and free ---- */

static void set_locks(coffer_view *view)
{
    pthread_condattr_t clock;
    pthread_mutex_init(&view->mutex, NULL);
    pthread_mutex_init(&view->opening, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&view->changed, &clock);
    pthread_condattr_destroy(&clock);
}

static coffer_status take_options(coffer_view *view, const coffer_chunks_opts *opts, coffer_error *err)
{
    view->opts = (coffer_chunks_opts)COFFER_CHUNKS_OPTS_INIT;
    coffer_status status = coffer__take_options(&view->opts, sizeof view->opts, opts, err);
    if (status)
        return status;
    view->limits = coffer__limits(view->opts.limits);
    view->opts.limits = &view->limits;
    view->names[0] = coffer__strdup(view->opts.name ? view->opts.name : "");
    view->names[1] = coffer__strdup(view->opts.other_name ? view->opts.other_name : "");
    if (!view->names[0] || !view->names[1])
        return coffer__fail_no_memory(err, 0);
    view->opts.name = view->names[0];
    view->opts.other_name = view->names[1];
    view->progress = (coffer_progress)COFFER_PROGRESS_INIT;
    view->progress.step = step;
    view->progress.context = view;
    view->opts.progress = &view->progress;
    return COFFER_OK;
}

static coffer_status find_kind(coffer_view *view, coffer_error *err)
{
    coffer_chunks *chunks = NULL;
    coffer_status status = start_chunks(&chunks, view, err);
    for (size_t i = 0; !status && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->page, coffer_chunks_page(chunks)) == 0)
            view->kind = kinds[i];
    coffer_chunks_free(chunks);
    return status;
}

static coffer_status start_thread(coffer_view *view, coffer_error *err)
{
    sigset_t before;
    coffer__thread_block_signals(&before);
    int failed = pthread_create(&view->thread, NULL, read_rest, view);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    view->started = failed == 0;
    return failed ? coffer__fail_errno(err, "starting a thread", failed) : COFFER_OK;
}

coffer_status coffer_view_open(coffer_view **out, const coffer_file *file, const coffer_file *other,
                               const coffer_chunks_opts *opts, coffer_error *err)
{
    coffer_view *view = coffer__calloc(1, sizeof *view);
    if (!view)
        return coffer__fail_no_memory(err, sizeof *view);
    set_locks(view);
    view->files[0] = file;
    view->files[1] = other;
    view->state = (coffer_view_state)COFFER_VIEW_STATE_INIT;
    coffer_status status = take_options(view, opts, err);
    if (!status)
        status = find_kind(view, err);
    if (!status)
        status = make_page(&view->made[MADE_FIRST].bytes, view, true, err);
    view->made[MADE_FIRST].ready = true;
    view->state.permille = 0;
    if (!status)
        status = start_thread(view, err);
    if (status) {
        coffer_view_close(view);
        return status;
    }
    *out = view;
    return COFFER_OK;
}

void coffer_view_close(coffer_view *view)
{
    if (!view)
        return;
    pthread_mutex_lock(&view->mutex);
    view->stops = true;
    pthread_mutex_unlock(&view->mutex);
    if (view->started)
        pthread_join(view->thread, NULL);
    if (view->answers)
        view->kind->close(view->answers);
    for (size_t i = 0; i < MADE_COUNT; i++)
        coffer_free(view->made[i].bytes.data);
    pthread_cond_destroy(&view->changed);
    pthread_mutex_destroy(&view->mutex);
    pthread_mutex_destroy(&view->opening);
    coffer__free(view->names[0]);
    coffer__free(view->names[1]);
    coffer__free(view);
}

/* ---- State ---- */

coffer_status coffer_view_wait(coffer_view_state *out, coffer_view *view, const coffer_view_state *seen,
                               uint32_t milliseconds, coffer_error *err)
{
    coffer_view_state before = COFFER_VIEW_STATE_INIT;
    coffer_status status = coffer__take_options(&before, sizeof before, seen, err);
    if (status)
        return status;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&view->mutex);
    for (int waited = 0;
         seen && !waited && before.stage == view->state.stage && before.permille == view->state.permille;)
        waited = pthread_cond_timedwait(&view->changed, &view->mutex, &until);
    coffer_view_state now = view->state;
    pthread_mutex_unlock(&view->mutex);
    return coffer__give_struct(out, &now, sizeof now, err);
}

/* ---- Questions ---- */

coffer_status coffer__view_copy(coffer_bytes *out, const coffer_bytes *from, coffer_error *err)
{
    uint8_t *data = coffer__malloc(from->size ? from->size : 1);
    if (!data)
        return coffer__fail_no_memory(err, from->size);
    memcpy(data, from->data, from->size);
    coffer_free(out->data);
    *out = (coffer_bytes){ data, from->size, from->size };
    return COFFER_OK;
}

static coffer_status give_made(coffer_bytes *out, coffer_view *view, size_t which, coffer_error *err)
{
    made_bundle *made = &view->made[which];
    pthread_mutex_lock(&view->mutex);
    bool ready = made->ready;
    pthread_mutex_unlock(&view->mutex);
    if (!ready)
        return coffer__fail(err, COFFER_E_LOCKED, COFFER_OFFSET_NONE, "the file is being read");
    /* It does not change after it is ready. */
    return made->err.status ? coffer__fail_copy(err, &made->err) : coffer__view_copy(out, &made->bytes, err);
}

static coffer_status open_answers(coffer_view *view, coffer_chunks *chunks, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&view->opening);
    if (!view->answers)
        status = view->kind->open(&view->answers, chunks, err);
    pthread_mutex_unlock(&view->opening);
    return status;
}

/* "answer": the numbers and the notes, as in a summary. */
static coffer_status finish_answer(coffer_bytes *out, coffer_chunks *chunks, coffer_error *err)
{
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, err);
    if (status)
        return status;
    coffer_node_add_copy(root, "view", chunks->view);
    coffer_node_add_copy(root, "notes", chunks->note_list);
    status = coffer_node_status(root, err);
    if (!status) {
        coffer__chunks_finish_texts(chunks);
        coffer__chunks_json(chunks, "answer", root);
        status = coffer__chunks_status(chunks, err);
    }
    if (!status)
        status = coffer__view_bundle(out, chunks, err);
    coffer_node_free(root);
    return status;
}

static coffer_status answer(coffer_bytes *out, coffer_view *view, const coffer__view_question *entry,
                            const coffer__question *question, const coffer_progress *progress,
                            coffer_error *err)
{
    coffer_chunks *chunks = NULL;
    coffer_status status = start_chunks(&chunks, view, err);
    if (status)
        return status;
    chunks->opts.progress = progress;
    status = coffer__chunks_clear(chunks, err);
    if (!status)
        status = open_answers(view, chunks, err);
    if (!status)
        status = entry->answer(chunks, view->answers, question, err);
    if (!status)
        status = finish_answer(out, chunks, err);
    coffer_chunks_free(chunks);
    return status;
}

coffer_status coffer__view_ask(coffer_bytes *out, coffer_view *view, const coffer__question *question,
                               const coffer_progress *progress, coffer_error *err)
{
    for (size_t i = 0; i < MADE_COUNT; i++)
        if (strcmp(question->name, made_names[i]) == 0)
            return give_made(out, view, i, err);
    for (const coffer__view_question *entry = view->kind ? view->kind->questions : NULL; entry && entry->name;
         entry++)
        if (strcmp(question->name, entry->name) == 0)
            return answer(out, view, entry, question, progress, err);
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the page has no answer to '%.40s'",
                        question->name);
}

coffer_status coffer_view_ask(coffer_bytes *out, coffer_view *view, const char *question,
                              const coffer_view_arg *args, size_t arg_count, coffer_error *err)
{
    coffer__question asked = { question, args, arg_count };
    return coffer__view_ask(out, view, &asked, NULL, err);
}
