/* The progress line on stderr. */
#include "term.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { NUMBERS_WIDTH = 56 }; /* percent, rate and time left at their longest */
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

static void print_rate(const term_progress *bar, uint64_t done, uint64_t total, double seconds)
{
    term_text text;
    double amount =
        bar->amount > 0 && total > 0 ? (double)bar->amount * ((double)done / (double)total) : (double)done;
    uint64_t rate = (uint64_t)(amount / seconds);
    if (bar->unit)
        fprintf(stderr, "  %s %s/s", term_count(text, rate), bar->unit);
    else
        fprintf(stderr, "  %s/s", term_bytes(text, rate));
}

static void draw(const term_progress *bar, uint64_t done, uint64_t total, double seconds)
{
    term_text text;
    fputs(TERM_CLEAR_LINE, stderr);
    unsigned width = term_width(stderr);
    fputs(term_on(stderr, TERM_BOLD), stderr);
    term_print_text(stderr, bar->what, strlen(bar->what),
                    width > NUMBERS_WIDTH + 20 ? width - NUMBERS_WIDTH : 20);
    fputs(term_off(stderr), stderr);
    if (total > 0)
        fprintf(stderr, "  %3.0f %%", 100.0 * (double)done / (double)total);
    print_rate(bar, done, total, seconds);
    if (total > 0 && done > 0 && done <= total)
        fprintf(stderr, "  %s left",
                term_duration(text, ceil(seconds * (double)(total - done) / (double)done)));
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
    *bar = (term_progress){ .progress = { step, bar }, .what = what, .unit = unit, .started = now() };
}

void term_progress_end(term_progress *bar)
{
    if (bar->shown)
        fputs(TERM_CLEAR_LINE, stderr);
    bar->shown = false;
    term_line_shown(false);
}
