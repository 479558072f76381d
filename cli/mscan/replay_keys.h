/* The keyboard while something moves on the terminal: single keys without waiting for a line, and a terminal
 * that is put right again whatever ends it. */
#ifndef COFFER_CLI_REPLAY_KEYS_H
#define COFFER_CLI_REPLAY_KEYS_H

#include <stdbool.h>

typedef enum replay_key { KEY_NONE, KEY_QUIT, KEY_PAUSE, KEY_NEXT, KEY_PREVIOUS } replay_key;

/* Reads keys when standard input is a terminal, and hides the cursor. */
void replay_keys_begin(void);
/* Waits for a key, at most that long (−1 = for ever). A signal is KEY_QUIT. */
replay_key replay_keys_wait(int milliseconds);
/* Puts the terminal right; then a signal that came in between does what it always does. */
void replay_keys_end(void);

#endif
