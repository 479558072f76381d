/* A verb is a table of options, a page of help, and a function. The parser, the help, the
 * man pages, the shell completions and docs/cli all come from the same tables. */
#ifndef COFFER_CLI_H
#define COFFER_CLI_H

#include "coffer/coffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit status of the command. */
enum { CLI_OK = 0, CLI_FINDINGS = 1, CLI_USAGE = 2, CLI_FAILED = 3 };

/* A spelling of an earlier version, accepted with a note on stderr, and absent from help and completion. */
typedef struct cli_old_spelling {
    const char *was; /* "--measure", "-m", or a value; NULL ends a table */
    const char *now; /* for a value: its new spelling */
} cli_old_spelling;

typedef struct cli_option {
    const char *name;            /* without the dashes; NULL ends a table */
    char letter;                 /* one-letter form, or 0 */
    const char *argument;        /* "N", "FILE", "A..B"; NULL for a switch */
    const char *choices;         /* "param|block|token", checked by the parser; NULL = anything */
    const char *help;            /* one line */
    const char *initial;         /* what holds when it is not given; NULL = nothing to say */
    const cli_old_spelling *old; /* NULL = none */
} cli_option;

typedef struct cli_args cli_args;

/* The list of verbs is grouped by task. */
typedef enum cli_group {
    CLI_GROUP_LOOK,
    CLI_GROUP_VERIFY,
    CLI_GROUP_CHANGE,
    CLI_GROUP_CONVERT,
    CLI_GROUP_SETS,
    CLI_GROUP_TRACES,
    CLI_GROUP_PICTURES,
    CLI_GROUP_HELP,
    CLI_GROUP_COUNT
} cli_group;

typedef struct cli_verb {
    const char *name;
    const char *usage;       /* what follows the name: "FILE…" */
    const char *summary;     /* one line that begins with a verb, for the list of verbs */
    const char *description; /* a paragraph or two */
    const char *examples;    /* lines "  coffer stats scan.mscan --by param   # what it does" */
    const cli_option *options;
    /* Builds the options where they come from the library; used instead of `options` when not NULL. */
    const cli_option *(*make_options)(void);
    size_t min_operands, max_operands;
    /* NULL: the verb means something else for each format; the row of cli_format_verbs for the format of the
     * first operand runs. Its options are those of all rows together; one that the format at hand does not
     * have is a usage error. A verb with a function of its own may have rows as well, and looks for them. */
    int (*run)(const cli_args *args);
    /* With run NULL: the row is that of the format which the extension of the last operand names, since the
     * verb makes that file. */
    bool makes_file;
    bool hidden;        /* not in the list of verbs */
    bool options_first; /* the first operand ends the options: the rest belongs to another program */
    bool pages;         /* prints text for people that may be long: a terminal gets a pager */
    /* The operand that the verb writes, when there are at least two: no other operand may be the same file.
     */
    enum { CLI_WRITES_NONE, CLI_WRITES_FIRST, CLI_WRITES_LAST } writes;
    cli_group group;
} cli_verb;

extern const char *const cli_group_titles[CLI_GROUP_COUNT];

/* A verb's meaning for one format, or for kinds of file that are handled alike. */
typedef struct cli_format_verb {
    const char *format; /* "mscan"; several with ", " between them */
    const char *verb;
    const cli_option *options;
    const char *examples;
    /* src : the first operand, open and recognized, closed by the caller; NULL for a folder, and for verbs
     * that make a file. */
    int (*run)(const cli_args *args, coffer_source *src);
    bool opens_file; /* run opens the first operand itself, to lock it: src is NULL */
} cli_format_verb;

/* A format may have something to say about a file before any verb runs: that it shows an older state. */
typedef struct cli_format_notice {
    const char *format;
    /* Prints it with cli_warn; CLI_OK, or CLI_FINDINGS when there was something to say. */
    int (*run)(const char *path, coffer_source *src);
} cli_format_notice;

/* The verb's own options; NULL when it has none. */
const cli_option *cli_verb_options(const cli_verb *verb);

extern const cli_verb *const cli_verbs[];               /* NULL-terminated, in the order of the help */
extern const cli_format_verb *const cli_format_verbs[]; /* NULL-terminated */
extern const cli_format_notice *const cli_format_notices[];

/* ---- Arguments, after parsing ---- */

