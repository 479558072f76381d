#include "base/work.h"

#include "base/fail.h"
#include "support/temp.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, COUNT = 1000 };

struct sums {
    atomic_uint_least64_t total;
    uint64_t by_worker[THREADS]; /* each written by one thread only */
    atomic_uint runs[COUNT];
};

static coffer_status add(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    struct sums *sums = context;
    (void)err;
    atomic_fetch_add(&sums->total, index);
    atomic_fetch_add(&sums->runs[index], 1);
    sums->by_worker[worker] += index;
    return COFFER_OK;
}

static coffer__pool *new_pool(uint32_t threads)
{
    coffer__pool *pool;
    assert_int_equal(coffer__pool_new(&pool, threads, NULL), COFFER_OK);
    return pool;
}

static void assert_each_ran_once(coffer__pool *pool, uint64_t count)
{
    static struct sums sums;
    sums = (struct sums){ .total = 0 };
    assert_int_equal(coffer__pool_run(pool, count, add, &sums, NULL), COFFER_OK);
    uint64_t by_workers = 0, expected = 0;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(atomic_load(&sums.runs[i]), 1);
        expected += i;
    }
    for (int i = 0; i < THREADS; i++)
        by_workers += sums.by_worker[i];
    assert_int_equal(atomic_load(&sums.total), expected);
    assert_int_equal(by_workers, expected);
}

static void every_index_runs_once(void **state)
{
    (void)state;
    coffer__pool *pool = new_pool(THREADS);
    for (uint64_t count = 0; count < 20; count++)
        assert_each_ran_once(pool, count);
    for (int round = 0; round < 50; round++)
        assert_each_ran_once(pool, COUNT);
    coffer__pool_free(pool);
}

static coffer_status remember_thread(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    pthread_t *thread = context;
    (void)err;
    thread[index] = pthread_self();
    return worker == 0 ? COFFER_OK : COFFER_E_INCONSISTENT;
}

static void with_one_thread_the_caller_does_it_all(void **state)
{
    (void)state;
    pthread_t threads[10];
    coffer__pool *pool = new_pool(1);
    assert_int_equal(coffer__pool_threads(pool), 1);
    assert_int_equal(coffer__pool_run(pool, 10, remember_thread, threads, NULL), COFFER_OK);
    for (int i = 0; i < 10; i++)
        assert_true(pthread_equal(threads[i], pthread_self()));
    coffer__pool_free(pool);
}

static void the_number_of_threads_has_a_default_and_a_limit(void **state)
{
    (void)state;
    coffer__pool *pool = new_pool(0);
    assert_int_equal(coffer__pool_threads(pool), coffer__cpu_count());
    assert_true(coffer__cpu_count() >= 1);
    coffer__pool_free(pool);
    pool = new_pool(UINT32_MAX);
    assert_int_equal(coffer__pool_threads(pool), 1024);
    coffer__pool_free(pool);
    coffer__pool_free(NULL);
}

static coffer_status fail_at_some(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    atomic_uint *started = context;
    (void)worker;
    atomic_fetch_add(started, 1);
    if (index % 10 != 7)
        return COFFER_OK;
    if (index == 7)
        usleep(2000); /* the later ones fail first */
    return coffer__fail(err, COFFER_E_BAD_VALUE, index, "index %u", (unsigned)index);
}

static void the_failure_with_the_lowest_index_wins(void **state)
{
    (void)state;
    coffer__pool *pool = new_pool(THREADS);
    for (int round = 0; round < 20; round++) {
        atomic_uint started = 0;
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_equal(coffer__pool_run(pool, COUNT, fail_at_some, &started, &err), COFFER_E_BAD_VALUE);
        assert_int_equal(err.offset, 7);
        assert_string_equal(err.text, "index 7");
        assert_true(atomic_load(&started) < COUNT);
        assert_int_equal(coffer__pool_run(pool, COUNT, fail_at_some, &started, NULL), COFFER_E_BAD_VALUE);
    }
    assert_each_ran_once(pool, COUNT);
    coffer__pool_free(pool);
}

static coffer_status check_signals(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    sigset_t set;
    (void)context;
    (void)index;
    (void)err;
    usleep(1000); /* so that all threads get some */
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    if (worker == 0)
        return sigismember(&set, SIGINT) ? COFFER_E_BAD_VALUE : COFFER_OK;
    return sigismember(&set, SIGINT) && sigismember(&set, SIGUSR1) && !sigismember(&set, SIGBUS)
               ? COFFER_OK
               : COFFER_E_INCONSISTENT;
}

static void workers_leave_signals_to_the_caller_but_take_their_own_faults(void **state)
{
    (void)state;
    coffer__pool *pool = new_pool(THREADS);
    assert_int_equal(coffer__pool_run(pool, 40, check_signals, NULL, NULL), COFFER_OK);
    coffer__pool_free(pool);
}

static void a_pool_works_in_a_child_after_fork(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* the thread sanitizer knows no threads in a forked child */
#endif
    int status = 0;
    coffer__pool *pool = new_pool(THREADS);
    assert_each_ran_once(pool, COUNT);
    pid_t child = fork();
    if (child == 0) {
        struct sums *sums = test_calloc(1, sizeof *sums);
        bool fine = coffer__pool_run(pool, COUNT, add, sums, NULL) == COFFER_OK &&
                    atomic_load(&sums->total) == (uint64_t)COUNT * (COUNT - 1) / 2;
        coffer__pool_free(pool);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    child = fork();
    if (child == 0) {
        coffer__pool_free(pool);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_each_ran_once(pool, COUNT);
    coffer__pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once),
        cmocka_unit_test(with_one_thread_the_caller_does_it_all),
        cmocka_unit_test(the_number_of_threads_has_a_default_and_a_limit),
        cmocka_unit_test(the_failure_with_the_lowest_index_wins),
        cmocka_unit_test(workers_leave_signals_to_the_caller_but_take_their_own_faults),
        cmocka_unit_test(a_pool_works_in_a_child_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
