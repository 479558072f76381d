#include "base/natural.h"

#include <stddef.h>
#include <string.h>

static size_t digits_of(const char *text)
{
    return strspn(text, "0123456789");
}

/* Two numbers: the one with more digits, leading zeros aside, is larger. */
static int compare_numbers(const char *a, size_t a_len, const char *b, size_t b_len)
{
    for (; a_len > 1 && *a == '0'; a_len--)
        a++;
    for (; b_len > 1 && *b == '0'; b_len--)
        b++;
    if (a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return memcmp(a, b, a_len);
}

int coffer__natural_compare(const char *a, const char *b)
{
    const char *left = a, *right = b;
    while (*left && *right) {
        size_t left_len = digits_of(left), right_len = digits_of(right);
        if (left_len > 0 && right_len > 0) {
            int order = compare_numbers(left, left_len, right, right_len);
            if (order)
                return order;
            left += left_len;
            right += right_len;
            continue;
        }
        if (*left != *right)
            return (unsigned char)*left < (unsigned char)*right ? -1 : 1;
        left++;
        right++;
    }
    if (*left || *right)
        return *left ? 1 : -1;
    return strcmp(a, b);
}