size_t cli_operand_count(const cli_args *args);
const char *cli_operand(const cli_args *args, size_t index); /* NULL past the end */
bool cli_has(const cli_args *args, const char *option);
const char *cli_value(const cli_args *args, const char *option); /* the last one given, or NULL */
/* Options and operands in the order of the command line, for verbs to which the order matters. *place begins
 * zeroed; false past the end. */
typedef struct cli_word {
    const char *option; /* NULL: an operand */
    const char *value;
} cli_word;
typedef struct cli_place {
    size_t options, operands;
} cli_place;
bool cli_next_word(cli_word *out, cli_place *place, const cli_args *args);
/* A number within bounds; the default when the option is not there. False after a message to stderr: return
 * CLI_USAGE. */
bool cli_number(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value, uint64_t min,
                uint64_t max);
/* The same for a size ("64K", "5GB") and for a duration in microseconds ("20ms", "1.5s"). */
bool cli_size(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value);
bool cli_duration(uint64_t *out, const cli_args *args, const char *option, uint64_t default_value);
bool cli_real(double *out, const cli_args *args, const char *option, double default_value);
/* "A..B" (B exclusive), "A..", "..B", or "A" for that one alone. Untouched when the option is not there. */
bool cli_range(uint64_t *begin, uint64_t *end, const cli_args *args, const char *option);
/* Decimal digits at *text, and moves past them; false without digits, or when they are too many. */
bool cli_read_digits(uint64_t *out, const char **text);
/* Makes the values of --limit the defaults of the process. 0, or CLI_USAGE after a message. */
int cli_set_limits(const cli_args *args);
/* Index of the value among the option's choices; default_index when it is not there. */
size_t cli_choice(const cli_args *args, const char *option, size_t default_index);

/* ---- Messages ---- */

/* The worse of two exit statuses: could not be read before usage before findings. */
int cli_worse(int a, int b);

/* Prints "coffer: PATH: text (at offset N)" on stderr, and a line that says what to do next, chosen by status
 * and system_error or given as `hint` (NULL = chosen, "" = none). path : may be NULL. Returns the exit
 * status: CLI_FINDINGS when the file's content is wrong, CLI_USAGE for COFFER_E_INVALID_ARGUMENT and
 * COFFER_E_KEY_NEEDED, else CLI_FAILED. */
int cli_fail(const char *path, const coffer_error *err, const char *hint);
/* cli_fail for a verb that reads one file and writes another: err->subject decides which of them is named.
 * input : NULL when the text names the file; output : NULL for standard output. */
int cli_fail_between(const char *input, const char *output, const coffer_error *err, const char *hint);
/* "coffer: PATH: message" on stderr, for what does not stop the verb. path : may be NULL. */
void cli_warn(const char *path, const char *format, ...) COFFER_PRINTF(2, 3);
/* "coffer VERB: message" and "try 'coffer help VERB'"; gives CLI_USAGE. */
int cli_usage(const cli_args *args, const char *format, ...) COFFER_PRINTF(2, 3);
/* Opens a file for a verb; on failure prints and gives the exit status, else 0. */
int cli_open(coffer_source **out, const char *path);
/* The hint for a file that coffer_source_open refused; NULL = by status. */
const char *cli_open_hint(const coffer_error *err);
/* cli_fail_between for verbs that rewrite a file, into `output` or (NULL) in place. */
int cli_fail_rewriting(const cli_args *args, const char *path, const char *output, const coffer_error *err);
/* Flushes stdout and turns a write error (a full disk, a closed pipe) into an exit status. */
int cli_finish(int status);
/* Holds INT, TERM and HUP back while a file is changed in place. */
void cli_hold_signals(void);
bool cli_signal_waits(void); /* whether one is being held back */
void cli_release_signals(void);
/* The same once the change is committed: a held signal no longer interrupts anything and is ignored. */
void cli_finish_signals(void);
/* Ctrl-C and the like: temporary files are removed, the terminal is left as it was found. */
void cli_install_signals(void);

/* ---- Output ---- */

/* A node and those after it, for people: aligned names and values, lists as tables, human sizes. */
void cli_print_nodes(FILE *out, const coffer_node *first);
/* The same without internals (coffer_node_is_detail). */
void cli_print_facts(FILE *out, const coffer_node *first);
/* A list of maps as a table. */
void cli_print_table(FILE *out, const coffer_node *list);
/* The same list as comma-separated values (RFC 4180, with line feeds): a header line, then whole values
 * without units. A map inside a row gives one column for each of its members, "map.member"; a list is
 * JSON in one cell. */
