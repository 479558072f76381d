/* Questions about a training set: any of its samples, those that meet conditions, and one as it is. */
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/mldf_analyze.h"
#include "page/page_set.h"
#include "view/view_private.h"

#include <pthread.h>
#include <string.h>

enum { MOST_SAMPLES = 256, MOST_CONDITIONS = 16 };
/* Sounds of a page of samples are shorter than in a report of fewer. */
enum { PAGE_DETAIL = 4 };

typedef struct set_view {
    coffer_mldf *sets[2];
    /* The latest selection: pages of it are asked for one after the other. */
    pthread_mutex_t mutex;
    char *where;
    uint64_t *selected;
    uint64_t selected_count;
} set_view;

static void close_sets(void *state)
{
    set_view *view = state;
    coffer_mldf_close(view->sets[0]);
    coffer_mldf_close(view->sets[1]);
    pthread_mutex_destroy(&view->mutex);
    coffer_free(view->selected);
    coffer__free(view->where);
    coffer__free(view);
}

static coffer_status open_sets(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    set_view *view = coffer__calloc(1, sizeof *view);
    if (!view)
        return coffer__fail_no_memory(err, sizeof *view);
    coffer_status status = COFFER_OK;
    pthread_mutex_init(&view->mutex, NULL);
    opts.limits = &chunks->limits;
    for (size_t i = 0; i < chunks->file_count && !status; i++)
        status = coffer_mldf_open(&view->sets[i], coffer_file_source(chunks->files[i]), &opts, err);
    if (status) {
        close_sets(view);
        return status;
    }
    *state = view;
    return COFFER_OK;
}

/* Conditions with " and " between them. */
static coffer_status select_samples(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                    const char *where, coffer_error *err)
{
    static const char between[] = " and ";
    const char *conditions[MOST_CONDITIONS];
    size_t condition_count = 0;
    char *text = coffer__strdup(where), *next = text;
    if (!text)
        return coffer__fail_no_memory(err, 0);
    while (next && condition_count < MOST_CONDITIONS) {
        char *end = strstr(next, between);
        conditions[condition_count++] = next;
        if (end)
            *end = '\0';
        next = end ? end + strlen(between) : NULL;
    }
    coffer_status status =
        next ? coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a selection has at most %d conditions", MOST_CONDITIONS)
             : coffer_mldf_select(samples, count, set, conditions, condition_count, NULL, err);
    coffer__free(text);
    return status;
}

/* Called with the mutex locked. */
static coffer_status renew_selection(set_view *view, const char *where, coffer_error *err)
{
    uint64_t *samples = NULL, count = 0;
    if (view->where && strcmp(view->where, where) == 0)
        return COFFER_OK;
    char *copy = coffer__strdup(where);
    coffer_status status =
        copy ? select_samples(&samples, &count, view->sets[0], where, err) : coffer__fail_no_memory(err, 0);
    if (status) {
        coffer__free(copy);
        return status;
    }
    coffer__free(view->where);
    coffer_free(view->selected);
    view->where = copy;
    view->selected = samples;
    view->selected_count = count;
    return COFFER_OK;
}

static uint64_t copy_page(uint64_t *numbers, uint64_t first, uint64_t wanted, const uint64_t *selected,
                          uint64_t total)
{
    uint64_t left = first < total ? total - first : 0, count = left < wanted ? left : wanted;
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = selected ? selected[first + i] : first + i;
    return count;
}

/* "first" and "count" among all samples, or among those that meet "where". */
static coffer_status answer_samples(coffer_chunks *chunks, void *state, const coffer__question *question,
                                    coffer_error *err)
{
    set_view *view = state;
    const char *where = coffer__question_text(question, "where");
    uint64_t numbers[MOST_SAMPLES], first = 0, wanted = 0, count;
    uint64_t total = coffer_mldf_sample_count(view->sets[0]);
    coffer_status status = coffer__question_number(&first, question, "first", 0, 0, INT64_MAX, err);
    if (!status)
        status = coffer__question_number(&wanted, question, "count", 60, 0, MOST_SAMPLES, err);
    if (status)
        return status;
    if (where && *where) {
        pthread_mutex_lock(&view->mutex);
        status = renew_selection(view, where, err);
        total = status ? 0 : view->selected_count;
        count = copy_page(numbers, first, wanted, view->selected, total);
        pthread_mutex_unlock(&view->mutex);
    } else {
        count = copy_page(numbers, first, wanted, NULL, total);
    }
    if (status)
        return status;
    coffer_node_add_u64(chunks->view, "total", total, COFFER_UNIT_NONE);
    coffer__page_put_samples(chunks, view->sets[0], numbers, (size_t)count, PAGE_DETAIL, false);
    return COFFER_OK;
}

static coffer_status answer_sample(coffer_chunks *chunks, void *state, const coffer__question *question,
                                   coffer_error *err)
{
    const set_view *view = state;
    uint64_t number = 0, total = coffer_mldf_sample_count(view->sets[0]);
    if (total == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the set has no samples");
    coffer_status status = coffer__question_number(&number, question, "sample", 0, 0, total - 1, err);
    if (!status)
        coffer__page_put_samples(chunks, view->sets[0], &number, 1, 1, true);
    return status;
}

static const coffer__view_question questions[] = {
    { "samples", answer_samples },
    { "sample", answer_sample },
    { NULL, NULL },
};

const coffer__view_kind coffer__view_set = { "set", open_sets, close_sets, questions };
