/* Mappings that lose their file. The test runner has a SIGBUS handler of its own around every test, so each
 * scene plays in a child that has mapped nothing yet; it gives 0, or the line of what did not hold. */
#include "io/source_private.h"
#include "support/temp.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)    \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)

enum { SIZE = 20000 };

static char *folder;
static uint8_t sample[SIZE];

static int make_folder(void **state)
{
    (void)state;
    folder = temp_make();
    memset(sample, 's', SIZE);
    temp_write(temp_path(folder, "whole"), sample, SIZE);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_remove(folder);
    return 0;
}

/* The wait status of a child in which the scene plays; a line that failed is printed. */
static int play(int (*scene)(void))
{
    int status = 0;
    temp_write(temp_path(folder, "file"), sample, SIZE);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        int line = scene();
        if (line != 0)
            fprintf(stderr, "line %d did not hold\n", line);
        exit(line != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static coffer_source *map(const char *name)
{
    coffer_source *src = NULL;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = COFFER_ACCESS_MAP;
    if (coffer_source_open(&src, temp_path(folder, name), &opts, NULL) != COFFER_OK)
        exit(10);
    return src;
}

/* ---- A file of ours is cut ---- */

static int cut_while_mapped(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = map("file");
    const uint8_t *view = coffer_source_view(src, 0, SIZE);
    uint8_t bytes[10];
    EXPECT(truncate(temp_path(folder, "file"), 5000) == 0);
    EXPECT(view[100] == 's');
    EXPECT(coffer_source_read_at(bytes, src, 0, 10, NULL) == COFFER_OK);
    EXPECT(view[15000] == 0);
    EXPECT(coffer_source_intact(src, &err) == COFFER_E_CHANGED);
    EXPECT(strstr(err.text, "truncated from 20000 to 5000 bytes while it was read"));
    EXPECT(coffer_source_read_at(bytes, src, 0, 10, NULL) == COFFER_E_CHANGED);
    /* It stays an error when the file grows again. */
    EXPECT(truncate(temp_path(folder, "file"), SIZE) == 0);
    EXPECT(coffer_source_intact(src, &err) == COFFER_E_CHANGED);
    EXPECT(strstr(err.text, "a part of its 20000 bytes could not be read"));
    coffer_source_close(src);
    return 0;
}

static void a_file_cut_while_it_is_mapped_is_an_error_not_a_death(void **state)
{
    (void)state;
    assert_int_equal(play(cut_while_mapped), 0);
}

struct reading {
    coffer_source *src;
    atomic_uint errors;
};

static void *read_pages(void *argument)
{
    struct reading *reading = argument;
    uint8_t bytes[100];
    for (uint64_t at = 0; at + sizeof bytes <= SIZE; at += 1000)
        if (coffer_source_read_at(bytes, reading->src, at, sizeof bytes, NULL) == COFFER_E_CHANGED)
            atomic_fetch_add(&reading->errors, 1);
    return NULL;
}

static int cut_under_threads(void)
{
    pthread_t threads[4];
    struct reading reading = { map("file"), 0 };
    EXPECT(truncate(temp_path(folder, "file"), 0) == 0);
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, read_pages, &reading) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT(atomic_load(&reading.errors) == 4 * 20);
    coffer_source_close(reading.src);
    return 0;
}

static void threads_that_meet_the_cut_together_all_get_the_error(void **state)
{
    (void)state;
    assert_int_equal(play(cut_under_threads), 0);
}

static void *open_and_close(void *argument)
{
    uint8_t byte;
    for (int i = 0; i < 200; i++) {
        coffer_source *src;
        if (coffer_source_open(&src, argument, NULL, NULL) != COFFER_OK ||
            coffer_source_read_at(&byte, src, 10, 1, NULL) != COFFER_OK)
            return NULL;
        coffer_source_close(src);
    }
    return argument;
}

static int cut_beside_others(void)
{
    pthread_t threads[2];
    char path[4096];
    struct reading reading = { map("file"), 0 };
    snprintf(path, sizeof path, "%s", temp_path(folder, "whole"));
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, open_and_close, path) == 0);
    EXPECT(truncate(temp_path(folder, "file"), 0) == 0);
    read_pages(&reading);
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        EXPECT(result);
    }
    EXPECT(atomic_load(&reading.errors) == 20);
    coffer_source_close(reading.src);
    return 0;
}

