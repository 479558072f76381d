/* coffer replay, for scans. */
#include "base/fail.h"
#include "cli.h"
#include "mscan_verbs.h"
#include "replay_frame.h"
#include "term.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

/* The keyboard while something moves on the terminal: single keys without waiting for a line, and a terminal
 * that is put right again whatever ends it. */

typedef enum replay_key { KEY_NONE, KEY_QUIT, KEY_PAUSE, KEY_NEXT, KEY_PREVIOUS } replay_key;

static const int caught_signals[] = { SIGINT, SIGTERM, SIGHUP };
enum { CAUGHT = sizeof caught_signals / sizeof caught_signals[0] };

static volatile sig_atomic_t caught;
static struct sigaction before[CAUGHT];
static struct termios line_mode;
static bool has_keyboard;

static void note_signal(int number)
{
    caught = number;
}

/* Reads keys when standard input is a terminal, and hides the cursor. */
static void replay_keys_begin(void)
{
    struct sigaction action = { .sa_handler = note_signal };
    sigemptyset(&action.sa_mask);
    caught = 0;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught_signals[i], &action, &before[i]);
    has_keyboard = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &line_mode) == 0;
    if (has_keyboard) {
        struct termios key_mode = line_mode;
        key_mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &key_mode);
    }
    fputs("\033[?25l", stdout);
}

/* Arrow keys come as ESC [ A…D. */
static replay_key key_of(const char *bytes, ssize_t len)
{
    if (len >= 3 && bytes[0] == '\033' && bytes[1] == '[')
        return bytes[2] == 'C' || bytes[2] == 'B'   ? KEY_NEXT
               : bytes[2] == 'D' || bytes[2] == 'A' ? KEY_PREVIOUS
                                                    : KEY_NONE;
    switch (len > 0 ? bytes[0] : 0) {
    case 'q':
    case 'Q':
    case 4: /* Ctrl-D */
        return KEY_QUIT;
    case ' ':
        return KEY_PAUSE;
    case 'n':
        return KEY_NEXT;
    case 'p':
        return KEY_PREVIOUS;
    default:
        return KEY_NONE;
    }
}

/* Waits for a key, at most that long (−1 = for ever). A signal is KEY_QUIT. */
static replay_key replay_keys_wait(int milliseconds)
{
    struct pollfd keyboard = { .fd = has_keyboard ? STDIN_FILENO : -1, .events = POLLIN };
    char bytes[8];
    if (caught)
        return KEY_QUIT;
    int ready = poll(&keyboard, 1, milliseconds);
    if (caught || ready < 0)
        return KEY_QUIT;
    if (ready == 0)
        return KEY_NONE;
    ssize_t len = read(STDIN_FILENO, bytes, sizeof bytes);
    return len <= 0 ? KEY_QUIT : key_of(bytes, len);
}

/* Puts the terminal right; then a signal that came in between does what it always does. */
static void replay_keys_end(void)
{
    fputs("\033[?25h", stdout);
    fflush(stdout);
    if (has_keyboard)
        tcsetattr(STDIN_FILENO, TCSANOW, &line_mode);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught_signals[i], &before[i], NULL);
    if (caught)
        raise(caught);
}

enum { DEFAULT_TOP = 8, DEFAULT_DELAY = 150, LONGEST_DELAY = 3600 * 1000 };