int cli_print_csv(FILE *out, const coffer_node *list);
/* The same for all lists in a map, with the list's name in a first column "list". */
int cli_print_csv_lists(FILE *out, const coffer_node *root);
/* A cell of comma-separated values, quoted where it must be. */
void cli_print_csv_cell(FILE *out, const char *text, size_t len);
struct coffer__buffer;
void cli_put_csv_cell(struct coffer__buffer *out, const char *text, size_t len);
/* 0, or CLI_USAGE after a message when both --csv and --json are given. */
int cli_check_output(const cli_args *args);
/* --csv, beside --json. */
/* --damaged for verbs that only read damage that the source reports (coffer_source_keep_damaged). */
extern const char cli_damaged_help[];
#define CLI_DAMAGED_OPTION                                          \
    {                                                               \
        "damaged", 0, "MODE", "stop|keep", cli_damaged_help, "stop" \
    }
/* Before a verb opens its inputs: makes them continue at damage when the option says so. */
int cli_start_damaged(const cli_args *args);
/* Whether the verb stopped at damage, has the option and did not get it: a hint may name it. */
bool cli_offers_damaged(void);
/* Adds the list "damaged" to the JSON of a verb, when there is some. */
void cli_add_damaged(coffer_node *root);
/* After the verb: prints the damage; the exit status is then at least CLI_FINDINGS. */
int cli_finish_damaged(int status);

#define CLI_CSV_OPTION                                                          \
    {                                                                           \
        "csv", 0, NULL, NULL, "print comma-separated values with a header line" \
    }
/* --force, beside --output: no verb overwrites a file without it (cli_check_files). */
#define CLI_FORCE_OPTION                                         \
    {                                                            \
        "force", 'f', NULL, NULL, "overwrite an existing output" \
    }
/* As one line of JSON, or indented when out is a terminal. 0, or CLI_FAILED after a message. */
int cli_print_json(FILE *out, const coffer_node *root);
/* As one line wherever it goes: for one object per line. */
int cli_print_json_line(FILE *out, const coffer_node *root);
/* "PATH TEXT OTHER" without spaces of its own; other may be NULL. */
void cli_print_line(FILE *out, const char *path, const char *text, const char *other);
/* A tree that begins with the file that was read and the one that was written, NULL when it is the same. */
coffer_status cli_begin_rewrite(coffer_node **out, const char *path, const char *output, coffer_error *err);
/* Bytes into a file that appears whole or not at all; path : NULL = standard output. On a terminal what could
 * harm it is shown as escapes. 0, or the exit status after a message. */
int cli_write_out(const char *path, bool replace, const void *bytes, size_t len);
/* The same for a name, a relative path, that comes from a file: it stays below the folder, and no symbolic
 * link there is followed. */
int cli_write_in(const char *folder, const char *name, bool replace, const void *bytes, size_t len);
/* Refuses an output that is also an input, and an --output that exists, unless --force is given: 0, or the
 * exit status after a message. Called for every verb before it runs; what it does not see here, such as files
 * that another file names, is refused by coffer_protect_inputs. */
int cli_check_files(const cli_args *args);
/* Whether --force was given. */
bool cli_overwrites(void);
/* Whether a path is "-", a pipe or a device: what is written to it cannot be read again, and messages must
 * not be mixed into it. */
bool cli_is_stream(const char *path);
/* Whether two paths lead to one file. */
bool cli_same_file(const char *a, const char *b);

/* ---- Findings, as check and repair show them ---- */

/* An indented table: severity, code, offset, text; and how many more there were. */
void cli_print_findings(FILE *out, const coffer_report *report);
/* "coffer: PATH: note: text" on standard error, a line for each. */
void cli_print_notes(const char *path, const coffer_report *notes);
/* Adds the list "notes" with the keys severity and text. */
void cli_add_notes(coffer_node *root, const coffer_report *notes);
/* "2 errors, 1 warning"; "" when there are neither. */
typedef char cli_findings_text[96];
const char *cli_count_findings(cli_findings_text out, const coffer_report *report);

#endif
