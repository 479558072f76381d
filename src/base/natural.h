/* The order in which people count: "layer.2" before "layer.10". */
#ifndef COFFER_BASE_NATURAL_H
#define COFFER_BASE_NATURAL_H

/* Compares two texts like strcmp, but runs of digits by their value. Texts that differ only in leading zeros
 * are ordered like strcmp. */
int coffer__natural_compare(const char *a, const char *b);

#endif
