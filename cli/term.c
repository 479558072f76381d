#include "term.h"

#include "base/text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_mode;
static color_mode color = COLOR_AUTO;
/* The changes that term_restore has to undo. */
static volatile sig_atomic_t color_used, line_shown;

void term_set_color(const char *when)
{
    color = strcmp(when, "always") == 0  ? COLOR_ALWAYS
            : strcmp(when, "never") == 0 ? COLOR_NEVER
                                         : COLOR_AUTO;
}

bool term_is_terminal(FILE *out)
{
    int fd = term_descriptor(out);
    if (fd == STDOUT_FILENO && term_terminal() >= 0)
        return true;
    return fd >= 0 && isatty(fd);
}

bool term_has_color(FILE *out)
{
    if (color != COLOR_AUTO)
        return color == COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const char *wanted = getenv("CLICOLOR"), *forced = getenv("CLICOLOR_FORCE");
    if (no_color && *no_color)
        return false;
    if (forced && *forced && strcmp(forced, "0") != 0)
        return true;
    if ((wanted && strcmp(wanted, "0") == 0) || !term || strcmp(term, "dumb") == 0)
        return false;
    if (!term_is_terminal(out))
        return false;
    color_used = 1;
    return true;
}

void term_line_shown(bool shown)
{
    line_shown = shown;
}

static void write_text(int fd, const char *text, size_t len)
{
    ssize_t written = write(fd, text, len);
    (void)written; /* dying anyway */
}

void term_restore(void)
{
    static const char clear[] = TERM_CLEAR_LINE, reset[] = "\033[0m\033[?25h";
    if (line_shown)
        write_text(STDERR_FILENO, clear, sizeof clear - 1);
    if (color_used && isatty(STDOUT_FILENO))
        write_text(STDOUT_FILENO, reset, sizeof reset - 1);
    term_end_pager();
}

/* A side of the terminal: the environment's word first, then the terminal's own. */
static unsigned side(FILE *out, const char *variable, bool height, unsigned otherwise)
{
    const char *given = getenv(variable);
    struct winsize size;
    if (given) {
        long value = strtol(given, NULL, 10);
        if (value > 0 && value < 10000)
            return (unsigned)value;
    }
    int fd = term_descriptor(out);
    if (fd == STDOUT_FILENO && term_terminal() >= 0)
        fd = term_terminal();
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0)
        return otherwise;
    unsigned found = height ? size.ws_row : size.ws_col;
    return found > 0 ? found : otherwise;
}

unsigned term_width(FILE *out)
{
    return side(out, "COLUMNS", false, 80);
}

unsigned term_height(FILE *out)
{
    return side(out, "LINES", true, 24);
}

const char *term_on(FILE *out, term_style style)
{
    static const char *const sequences[TERM_STYLES] = {
        [TERM_PLAIN] = "",        [TERM_BOLD] = "\033[1m",    [TERM_DIM] = "\033[2m",
        [TERM_RED] = "\033[31m",  [TERM_YELLOW] = "\033[33m", [TERM_GREEN] = "\033[32m",
        [TERM_BLUE] = "\033[34m",
    };
    return term_has_color(out) ? sequences[style] : "";
}

const char *term_off(FILE *out)
{
    return term_has_color(out) ? "\033[0m" : "";
}

static bool has_true_color(void)
{
    const char *depth = getenv("COLORTERM");
    return depth && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0);
}

/* One of the six levels 0, 95, 135, 175, 215, 255 of the 256-color cube. */
static unsigned cube_level(uint8_t value)
{
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35u) / 40u;
}

static void use_color(FILE *out, unsigned layer, uint8_t red, uint8_t green, uint8_t blue)
{
    if (!term_has_color(out))
        return;
    if (has_true_color())
        fprintf(out, "\033[%u;2;%u;%u;%um", layer, red, green, blue);
    else
        fprintf(out, "\033[%u;5;%um", layer,
                16 + 36 * cube_level(red) + 6 * cube_level(green) + cube_level(blue));
}

void term_background(FILE *out, uint8_t red, uint8_t green, uint8_t blue)
{
    use_color(out, 48, red, green, blue);
}

void term_foreground(FILE *out, uint8_t red, uint8_t green, uint8_t blue)
{
    use_color(out, 38, red, green, blue);
}

/* ---- Sizes for people ---- */

const char *term_bytes(term_text out, uint64_t bytes)
{
    return coffer__size_text_of(out, bytes);
}

const char *term_count(term_text out, uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *at = out;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

const char *term_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *term_duration(term_text out, double seconds)
{
    if (!(seconds >= 0) || seconds > 1e12) {
        snprintf(out, sizeof(term_text), "?");
        return out;
    }
    uint64_t whole = (uint64_t)(seconds + 0.5);
    if (seconds < 0.000001)
        snprintf(out, sizeof(term_text), "0 s");
    else if (seconds < 0.0009995)
        snprintf(out, sizeof(term_text), "%.0f µs", seconds * 1e6);
    else if (seconds < 0.00995)
        snprintf(out, sizeof(term_text), "%.1f ms", seconds * 1e3);
    else if (seconds < 0.9995)
        snprintf(out, sizeof(term_text), "%.0f ms", seconds * 1e3);
    else if (seconds < 9.95)
        snprintf(out, sizeof(term_text), "%.1f s", seconds);
    else if (whole < 60)
        snprintf(out, sizeof(term_text), "%" PRIu64 " s", whole);
    else if (whole < 3600)
        snprintf(out, sizeof(term_text), "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(out, sizeof(term_text), "%" PRIu64 " h %" PRIu64 " min", whole / 3600, whole % 3600 / 60);
    else
        snprintf(out, sizeof(term_text), "%" PRIu64 " d %" PRIu64 " h", whole / 86400, whole % 86400 / 3600);
    return out;
}
