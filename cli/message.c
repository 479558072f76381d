/* Error messages and hints on stderr. */
#include "args.h"
#include "base/fail.h"
#include "cli.h"
#include "files.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_worse(int a, int b)
{
    return a > b ? a : b;
}

static void print_hint(const char *hint, const char *path)
{
    fprintf(stderr, "%s  hint: ", term_on(stderr, TERM_DIM));
    const char *mark = strchr(hint, '%');
    if (mark) {
        fwrite(hint, 1, (size_t)(mark - hint), stderr);
        term_print_text(stderr, path, strlen(path), 0);
        hint = mark + 1;
    }
    fprintf(stderr, "%s%s\n", hint, term_off(stderr));
}

/* Looks for the reason why the system refused a file. */
static const char *hint_for_path(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || coffer_is_remote(path))
        return NULL;
    if (stat(path, &st) != 0) {
        int error_number = errno;
        if (lstat(path, &st) == 0)
            return error_number == ELOOP ? "the link leads back to itself"
                                         : "it is a link to a file that does not exist";
        return error_number == ENOENT   ? "the file does not exist; check the spelling and the folder"
               : error_number == EACCES ? "this user cannot enter a folder of the path"
                                        : NULL;
    }
    if (S_ISDIR(st.st_mode))
        return "it is a folder; name a file in it";
    if (S_ISFIFO(st.st_mode))
        return "start the program that writes into it; COFFER_PIPE_WAIT sets how many seconds to wait";
    if (S_ISSOCK(st.st_mode))
        return "it is a socket; name a file";
    if (access(path, R_OK) != 0)
        return "this user cannot read the file";
    if (st.st_size == 0 && S_ISREG(st.st_mode))
        return "the file is empty; did the writer crash?";
    return NULL;
}

static bool folder_exists(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    struct stat st;
    if (!slash || slash == path || (size_t)(slash - path) >= sizeof folder)
        return true;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return stat(folder, &st) == 0;
}

static const char *hint_for_output(const char *path, int system_error)
{
    if (system_error == ENOENT)
        return folder_exists(path) ? hint_for_path(path)
                                   : "the folder does not exist; create it first, or write to another one";
    if (system_error == EACCES || system_error == EPERM)
        return access(path, R_OK) == 0 && access(path, W_OK) != 0
                   ? "this user can read the file but not change it; copy it first"
                   : "this user cannot write to the folder; write to another one";
    return system_error == EISDIR ? hint_for_path(path) : NULL;
}

static const char *hint_for_remote(const char *path, const coffer_error *err)
{
    bool s3 = strncmp(path, "s3://", 5) == 0, hub = strncmp(path, "hf://", 5) == 0;
    switch (err->system_error) {
    case ENOENT:
        return "check the spelling of the address";
    case EACCES:
        return s3    ? "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, say who is asking"
               : hub ? "HF_TOKEN says who is asking"
                     : "an address can contain a name and a password: https://NAME:PASSWORD@host/file";
    case ETIMEDOUT:
        return "is the server running, and can this machine reach it?";
    default:
        return NULL;
    }
}

