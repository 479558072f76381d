#include "replay_keys.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

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

void replay_keys_begin(void)
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

replay_key replay_keys_wait(int milliseconds)
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

void replay_keys_end(void)
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