static const cli_option options[] = {
    { "from", 0, "TOKEN", NULL, "first token", "0, or the last one with --backwards" },
    { "to", 0, "TOKEN", NULL, "last token" },
    { "backwards", 'b', NULL, NULL, "from the end to the beginning" },
    { "delay", 'd', "MS", NULL, "on a terminal: milliseconds between tokens", "150" },
    { "by", 0, "WHAT", "param|block", "one bar for each", "param" },
    { "metric", 'm', "NAME", "activation|grad_norm", "value of the bars", "activation" },
    { "top", 'n', "N", NULL, "number of bars per token, the largest first", "8" },
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct replay_player {
    coffer_mscan_replay *replay;
    replay_frame *frame;
    uint64_t first, last; /* tokens, in the order in which they are shown */
    bool backwards;
    bool moving; /* redraws in place, with a delay */
    bool paused;
    int delay;
    size_t sequence; /* whose opening line was printed last */
    unsigned drawn;  /* lines to draw over */
} replay_player;

static void show(replay_player *player, const coffer_mscan_step *step)
{
    if (player->moving)
        fputs(TERM_NO_WRAP, stdout);
    if (player->moving && player->drawn)
        fprintf(stdout, "\033[%uA\033[J", player->drawn);
    if (step->sequence != player->sequence) {
        replay_frame_print_sequence(player->frame, step->sequence, stdout);
        player->sequence = step->sequence;
    }
    player->drawn = replay_frame_print_step(player->frame, step, stdout);
    if (player->moving) {
        fputs(TERM_WRAP, stdout);
        fflush(stdout);
    }
}

/* Moves *token by one, within what is shown; false at the end. */
static bool move(uint64_t *token, const replay_player *player, bool backwards)
{
    if (*token == (backwards == player->backwards ? player->last : player->first))
        return false;
    *token += backwards ? UINT64_MAX : 1;
    return true;
}

/* The token after this one, by the clock or by hand; false when the replay is over. */
static bool choose_next(uint64_t *token, replay_player *player)
{
    if (!player->moving)
        return move(token, player, player->backwards);
    for (;;) {
        replay_key key = replay_keys_wait(player->paused ? -1 : player->delay);
        if (key == KEY_QUIT)
            return false;
        if (key == KEY_PAUSE)
            player->paused = !player->paused;
        if (key == KEY_NONE && !player->paused)
            return move(token, player, player->backwards);
        if (key == KEY_NEXT || key == KEY_PREVIOUS) {
            player->paused = true;
            if (move(token, player, key == KEY_PREVIOUS))
                return true;
        }
    }
}

static coffer_status play(replay_player *player, coffer_error *err)
{
    uint64_t token = player->first;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    bool more;
    do {
        coffer_status status = coffer_mscan_replay_seek(player->replay, token, err);
        if (!status)
            status = coffer_mscan_replay_next(&more, &step, player->replay, err);
        if (status)
            return status;
        show(player, &step);
    } while (!ferror(stdout) && choose_next(&token, player));
    return COFFER_OK;
}

static int parse(replay_player *player, replay_look *look, const cli_args *args, const coffer_mscan *scan)
{
    uint64_t end = coffer_mscan_total_tokens(scan) - 1, delay, top;
    player->backwards = cli_has(args, "backwards");
    player->moving = term_is_terminal(stdout) && term_has_color(stdout);
    look->by_block = cli_choice(args, "by", 0) == 1;
    look->metric = (coffer_mscan_metric)cli_choice(args, "metric", COFFER_MSCAN_ACTIVATION);
    if (!cli_number(&player->first, args, "from", player->backwards ? end : 0, 0, end) ||
        !cli_number(&player->last, args, "to", player->backwards ? 0 : end, 0, end) ||
        !cli_number(&delay, args, "delay", DEFAULT_DELAY, 0, LONGEST_DELAY) ||
        !cli_number(&top, args, "top", DEFAULT_TOP, 1, 1000))
        return CLI_USAGE;
    if (player->backwards ? player->first < player->last : player->first > player->last)
        return cli_usage(args, "--from %" PRIu64 " --to %" PRIu64 "%s: there is nothing between them",
                         player->first, player->last, player->backwards ? " --backwards" : "");
    player->delay = (int)delay;
    look->top = (size_t)top;
    if (player->moving && look->top > term_height(stdout) - 2)
        look->top = term_height(stdout) - 2;
    return CLI_OK;
}

/* The longest bar is the largest value of the scan, so that tokens can be compared by eye. */
static coffer_status find_largest(double *out, const coffer_mscan *scan, coffer_mscan_metric metric,
                                  coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    term_progress bar;
    term_progress_start(&bar, "reading", "records");
    query.progress = &bar.progress;
    coffer_status status = coffer_mscan_stats_new(&stats, scan, &query, err);
    term_progress_end(&bar);
    if (!status)
        *out = coffer_mscan_stats_total(stats)->column[metric].max;
    coffer_mscan_stats_free(stats);
    return status;
}

static int run_on(const cli_args *args, const coffer_mscan *scan)
{
    coffer_error err = COFFER_ERROR_INIT;
    replay_player player = { .sequence = COFFER_INDEX_NONE };
    replay_look look = { 0 };
    int result = parse(&player, &look, args, scan);
    if (result != CLI_OK)
        return result;
    coffer_status status = find_largest(&look.full_bar, scan, look.metric, &err);
    if (!status)
        status = coffer_mscan_replay_new(&player.replay, scan, NULL, &err);
    if (!status && !(player.frame = replay_frame_new(scan, &look)))
        status = coffer__fail_no_memory(&err, sizeof look);
    if (!status) {
        if (player.moving)
            replay_keys_begin();
        status = play(&player, &err);
        if (player.moving)
            replay_keys_end();
    }
    replay_frame_free(player.frame);
    coffer_mscan_replay_free(player.replay);
    return status == COFFER_OK ? cli_finish(CLI_OK) : cli_fail(cli_operand(args, 0), &err, NULL);
}

static int run_if_any(const cli_args *args, const coffer_mscan *scan)
{
    if (coffer_mscan_total_tokens(scan) > 0)
        return run_on(args, scan);
    fputs("the scan has no tokens\n", stdout);
    return CLI_OK;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mscan_with_scan(args, src, run_if_any);
}

const cli_format_verb cli_mscan_replay = {
    .format = "mscan",
    .verb = "replay",
    .options = options,
    .examples = "  coffer replay scan.mscan                       # space pauses, arrows step, q ends\n"
                "  coffer replay scan.mscan --from 100 --delay 500 --by block\n"
                "  coffer replay scan.mscan --backwards --top 3 | less\n",
    .run = run,
};
