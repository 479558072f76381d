/* A child dies by a signal; the test looks at what it left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"

#include "io/temporary.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/coffer-signals-XXXXXX";

static bool folder_is_empty(void)
{
    return rmdir(folder) == 0;
}

static void begin_file(void)
{
    int fd;
    char *name, path[64];
    snprintf(path, sizeof path, "%s/file", folder);
    if (coffer__temporary_create(&fd, &name, path, NULL) != COFFER_OK)
        _exit(99);
}

static int status_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int make_folder(void **state)
{
    (void)state;
    memset(folder + strlen(folder) - 6, 'X', 6);
    return mkdtemp(folder) ? 0 : -1;
}

static void dies_clean_by(int number)
{
    pid_t child = fork();
    if (child == 0) {
        cli_install_signals();
        begin_file();
        raise(number);
        _exit(98);
    }
    int status = status_of(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
    assert_true(folder_is_empty());
}

static void an_interrupt_leaves_no_temporary_file(void **state)
{
    (void)state;
    dies_clean_by(SIGINT);
}

static void a_closed_pipe_leaves_no_temporary_file(void **state)
{
    (void)state;
    dies_clean_by(SIGPIPE);
}

static void a_held_signal_strikes_when_it_is_released(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        cli_install_signals();
        begin_file();
        cli_hold_signals();
        raise(SIGTERM);
        if (folder_is_empty())
            _exit(97);
        cli_release_signals();
        _exit(98);
    }
    int status = status_of(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_true(folder_is_empty());
}

static void what_the_parent_ignores_stays_ignored(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGHUP, SIG_IGN);
        cli_install_signals();
        raise(SIGHUP);
        _exit(0);
    }
    int status = status_of(child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(folder_is_empty());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_interrupt_leaves_no_temporary_file, make_folder),
        cmocka_unit_test_setup(a_closed_pipe_leaves_no_temporary_file, make_folder),
        cmocka_unit_test_setup(a_held_signal_strikes_when_it_is_released, make_folder),
        cmocka_unit_test_setup(what_the_parent_ignores_stays_ignored, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
