/* The standard streams: a pager for long output on a terminal, and plain ASCII where the locale asks for it.
 */
#include "term.h"

#include "base/buffer.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- ASCII ---- */

bool term_is_ascii(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0] && (!value || !*value); i++)
        value = getenv(variables[i]);
    return value && (strcmp(value, "C") == 0 || strcmp(value, "POSIX") == 0);
}

static const char *ascii_form(uint32_t c)
{
    static const struct {
        uint32_t c;
        const char *text;
    } forms[] = {
        { 0x2026, "..." }, { 0x2013, "-" },  { 0x2014, "--" },  { 0x2212, "-" },  { 0x00d7, "x" },
        { 0x2192, "->" },  { 0x2190, "<-" }, { 0x00b5, "u" },   { 0x00b7, "." },  { 0x2019, "'" },
        { 0x2018, "'" },   { 0x201c, "\"" }, { 0x201d, "\"" },  { 0x2264, "<=" }, { 0x2265, ">=" },
        { 0x00b1, "+-" },  { 0x2248, "~" },  { 0x221e, "inf" }, { 0x2500, "-" },  { 0x2502, "|" },
    };
    static const char *const levels[] = { "_", ".", ":", "-", "=", "+", "*", "#" }; /* U+2581 … U+2588 */
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].c == c)
            return forms[i].text;
    if (c >= 0x2581 && c <= 0x2588)
        return levels[c - 0x2581];
    if (c >= 0x2500 && c <= 0x257f)
        return "+";
    return (c >= 0x2580 && c <= 0x259f) || (c >= 0x2800 && c <= 0x28ff) ? "#" : NULL;
}

typedef struct ascii_stream {
    int fd;
    uint8_t held[4]; /* the beginning of a character */
    size_t held_len;
} ascii_stream;

static bool write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

static void put_ascii(coffer__buffer *out, const uint8_t **at, const uint8_t *end)
{
    uint32_t c;
    size_t len = coffer__utf8_decode(&c, *at, end);
    const char *form = len > 1 ? ascii_form(c) : NULL;
    if (len <= 1)
        coffer__buffer_append(out, *at, 1);
    else if (form)
        coffer__buffer_append(out, form, strlen(form));
    else
        coffer__buffer_printf(out, c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    *at += len ? len : 1;
}

static ssize_t write_ascii(void *cookie, const char *text, size_t len)
{
    ascii_stream *stream = cookie;
    coffer__buffer in = COFFER__BUFFER_INIT, out = COFFER__BUFFER_INIT;
    coffer__buffer_append(&in, stream->held, stream->held_len);
    coffer__buffer_append(&in, text, len);
    const uint8_t *at = in.data, *end = at + in.len;
    stream->held_len = 0;
    while (at < end) {
        uint32_t c;
        if (*at >= 0xc2 && end - at < 4 && coffer__utf8_decode(&c, at, end) == 0) {
            stream->held_len = (size_t)(end - at);
            memcpy(stream->held, at, stream->held_len);
            break;
        }
        put_ascii(&out, &at, end);
    }
    bool good = !in.failed && !out.failed && write_all(stream->fd, out.data, out.len);
    coffer__buffer_free(&in);
    coffer__buffer_free(&out);
    return good ? (ssize_t)len : 0;
}

void term_make_ascii(bool standard_output)
{
    static ascii_stream streams[2] = { { .fd = STDOUT_FILENO }, { .fd = STDERR_FILENO } };
    static const cookie_io_functions_t functions = { .write = write_ascii };
    FILE *error = fopencookie(&streams[1], "w", functions);
    if (error) {
        setvbuf(error, NULL, _IOLBF, 1024);
        stderr = error;
    }
    FILE *output = standard_output ? fopencookie(&streams[0], "w", functions) : NULL;
    if (output) {
        if (isatty(STDOUT_FILENO))
            setvbuf(output, NULL, _IOLBF, 4096);
        stdout = output;
    }
}

int term_descriptor(FILE *out)
{
    return out == stdout ? STDOUT_FILENO : out == stderr ? STDERR_FILENO : fileno(out);
}

/* ---- The pager ---- */

static pid_t pager;
static int terminal = -1; /* standard output before the pager took its place */

int term_terminal(void)
{
    return terminal;
}

static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name) < (int)sizeof file && len > 0 &&
            access(file, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* COFFER_PAGER, then PAGER, then less; NULL when no pager was found, or the variable is empty or "cat". */
static const char *choose_pager(void)
{
    const char *name = getenv("COFFER_PAGER");
    if (!name)
        name = getenv("PAGER");
    if (!name)
        return is_in_path("less") ? "less" : NULL;
    return *name && strcmp(name, "cat") != 0 ? name : NULL;
}

void term_start_pager(void)
{
    const char *name = choose_pager(), *kind = getenv("TERM");
    int ends[2];
    if (!name || !isatty(STDOUT_FILENO) || !kind || strcmp(kind, "dumb") == 0 || pipe2(ends, O_CLOEXEC) != 0)
        return;
    char *const words[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)name,
                            NULL };
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
    /* Short output stays on the screen, colors are shown. */
    setenv("LESS", "FRX", 0);
    terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (terminal >= 0 && posix_spawn(&pager, "/bin/sh", &files, NULL, words, environ) == 0)
        dup2(ends[1], STDOUT_FILENO);
    else
        pager = 0;
    posix_spawn_file_actions_destroy(&files);
    close(ends[0]);
    close(ends[1]);
}

