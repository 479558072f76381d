#include "base/work.h"

#include "base/fail.h"
#include "support/temp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct watched {
    pthread_t caller;
    uint64_t calls, last, total;
    uint64_t stop_at; /* call at which it asks to stop; 0 = never */
} watched;

static int watch(void *context, uint64_t done, uint64_t total)
{
    watched *seen = context;
    assert_true(pthread_equal(pthread_self(), seen->caller));
    assert_true(done >= seen->last);
    seen->last = done;
    seen->total = total;
    return ++seen->calls == seen->stop_at;
}

static coffer_status count_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    (void)index;
    (void)worker;
    (void)err;
    atomic_fetch_add((atomic_uint_least64_t *)context, 1);
    return COFFER_OK;
}

static void progress_comes_from_the_caller_and_ends_at_the_total(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        watched seen = { .caller = pthread_self() };
        coffer_progress progress = { .struct_size = sizeof progress, .step = watch, .context = &seen };
        coffer__work_opts opts = { .threads = threads, .progress = &progress, .total = 2000, .piece = 10 };
        coffer__work *work = NULL;
        atomic_uint_least64_t pieces = 0;
        assert_int_equal(coffer__work_new(&work, &opts, NULL), COFFER_OK);
        assert_int_equal(coffer__work_run(work, 100, count_piece, &pieces, NULL), COFFER_OK);
        assert_int_equal(seen.last, 1000);
        assert_int_equal(coffer__work_run(work, 100, count_piece, &pieces, NULL), COFFER_OK);
        assert_int_equal(seen.last, 2000);
        assert_int_equal(seen.total, 2000);
        assert_int_equal(atomic_load(&pieces), 200);
        coffer__work_free(work);
    }
}

static void a_step_that_is_not_zero_cancels(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        watched seen = { .caller = pthread_self(), .stop_at = 1 };
        coffer_progress progress = { .struct_size = sizeof progress, .step = watch, .context = &seen };
        coffer__work_opts opts = { .threads = threads, .progress = &progress, .total = 50, .piece = 1 };
        coffer__work *work = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        atomic_uint_least64_t pieces = 0;
        assert_int_equal(coffer__work_new(&work, &opts, NULL), COFFER_OK);
        assert_int_equal(coffer__work_run(work, 50, count_piece, &pieces, &err), COFFER_E_CANCELLED);
        assert_string_equal(err.text, "cancelled");
        assert_int_equal(seen.calls, 1);
        coffer__work_free(work);
    }
}

static coffer_status advance_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    (void)worker;
    return coffer__work_advance(context, index, err);
}

static void tasks_can_count_their_own_progress(void **state)
{
    watched seen = { .caller = pthread_self() };
    coffer_progress progress = { .struct_size = sizeof progress, .step = watch, .context = &seen };
    coffer__work_opts opts = { .threads = 3, .progress = &progress, .total = 4950 };
    coffer__work *work = NULL;
    (void)state;
    assert_int_equal(coffer__work_new(&work, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer__work_run(work, 100, advance_piece, work, NULL), COFFER_OK);
    assert_int_equal(seen.last, 4950);
    coffer__work_free(work);
}

static void no_more_threads_than_pieces_are_started(void **state)
{
    coffer__work *work = NULL;
    (void)state;
    assert_int_equal(coffer__work_new(&work, &(coffer__work_opts){ .threads = 8, .pieces = 3 }, NULL),
                     COFFER_OK);
    assert_int_equal(coffer__work_threads(work), 3);
    coffer__work_free(work);
}

static void the_pieces_of_one_run_count_one_each(void **state)
{
    watched seen = { .caller = pthread_self() };
    coffer_progress progress = { .struct_size = sizeof progress, .step = watch, .context = &seen };
    coffer__work_opts opts = { .progress = &progress };
    coffer__work *work = NULL;
    atomic_uint_least64_t pieces = 0;
    (void)state;
    assert_int_equal(coffer__work_new_pieces(&work, 77, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer__work_run(work, 77, count_piece, &pieces, NULL), COFFER_OK);
    assert_int_equal(seen.last, 77);
    assert_int_equal(seen.total, 77);
    coffer__work_free(work);
}

static coffer_status fail_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    (void)context;
    (void)worker;
    return index == 7 ? coffer__fail(err, COFFER_E_BAD_VALUE, 7, "piece 7") : COFFER_OK;
}

static void the_failure_of_a_piece_is_returned(void **state)
{
    coffer__work *work = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer__work_new(&work, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__work_run(work, 20, fail_piece, NULL, &err), COFFER_E_BAD_VALUE);
    assert_string_equal(err.text, "piece 7");
    coffer__work_free(work);
}

/* ---- Pipeline ---- */

enum { NUMBERS = 1003, BATCH = 10 };

typedef struct line {
    uint64_t next;
    uint64_t values[2][BATCH];
    uint64_t counts[2];
    uint64_t consumed[NUMBERS];
    uint64_t consumed_count, turns;
    uint64_t fail_piece, fail_batch; /* 0 = never */
} line;

static coffer_status prepare(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    line *numbers = context;
    uint64_t left = NUMBERS - numbers->next;
    (void)err;
    *pieces = numbers->counts[slot] = left < BATCH ? left : BATCH;
    for (uint64_t i = 0; i < *pieces; i++)
        numbers->values[slot][i] = numbers->next++;
    return COFFER_OK;
}

static coffer_status produce(void *context, size_t slot, uint64_t piece, uint32_t worker, coffer_error *err)
{
    line *numbers = context;
    (void)worker;
    numbers->values[slot][piece] *= 3;
    if (numbers->fail_piece && numbers->values[slot][piece] == 3 * numbers->fail_piece)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "produce");
    return COFFER_OK;
}

