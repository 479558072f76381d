/* Terminals: color, width, aligned tables, sizes for people, progress. Nothing of it reaches a pipe. */
#ifndef COFFER_CLI_TERM_H
#define COFFER_CLI_TERM_H

#include "coffer/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum term_style {
    TERM_PLAIN,
    TERM_BOLD,
    TERM_DIM,
    TERM_RED,
    TERM_YELLOW,
    TERM_GREEN,
    TERM_BLUE,
    TERM_STYLES
} term_style;

/* --color auto|always|never; auto asks NO_COLOR, CLICOLOR_FORCE, CLICOLOR, TERM=dumb and isatty, in this
 * order.
 */
void term_set_color(const char *when);
void term_set_quiet(bool value); /* no progress lines */
bool term_has_color(FILE *out);
bool term_is_terminal(FILE *out);
unsigned term_width(FILE *out);  /* columns; 80 when unknown; COLUMNS respected */
unsigned term_height(FILE *out); /* lines; 24 when unknown; LINES respected */
/* Escape sequences, or "" without color. */
const char *term_on(FILE *out, term_style style);
const char *term_off(FILE *out);
/* 24-bit colors for heat maps, 256 colors where the terminal has no more. */
void term_background(FILE *out, uint8_t red, uint8_t green, uint8_t blue);
void term_foreground(FILE *out, uint8_t red, uint8_t green, uint8_t blue);

/* Whether the locale (LC_ALL, LC_CTYPE, LANG) is C or POSIX, without a word about UTF-8. */
bool term_is_ascii(void);
/* From now on messages, and what is printed for people, are ASCII: "…" becomes "...", other letters \u00e4.
 */
void term_make_ascii(bool standard_output);
/* The number of a stream, also after term_make_ascii. */
int term_descriptor(FILE *out);
/* Sends standard output to $COFFER_PAGER, $PAGER or less when it is a terminal. */
void term_start_pager(void);
/* Waits until the pager has ended. Async-signal-safe. */
void term_end_pager(void);
/* The terminal that the pager writes to; −1 without a pager. */
int term_terminal(void);

#define TERM_CLEAR_LINE "\r\033[K"
/* Cuts long lines off: only then is the number of lines to draw over known. */
#define TERM_NO_WRAP "\033[?7l"
#define TERM_WRAP "\033[?7h"
/* Remembers that stderr has a line without a line break, for term_restore to clear. */
void term_line_shown(bool shown);
/* Puts color, cursor and that line right again. Async-signal-safe. */
void term_restore(void);

/* Text from a file, safe to print: control characters and invalid UTF-8 shown as escapes, cut to `columns`
 * with "…" (0 = no limit). */
void term_print_text(FILE *out, const char *text, size_t len, size_t columns);

/* Text or JSON that a program may read: as it is, but on a terminal with harmful characters as escapes. */
void term_put_safe(FILE *out, const void *text, size_t len);

/* The same into memory: at most the next character of *text, moved past it; gives its columns. `piece` is
 * NUL-terminated. */
typedef char term_piece[16];
size_t term_next_piece(term_piece piece, const char **text, const char *end);

typedef char term_text[32];
const char *term_bytes(term_text out, uint64_t bytes);    /* "1.2 GiB" */
const char *term_count(term_text out, uint64_t count);    /* "1 234 567" with thin grouping: 1,234,567 */
const char *term_duration(term_text out, double seconds); /* "3 min 12 s" */
const char *term_plural(uint64_t count);                  /* "s", or "" for one */

/* A table: cells are added row by row; columns are as wide as they need, numbers to the right. */
typedef struct term_table term_table;
typedef enum term_align { TERM_LEFT, TERM_RIGHT } term_align;
enum { TERM_COLUMNS_MAX = 32 };
term_table *term_table_new(void); /* NULL when out of memory; the other calls accept NULL */
/* title : borrowed; all NULL: without a title line. */
void term_table_column(term_table *table, const char *title, term_align align);
void term_table_cell(term_table *table, const char *text);
void term_table_cell_len(term_table *table, const char *text, size_t len); /* may hold NULs */
void term_table_cellf(term_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Spaces before every line. */
void term_table_indent(term_table *table, size_t columns);
/* Lines longer than the terminal are left to it: for text that must be read to its end. */
void term_table_uncut(term_table *table);
/* Style of the next cell alone. */
void term_table_style(term_table *table, term_style style);
/* Prints, too wide text columns cut to fit a terminal, and frees. */
void term_table_print(term_table *table, FILE *out);

/* A progress line on stderr: what, percent, rate and time left; only on a terminal, only after a second. Give
 * &bar.progress to the library. */
typedef struct term_progress {
    coffer_progress progress;
    const char *what;
    const char *unit; /* "records"; NULL = bytes */
    uint64_t amount; /* units of the whole work, where the steps count something else; 0 = they count units */
    double started, drawn;
    bool shown;
} term_progress;
void term_progress_start(term_progress *bar, const char *what, const char *unit);
void term_progress_end(term_progress *bar);

#endif
