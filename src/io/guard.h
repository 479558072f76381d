/* The SIGBUS handler of mapped sources. A page that a mapped file no longer has (it was truncated, or the
 * disk failed) becomes zeros, and the mapping is marked: its reader asks before it trusts what it computed.
 */
#ifndef COFFER_IO_GUARD_H
#define COFFER_IO_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Guards a mapping. Returns its slot, or −1 when all are in use. */
int coffer__guard_add(const void *base, size_t len);
/* True when zeros have replaced some of its pages. */
bool coffer__guard_damaged(int slot);
/* Must be called before the mapping is removed. */
void coffer__guard_remove(int slot);

#endif