static coffer_status consume(void *context, size_t slot, coffer_error *err)
{
    line *numbers = context;
    for (uint64_t i = 0; i < numbers->counts[slot]; i++)
        numbers->consumed[numbers->consumed_count++] = numbers->values[slot][i];
    if (numbers->fail_batch && numbers->consumed_count >= numbers->fail_batch * BATCH)
        return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "consume");
    return COFFER_OK;
}

static coffer_status turned(void *context, size_t slot, coffer_error *err)
{
    line *numbers = context;
    (void)slot;
    (void)err;
    numbers->turns++;
    return COFFER_OK;
}

static const coffer__work_pipeline pipeline = { prepare, produce, consume, turned };

static coffer_status run_line(line *numbers, uint32_t threads, coffer_error *err)
{
    coffer__work *work = NULL;
    assert_int_equal(coffer__work_new(&work, &(coffer__work_opts){ .threads = threads }, NULL), COFFER_OK);
    coffer_status status = coffer__work_run_pipeline(work, &pipeline, numbers, err);
    coffer__work_free(work);
    return status;
}

static void batches_are_consumed_whole_and_in_order(void **state)
{
    static line numbers;
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        numbers = (line){ 0 };
        assert_int_equal(run_line(&numbers, threads, NULL), COFFER_OK);
        assert_int_equal(numbers.consumed_count, NUMBERS);
        for (uint64_t i = 0; i < NUMBERS; i++)
            assert_int_equal(numbers.consumed[i], 3 * i);
        assert_int_equal(numbers.turns, NUMBERS / BATCH + 2);
    }
}

static void a_pipeline_without_batches_does_nothing(void **state)
{
    static line numbers;
    (void)state;
    numbers = (line){ .next = NUMBERS };
    assert_int_equal(run_line(&numbers, 2, NULL), COFFER_OK);
    assert_int_equal(numbers.turns, 0);
}

static void a_failure_stops_the_pipeline(void **state)
{
    static line numbers;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    numbers = (line){ .fail_piece = 55 };
    assert_int_equal(run_line(&numbers, 3, &err), COFFER_E_BAD_VALUE);
    assert_int_equal(numbers.consumed_count, 50);
    numbers = (line){ .fail_batch = 3 };
    assert_int_equal(run_line(&numbers, 3, &err), COFFER_E_IO);
    assert_string_equal(err.text, "consume");
    assert_int_equal(numbers.consumed_count, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_comes_from_the_caller_and_ends_at_the_total),
        cmocka_unit_test(a_step_that_is_not_zero_cancels),
        cmocka_unit_test(tasks_can_count_their_own_progress),
        cmocka_unit_test(no_more_threads_than_pieces_are_started),
        cmocka_unit_test(the_pieces_of_one_run_count_one_each),
        cmocka_unit_test(the_failure_of_a_piece_is_returned),
        cmocka_unit_test(batches_are_consumed_whole_and_in_order),
        cmocka_unit_test(a_pipeline_without_batches_does_nothing),
        cmocka_unit_test(a_failure_stops_the_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
