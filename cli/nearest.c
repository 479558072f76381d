/* Which name was meant: the distance between a word and the names there are. */
#include "args.h"

#include <string.h>

enum { WORD_MAX = 40 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_len];
}

bool cli_is_near(const char *word, size_t distance)
{
    size_t len = strlen(word);
    return distance <= (len < 4 ? 1 : len < 8 ? 2 : 3);
}