static const char *hint_for_system_error(const char *path, const coffer_error *err)
{
    static const struct {
        int number;
        const char *hint;
    } hints[] = {
        { ENOSPC, "free some space, or write to another disk; no incomplete file was left" },
        { EDQUOT, "free some space, or write to another disk; no incomplete file was left" },
        { EFBIG,
          "the file is larger than a limit (ulimit -f) or the disk allows; no incomplete file was left" },
        { EROFS, "the disk is mounted read-only; copy the file, or write to another folder" },
        { ENOTDIR, "a part of the path is a file, not a folder" },
        { ENAMETOOLONG, "the path or a name in it is too long for this system" },
        { EBADF, "the stream is closed; redirect it" },
        { EMFILE, "too many files are open in this process; raise 'ulimit -n'" },
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (err->system_error == hints[i].number)
            return hints[i].hint;
    if (path && coffer_is_remote(path) && err->subject != COFFER_SUBJECT_OTHER)
        return hint_for_remote(path, err);
    if (!path || err->subject == COFFER_SUBJECT_OTHER)
        return err->system_error == ENOENT ? "the file does not exist; check the spelling and the folder"
                                           : NULL;
    return err->subject == COFFER_SUBJECT_OUTPUT ? hint_for_output(path, err->system_error)
                                                 : hint_for_path(path);
}

/* '%' in a hint is replaced by the path. */
static const char *hint_for(const char *path, const coffer_error *err)
{
    switch (err->status) {
    case COFFER_E_NOT_RECOGNISED:
    case COFFER_E_BAD_MAGIC: {
        const char *hint = path ? hint_for_path(path) : NULL;
        return hint ? hint : "'coffer formats' lists the formats this command knows";
    }
    case COFFER_E_UNSUPPORTED_VERSION:
        return "a newer coffer may read it; 'coffer version' prints the version of this one";
    case COFFER_E_LOCKED:
        return "another program is writing it; try again when that has finished";
    case COFFER_E_CHANGED:
        return "another program changed it; try again when that has finished";
    case COFFER_E_EXISTS:
        return "--force overwrites it";
    case COFFER_E_LIMIT:
        return "this limit protects against malicious files; --limit raises it, such as --limit memory=4G";
    case COFFER_E_NO_MEMORY:
        return "close other programs, or request less data at once";
    case COFFER_E_IO:
    case COFFER_E_NOT_FOUND:
        return hint_for_system_error(path, err);
    case COFFER_E_KEY_NEEDED:
        return "--key-file FILE or the environment variable COFFER_KEY gives the key";
    case COFFER_E_AUTHENTICATION_FAILED:
        return "the key is not the one it was encrypted with, or the value was changed";
    case COFFER_E_UNSUPPORTED:
        return path && coffer_is_remote(path) && err->subject == COFFER_SUBJECT_INPUT
                   ? "--download fetches the whole file first, where a server has no ranges"
                   : NULL;
    case COFFER_E_INVALID_ARGUMENT:
    case COFFER_E_CANCELLED:
        return NULL;
    case COFFER_E_BAD_CHECKSUM:
        if (path && err->subject != COFFER_SUBJECT_OTHER && cli_offers_damaged())
            return "'coffer check %' lists all that is wrong, 'coffer repair' saves what can be saved, "
                   "--damaged keep continues";
        /* fall through */
    default:
        return path && err->subject != COFFER_SUBJECT_OTHER
                   ? "'coffer check %' lists all that is wrong, 'coffer repair' saves what can be saved"
                   : NULL;
    }
}

static const char *shown_path(const char *path, const coffer_error *err)
{
    if (strcmp(path, "-") != 0)
        return path;
    return err->subject == COFFER_SUBJECT_OUTPUT ? "standard output" : "standard input";
}

static void print_error(const char *path, const coffer_error *err)
{
    bool unknown = err->status == COFFER_E_NOT_RECOGNISED || err->status == COFFER_E_BAD_MAGIC;
    fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_RED), term_off(stderr));
    if (path) {
        const char *shown = shown_path(path, err);
        term_print_text(stderr, shown, strlen(shown), 0);
        fputs(": ", stderr);
    }
    if (unknown)
        fputs("format not recognized: ", stderr);
    term_print_text(stderr, err->text, strlen(err->text), 0);
    if (err->offset != COFFER_OFFSET_NONE && !unknown)
        fprintf(stderr, " (at offset %" PRIu64 ")", err->offset);
    fputc('\n', stderr);
}

int cli_fail(const char *path, const coffer_error *err, const char *hint)
{
    fflush(stdout);
    print_error(path, err);
    if (!hint)
        hint = hint_for(path, err);
    if (hint && *hint)
        print_hint(hint, path);
    if (err->status == COFFER_E_INVALID_ARGUMENT || err->status == COFFER_E_KEY_NEEDED)
        return CLI_USAGE;
    return coffer__is_about_file(err->status) ? CLI_FINDINGS : CLI_FAILED;
}

int cli_fail_between(const char *input, const char *output, const coffer_error *err, const char *hint)
{
    bool about_output = err->subject == COFFER_SUBJECT_OUTPUT;
    return cli_fail(about_output ? (output ? output : "-") : input, err, hint);
}

int cli_usage(const cli_args *args, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "%scoffer %s:%s ", term_on(stderr, TERM_RED), args->verb->name, term_off(stderr));
    term_print_text(stderr, text, strlen(text), 0);
    fprintf(stderr, "\ntry 'coffer help %s'\n", args->verb->name);
    return CLI_USAGE;
}

void cli_warn(const char *path, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_YELLOW), term_off(stderr));
    if (path) {
        const char *shown = strcmp(path, "-") == 0 ? "standard input" : path;
        term_print_text(stderr, shown, strlen(shown), 0);
        fputs(": ", stderr);
    }
    term_print_text(stderr, text, strlen(text), 0);
    fputc('\n', stderr);
}

const char *cli_open_hint(const coffer_error *err)
{
    /* Opening reads no content except that of the journal. */
    bool bad_journal = coffer__is_about_file(err->status) && err->status != COFFER_E_UNSUPPORTED_VERSION &&
                       err->status != COFFER_E_LIMIT;
    return bad_journal ? "'%-journal' does not belong to the file; without it the file is read unchanged"
                       : NULL;
}

int cli_open(coffer_source **out, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_source_open(out, path, NULL, &err) == COFFER_OK) {
        if (strcmp(path, "-") == 0)
            cli_warn_version(path, *out);
        return CLI_OK;
    }
    return cli_fail(path, &err, cli_open_hint(&err));
}

int cli_finish(int status)
{
    bool failed = ferror(stdout);
    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed)
        return status;
    clearerr(stdout);
    /* Whoever closed the pipe has seen enough and wants no message. */
    if (errno != EPIPE) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer__fail_errno(&err, "cannot write", errno ? errno : EIO);
        cli_fail("standard output", &err, errno == EBADF ? NULL : "");
    }
    return CLI_FAILED;
}

int cli_fail_rewriting(const cli_args *args, const char *path, const char *output, const coffer_error *err)
{
    if (err->status == COFFER_E_UNSUPPORTED)
        return cli_usage(args, "%s: %s", path, err->text);
    return cli_fail_between(path, output ? output : path, err, NULL);
}

/* Dying by a signal without leaving anything behind. */

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
