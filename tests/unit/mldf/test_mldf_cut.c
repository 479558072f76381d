/* Sets whose mapped file is cut. The test runner has a SIGBUS handler of its own, so the scene plays in a
 * child, and the parent has mapped nothing before. */
#include "support/dataset.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 500 };

/* 0, or what did not hold. */
static int read_what_was_cut(const char *path, uint64_t to)
{
    coffer_source_opts source_opts = COFFER_SOURCE_OPTS_INIT;
    coffer_bytes found = COFFER_BYTES_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    signal(SIGBUS, SIG_DFL);
    source_opts.access = COFFER_ACCESS_MAP;
    if (coffer_source_open(&src, path, &source_opts, NULL) != COFFER_OK ||
        coffer_mldf_open(&set, src, NULL, NULL) != COFFER_OK)
        return 1;
    if (coffer_mldf_read(&found, NULL, set, SAMPLES - 1, SMALL_IMAGE, NULL) != COFFER_OK)
        return 2;
    if (truncate(path, (off_t)to) != 0)
        return 3;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        if (coffer_mldf_read(&found, NULL, set, i, SMALL_IMAGE, NULL) != COFFER_E_CHANGED)
            return 4;
    }
    return 0;
}

static void a_set_cut_under_its_mapping_is_an_error_wherever_it_is_cut(void **state)
{
    const char *path = temp_path(temp_folder, "cut.mldf");
    dataset_opts opts = { .rows_last = true };
    dataset *made = dataset_small(SAMPLES, &opts);
    size_t len;
    uint8_t *bytes = dataset_make(&len, NULL, made);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t sizes[] = { 0, 100, 4096, 10000, len / 2, len - 5000, len - 16, len - 1 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int result = -1;
        temp_write(path, bytes, len);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(read_what_was_cut(path, sizes[i]));
        assert_int_equal(waitpid(child, &result, 0), child);
        /* Inside its last page only what is there can be seen to be gone. */
        uint64_t last_page = (len - 1) / page * page;
        assert_true(result == 0 || (sizes[i] > last_page && WIFEXITED(result) && WEXITSTATUS(result) == 4));
    }
    free(bytes);
    dataset_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_cut_under_its_mapping_is_an_error_wherever_it_is_cut,
                                        temp_setup, temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
