/* The ring of a thread, written by the preloaded library's code and read by that of the command, in one
 * process, so that the thread sanitizer sees both. */
#include "base/memory.h"
#include "record/record_thread.h"
#include "record/recorder.h"
#include "support/temp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 3, BLOCKS = 20000 };

/* The ring's code asks for these; a program without Python and without stacks has nothing to do there. */
void coffer__record_python_attach(void)
{
}
void coffer__record_python_release(coffer__record_thread *thread)
{
    (void)thread;
}
void coffer__record_forget_modules(void)
{
}
void coffer__record_snapshot_ask(coffer__record_session *mine)
{
    (void)mine;
}

/* Blocks whose records have the short form, and some whose address, size or distance in time does not fit. */
static uintptr_t address_of(unsigned thread, unsigned i)
{
    return ((uintptr_t)thread + 1) << 36 | (uintptr_t)i << 6 | (i % 50 == 7 ? 1 : 0);
}

static uint64_t size_of(unsigned i)
{
    return i % 70 == 9 ? (UINT64_C(1) << 40) + i : i;
}

static void put(coffer__record_thread *thread, unsigned number, unsigned i, bool allocates)
{
    const void *block = (const void *)address_of(number, i);
    if (!coffer__record_enter(thread) || !coffer__record_reserve(thread, 3))
        abort(); /* cmocka's assertions are for its own thread */
    coffer__record_begin(thread);
    thread->time = coffer__record_now();
    if (i % 90 == 11)
        thread->units -= UINT64_C(1) << 30; /* as after a long pause; the reader must not need it */
    if (allocates)
        coffer__record_put_alloc(thread, block, size_of(i), 0);
    else
        coffer__record_put_free(thread, block, thread->time);
    coffer__record_publish(thread);
    coffer__record_end(thread);
    coffer__record_leave(thread);
}

static void *write_blocks(void *argument)
{
    unsigned number = *(unsigned *)argument;
    for (unsigned i = 0; i < BLOCKS; i++) {
        put(&coffer__record_self, number, i, true);
        if (i % 3)
            put(&coffer__record_self, number, i, false);
    }
    return NULL;
}

static coffer__record_memory *make_memory(void)
{
    char path[64];
    int fd = memfd_create("coffer-rings", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, sizeof(coffer__record_memory)) == 0);
    coffer__record_memory *memory =
        mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_true(memory != MAP_FAILED);
    memory->control.magic = COFFER__RECORD_MAGIC;
    memory->control.root_pid = memory->control.reader_pid = (uint32_t)getpid();
    atomic_store(&memory->control.state, COFFER__RECORD_RUNS);
    munmap(memory, sizeof *memory);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv(COFFER__RECORD_ENVIRONMENT, path, 1);
    coffer__record_attach();
    close(fd);
    assert_non_null(coffer__record_shared);
    return coffer__record_shared; /* one mapping: the sanitizer compares addresses */
}

/* The events of each thread are all there, in its order. */
static void compare(const char *path)
{
    unsigned next[THREADS] = { 0 }, freed[THREADS] = { 0 };
    coffer_mlyze *trace = NULL;
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t blocks;
    assert_int_equal(coffer_mlyze_open_path(&trace, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_block_count(&blocks, trace, NULL), COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        assert_int_equal(coffer_mlyze_read_block(&events, trace, i, NULL), COFFER_OK);
        for (size_t k = 0; k < events.count; k++) {
            if (events.type[k] > COFFER_MLYZE_FREE)
                continue;
            unsigned thread = (unsigned)(events.address[k] >> 36) - 1;
            assert_true(thread < THREADS);
            unsigned *number = events.type[k] == COFFER_MLYZE_ALLOC ? &next[thread] : &freed[thread];
            if (events.type[k] == COFFER_MLYZE_FREE && *number % 3 == 0)
                ++*number;
            assert_int_equal(events.address[k], address_of(thread, *number));
            if (events.type[k] == COFFER_MLYZE_ALLOC)
                assert_int_equal(events.size[k], size_of(*number));
            ++*number;
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_true(next[i] == BLOCKS && freed[i] >= BLOCKS - 1);
    coffer_mlyze_events_free(&events);
    coffer_mlyze_close(trace);
}

static void what_threads_write_is_read_in_order(void **state)
{
    (void)state;
    record_options options = { .output = temp_path(temp_folder, "rings.mlyze") };
    record_session *session = coffer__calloc(1, sizeof *session);
    record_session *sessions[1] = { session };
    record_reader reader = {
        .options = &options, .memory = make_memory(), .sessions = sessions, .session_count = 1
    };
    reader.slots = coffer__calloc(COFFER__RECORD_SLOTS, sizeof *reader.slots);
    reader.first_us = record_clock_us();
    reader.first_tick = record_tick(&reader);
    reader.us_per_tick = 1 / 1000.0;
    session->path = coffer__strdup(options.output);
    session->command = coffer__strdup("rings");
    session->start_us = reader.first_us;
    assert_int_equal(record_session_open(session, &options), COFFER_OK);

    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_blocks, &numbers[i]), 0);
    }
    const uint64_t all = THREADS * (uint64_t)(BLOCKS + BLOCKS - (BLOCKS + 2) / 3);
    while (reader.events < all)
        record_drain(&reader);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    record_drain_ended(&reader, session);
    assert_int_equal(reader.events, all);
    assert_int_equal(record_session_finish(session, &options), COFFER_OK);
    compare(options.output);
    for (size_t i = 0; i < COFFER__RECORD_SLOTS; i++)
        record_slot_free(&reader.slots[i]);
    coffer__free(reader.slots);
    record_session_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_threads_write_is_read_in_order) };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