static void mappings_come_and_go_while_another_one_breaks(void **state)
{
    (void)state;
    assert_int_equal(play(cut_beside_others), 0);
}

static int cut_before_fork(void)
{
    int status = 1;
    uint8_t bytes[10];
    coffer_source *src = map("file");
    EXPECT(truncate(temp_path(folder, "file"), 100) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(coffer_source_read_at(bytes, src, 0, 10, NULL) == COFFER_OK &&
                      coffer_source_read_at(bytes, src, 15000, 10, NULL) == COFFER_E_CHANGED
                  ? 0
                  : 1);
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(status == 0);
    coffer_source_close(src);
    return 0;
}

static void a_source_works_in_a_child_after_fork(void **state)
{
    (void)state;
    assert_int_equal(play(cut_before_fork), 0);
}

/* ---- A bus error that is not ours ---- */

static sigjmp_buf out_of_handler;
static volatile sig_atomic_t handled;

static void own_handler(int signal_number)
{
    handled = signal_number;
    siglongjmp(out_of_handler, 1);
}

static void own_info_handler(int signal_number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    handled = signal_number;
}

/* Reads past the end of the file through a mapping that does not belong to a source. */
static int read_foreign_mapping(void)
{
    int fd = open(temp_path(folder, "foreign"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0 && ftruncate(fd, 4096) == 0);
    volatile uint8_t *bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(bytes != MAP_FAILED && ftruncate(fd, 0) == 0);
    return bytes[0] + 1;
}

static int fault_with_handler(void)
{
    signal(SIGBUS, own_handler);
    coffer_source_close(map("file"));
    if (sigsetjmp(out_of_handler, 1) == 0)
        return read_foreign_mapping();
    EXPECT(handled == SIGBUS);
    return 0;
}

static int sent_with_info_handler(void)
{
    struct sigaction action = { .sa_sigaction = own_info_handler, .sa_flags = SA_SIGINFO };
    sigaction(SIGBUS, &action, NULL);
    coffer_source_close(map("file"));
    raise(SIGBUS);
    EXPECT(handled == SIGBUS);
    return 0;
}

static int sent_while_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    coffer_source_close(map("file"));
    raise(SIGBUS);
    return 0;
}

static int fault_while_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    coffer_source_close(map("file"));
    return read_foreign_mapping();
}

static int fault_by_default(void)
{
    coffer_source_close(map("file"));
    return read_foreign_mapping();
}

static int sent_by_default(void)
{
    coffer_source_close(map("file"));
    raise(SIGBUS);
    return 0;
}

static void a_bus_error_that_is_not_ours_goes_where_it_went_before(void **state)
{
    (void)state;
    assert_int_equal(play(fault_with_handler), 0);
    assert_int_equal(play(sent_with_info_handler), 0);
    assert_int_equal(play(sent_while_ignored), 0);
    assert_int_equal(WTERMSIG(play(fault_while_ignored)), SIGBUS);
    assert_int_equal(WTERMSIG(play(fault_by_default)), SIGBUS);
    assert_int_equal(WTERMSIG(play(sent_by_default)), SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_cut_while_it_is_mapped_is_an_error_not_a_death),
        cmocka_unit_test(threads_that_meet_the_cut_together_all_get_the_error),
        cmocka_unit_test(mappings_come_and_go_while_another_one_breaks),
        cmocka_unit_test(a_source_works_in_a_child_after_fork),
        cmocka_unit_test(a_bus_error_that_is_not_ours_goes_where_it_went_before),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
