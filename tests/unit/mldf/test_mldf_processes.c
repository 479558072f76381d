/* One handle, opened once, read by many processes and threads at the same time. */
#include "support/dataset.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 500, CHILDREN = 8, THREADS = 3, ROUNDS = 3 };

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "processes";

/* Gives the number of values that were not right. */
static int read_all(const coffer_mldf *set, uint64_t start)
{
    coffer_bytes found = COFFER_BYTES_INIT;
    int wrong = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t sample = (start + i * 7) % SAMPLES;
        for (size_t f = 0; f < SMALL_FIELDS; f++) {
            uint8_t expected[256];
            size_t len = dataset_small_value(expected, sample, f);
            coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
            bool right = coffer_mldf_read(&found, &entry, set, sample, f, NULL) == COFFER_OK &&
                         entry.present == (len != SIZE_MAX) && found.size == (len == SIZE_MAX ? 0 : len) &&
                         memcmp(found.data, expected, found.size) == 0;
            wrong += !right;
        }
    }
    coffer_free(found.data);
    return wrong;
}

typedef struct reader {
    pthread_t thread;
    const coffer_mldf *set;
    uint64_t start;
    int wrong;
} reader;

static void *reader_main(void *context)
{
    reader *of = context;
    for (int round = 0; round < ROUNDS; round++)
        of->wrong += read_all(of->set, of->start);
    return NULL;
}

static int read_batches(coffer_mldf_batch *batch)
{
    static uint8_t data[SAMPLES * 256];
    static uint64_t samples[SAMPLES], offsets[SAMPLES + 1];
    coffer_mldf_target target = {
        sizeof(coffer_mldf_target), SMALL_CAPTION, data, sizeof data, 0, offsets, NULL
    };
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < SAMPLES; i++)
            samples[i] = (i * 31 + (uint64_t)round) % SAMPLES;
        if (coffer_mldf_batch_read(batch, samples, SAMPLES, &target, 1, NULL) != COFFER_OK)
            return SAMPLES;
        for (size_t i = 0; i < SAMPLES; i++) {
            uint8_t expected[256];
            size_t len = dataset_small_value(expected, samples[i], SMALL_CAPTION);
            wrong += offsets[i + 1] - offsets[i] != len || memcmp(data + offsets[i], expected, len) != 0;
        }
    }
    return wrong;
}

static int read_with_threads(const coffer_mldf *set, coffer_mldf_batch *batch, uint64_t seed)
{
    reader readers[THREADS];
    int wrong = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        readers[i] = (reader){ .set = set, .start = seed * 13 + i * 101 };
        if (pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]) != 0)
            return 1;
    }
    wrong += read_batches(batch);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
        wrong += readers[i].wrong;
    }
    return wrong;
}

/* The thread sanitizer does not let a child of a process with threads start some: there one thread reads. */
static int read_in_child(const coffer_mldf *set, coffer_mldf_batch *batch, uint64_t seed)
{
#ifdef __SANITIZE_THREAD__
    (void)batch;
    return read_all(set, seed * 13);
#else
    return read_with_threads(set, batch, seed);
#endif
}

static void try_access(coffer_access access)
{
    dataset_opts made_opts = { .checksummed = true, .key = key };
    coffer_source_opts source_opts = COFFER_SOURCE_OPTS_INIT;
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_batch_opts batch_opts = COFFER_MLDF_BATCH_OPTS_INIT;
    const char *path = temp_path(temp_folder, "s.mldf");
    dataset *made = dataset_small(SAMPLES, &made_opts);
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    coffer_mldf_batch *batch = NULL;
    pid_t children[CHILDREN];
    size_t len;
    uint8_t *bytes = dataset_make(&len, NULL, made);
    temp_write(path, bytes, len);
    source_opts.access = access;
    assert_int_equal(coffer_source_open(&src, path, &source_opts, NULL), COFFER_OK);
    open_opts.verify = true;
    open_opts.key = key;
    assert_int_equal(coffer_mldf_open(&set, src, &open_opts, NULL), COFFER_OK);
    batch_opts.threads = 3;
    assert_int_equal(coffer_mldf_batch_new(&batch, set, &batch_opts, NULL), COFFER_OK);
    assert_int_equal(read_with_threads(set, batch, 99), 0); /* its threads run when the children come */
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(read_in_child(set, batch, (uint64_t)i) == 0 ? 0 : 1);
    }
    assert_int_equal(read_with_threads(set, batch, 77), 0);
    for (int i = 0; i < CHILDREN; i++) {
        int result = -1;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    coffer_mldf_batch_free(batch);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
    dataset_free(made);
}

static void a_handle_opened_before_fork_reads_right_in_eight_children_by_map(void **state)
{
    (void)state;
    try_access(COFFER_ACCESS_MAP);
}

static void a_handle_opened_before_fork_reads_right_in_eight_children_by_reading(void **state)
{
    (void)state;
    try_access(COFFER_ACCESS_READ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_handle_opened_before_fork_reads_right_in_eight_children_by_map,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(a_handle_opened_before_fork_reads_right_in_eight_children_by_reading,
                                        temp_setup, temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
