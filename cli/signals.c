/* Dying by a signal without leaving anything behind. */
#include "cli.h"
#include "term.h"

#include <signal.h>

static const int fatal_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

/* The default action is back in place (SA_RESETHAND) and strikes when the handler returns. */
static void clean_up_and_die(int number)
{
    coffer_remove_temporaries();
    term_restore();
    raise(number);
}

void cli_install_signals(void)
{
    struct sigaction action = { .sa_handler = clean_up_and_die, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaddset(&action.sa_mask, fatal_signals[i]);
    for (int i = 0; i < FATAL_SIGNALS; i++) {
        struct sigaction old;
        /* A signal that the parent ignores (nohup) stays ignored. */
        if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal_signals[i], &action, NULL);
    }
    /* A file that may not grow any more (ulimit -f) is then an error of the write, like a full disk. */
    signal(SIGXFSZ, SIG_IGN);
}

static void mask_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(how, &set, NULL);
}

void cli_hold_signals(void)
{
    mask_signals(SIG_BLOCK);
}

bool cli_signal_waits(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
                                     sigismember(&set, SIGHUP) == 1);
}

void cli_release_signals(void)
{
    mask_signals(SIG_UNBLOCK);
}

void cli_finish_signals(void)
{
    /* Ignoring a signal also discards it while it is pending. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    cli_release_signals();
}
