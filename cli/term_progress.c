/* The progress line on stderr. */
#include "term.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

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