void term_end_pager(void)
{
    int saved = errno;
    if (pager > 0) {
        close(STDOUT_FILENO);
        while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
            ;
        pager = 0;
    }
    errno = saved;
}

/* The progress line on stderr. */

enum { LEAST_WHAT = 10 }; /* columns of the activity that are always shown */
static const double first_seconds = 1.0, between_seconds = 0.1;

static bool quiet;

void term_set_quiet(bool value)
{
    quiet = value;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef char progress_text[128];

static void add(progress_text line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(progress_text line, const char *format, ...)
{
    size_t len = strlen(line);
    va_list list;
    va_start(list, format);
    vsnprintf(line + len, sizeof(progress_text) - len, format, list);
    va_end(list);
}

static void add_rate(progress_text line, const term_progress *bar, uint64_t done, uint64_t total,
                     double seconds)
{
    term_text text;
    double amount =
        bar->amount > 0 && total > 0 ? (double)bar->amount * ((double)done / (double)total) : (double)done;
    uint64_t rate = (uint64_t)(amount / seconds);
    if (bar->unit)
        add(line, "  %s %s/s", term_count(text, rate), bar->unit);
    else
        add(line, "  %s/s", term_bytes(text, rate));
}

/* A line that reached the terminal's edge would be there to stay: the next one could not draw over it. */
static void draw(const term_progress *bar, uint64_t done, uint64_t total, double seconds)
{
    term_text text;
    progress_text percent = "", rate = "", left = "";
    if (total > 0)
        add(percent, "  %3.0f %%", 100.0 * (double)done / (double)total);
    add_rate(rate, bar, done, total, seconds);
    if (total > 0 && done > 0 && done <= total)
        add(left, "  %s left", term_duration(text, ceil(seconds * (double)(total - done) / (double)done)));
    size_t width = term_width(stderr) - 1, what = strlen(bar->what);
    size_t least = (what < LEAST_WHAT ? what : LEAST_WHAT) + strlen(percent);
    if (least + strlen(rate) + strlen(left) > width)
        *rate = '\0';
    if (least + strlen(left) > width)
        *left = '\0';
    size_t taken = strlen(percent) + strlen(rate) + strlen(left);
    size_t room = taken + 1 < width ? width - taken : 1;
    fprintf(stderr, TERM_CLEAR_LINE "%s", term_on(stderr, TERM_BOLD));
    term_print_text(stderr, bar->what, what, room);
    fprintf(stderr, "%s%s%s%s", term_off(stderr), percent, rate, left);
    fflush(stderr);
}

static int step(void *context, uint64_t done, uint64_t total)
{
    term_progress *bar = context;
    double time = now();
    if (time - bar->started < first_seconds || time - bar->drawn < between_seconds)
        return 0;
    if (quiet || !term_is_terminal(stderr))
        return 0;
    bar->drawn = time;
    bar->shown = true;
    term_line_shown(true);
    draw(bar, done, total, time - bar->started);
    return 0;
}

void term_progress_start(term_progress *bar, const char *what, const char *unit)
{
    *bar = (term_progress){
        .progress = { sizeof bar->progress, step, bar }, .what = what, .unit = unit, .started = now()
    };
}

void term_progress_end(term_progress *bar)
{
    if (bar->shown)
        fputs(TERM_CLEAR_LINE, stderr);
    bar->shown = false;
    term_line_shown(false);
}
