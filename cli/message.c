/* Messages on stderr: what went wrong, and what to do next. */
#include "args.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
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

/* Why the system refused a file, as far as can be told afterwards. */
static const char *hint_for_path(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return NULL;
    if (stat(path, &st) != 0) {
        int error_number = errno;
        if (lstat(path, &st) == 0)
            return "it is a link to a file that is not there";
        return error_number == ENOENT   ? "there is no file of that name; check the spelling and the folder"
               : error_number == EACCES ? "a folder on the way may not be entered by this user"
                                        : NULL;
    }
    if (S_ISDIR(st.st_mode))
        return "it is a folder; name a file in it";
    if (access(path, R_OK) != 0)
        return "this user may not read it";
    if (st.st_size == 0 && S_ISREG(st.st_mode))
        return "did the program that wrote it come to its end?";
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t text_len = strlen(text), end_len = strlen(end);
    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

/* A message about a system call ends in what the system said; some of it needs a word more. */
static const char *hint_for_system_error(const char *path, const char *text)
{
    static const struct {
        int number;
        const char *hint;
    } hints[] = {
        { ENOSPC, "free some space, or write to another disk; nothing half-written was left" },
        { EDQUOT, "free some space, or write to another disk; nothing half-written was left" },
        { EFBIG, "a limit (ulimit -f) or the disk allows no file so large; nothing half-written was left" },
        { EROFS, "the disk is mounted read-only; copy the file, or write to another folder" },
        { ENOTDIR, "a part of the path is a file, not a folder" },
        { EMFILE, "too many files are open in this process; raise 'ulimit -n'" },
    };
    bool about_folder = strstr(text, "cannot create a file beside it") != NULL;
    if (about_folder && ends_with(text, strerror(ENOENT)))
        return "there is no such folder; make it first, or write to another";
    if (about_folder && ends_with(text, strerror(EACCES)))
        return "this user may not write into that folder; write to another";
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (ends_with(text, strerror(hints[i].number)))
            return hints[i].hint;
    if (ends_with(text, strerror(EACCES)) && access(path, R_OK) == 0 && access(path, W_OK) != 0)
        return "this user may read it but not change it; copy it first";
    return strstr(text, "cannot write") ? NULL : hint_for_path(path);
}

/* In a hint, '%' stands for the path. */
static const char *hint_for(const char *path, const coffer_error *err)
{
    switch (err->status) {
    case COFFER_E_NOT_RECOGNISED:
    case COFFER_E_BAD_MAGIC: {
        const char *hint = hint_for_path(path);
        return hint ? hint : "'coffer formats' lists the formats this command knows";
    }
    case COFFER_E_UNSUPPORTED_VERSION:
        return "a newer coffer may read it; 'coffer version' tells which this is";
    case COFFER_E_LOCKED:
        return "another program is writing it; try again when it is done";
    case COFFER_E_CHANGED:
        return "another program changed it meanwhile; try again when it is done";
    case COFFER_E_EXISTS:
        return "--force replaces it";
    case COFFER_E_LIMIT:
        return "limits guard against files made to harm; the library (coffer_limits) can raise them";
    case COFFER_E_NO_MEMORY:
        return "close other programs, or ask for less at once";
    case COFFER_E_IO:
    case COFFER_E_NOT_FOUND:
        return hint_for_system_error(path, err->text);
    case COFFER_E_INVALID_ARGUMENT:
    case COFFER_E_UNSUPPORTED:
    case COFFER_E_CANCELLED:
        return NULL;
    default:
        return "'coffer check %' lists all that is wrong, 'coffer repair' saves what can be saved";
    }
}

static bool is_about_content(coffer_status status)
{
    return status <= COFFER_E_NOT_RECOGNISED && status >= COFFER_E_INTERRUPTED_UPDATE;
}

/* Messages of the system's calls name the file themselves, with '?' for what could harm a terminal. */
static bool begins_with_path(const char *text, const char *path)
{
    for (; *path; path++, text++)
        if (*text != *path && !(*text == '?' && iscntrl((unsigned char)*path)))
            return false;
    return *text == ':';
}

const char *cli_culprit(const char *in, const char *out, const coffer_error *err)
{
    return out && begins_with_path(err->text, out) ? out : in;
}

static void print_error(const char *path, const coffer_error *err)
{
    bool unknown = err->status == COFFER_E_NOT_RECOGNISED || err->status == COFFER_E_BAD_MAGIC;
    fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_RED), term_off(stderr));
    if (!begins_with_path(err->text, path)) {
        term_print_text(stderr, path, strlen(path), 0);
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
    if (err->status == COFFER_E_INVALID_ARGUMENT)
        return CLI_USAGE;
    return is_about_content(err->status) ? CLI_FINDINGS : CLI_FAILED;
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

const char *cli_open_hint(const coffer_error *err)
{
    /* Opening looks at no content but the journal's. */
    bool bad_journal = is_about_content(err->status) && err->status != COFFER_E_UNSUPPORTED_VERSION &&
                       err->status != COFFER_E_LIMIT;
    return bad_journal ? "'%-journal' does not fit the file; without it the file is read as it is" : NULL;
}

int cli_open(coffer_source **out, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_source_open(out, path, NULL, &err) == COFFER_OK)
        return CLI_OK;
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
        coffer_error err = { COFFER_E_IO, COFFER_OFFSET_NONE, "" };
        snprintf(err.text, sizeof err.text, "%s",
                 errno ? strerror(errno) : "not everything could be written");
        cli_fail("standard output", &err, "");
    }
    return CLI_FAILED;
}

int cli_fail_rewriting(const cli_args *args, const char *path, const char *output, const coffer_error *err)
{
    if (err->status == COFFER_E_EXISTS)
        return cli_fail(output, err, NULL);
    if (err->status == COFFER_E_UNSUPPORTED)
        return cli_usage(args, "%s: %s", path, err->text);
    return cli_fail(cli_culprit(path, output, err), err, NULL);
}
