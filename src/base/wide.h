/* Whole numbers of more than 64 bits. A compiler without them, as those for i386 are, computes with reals of
 * 113 bits instead, which is exact for every product of two counts that a file has room for. */
#ifndef COFFER_BASE_WIDE_H
#define COFFER_BASE_WIDE_H

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 coffer__wide;
#else
__extension__ typedef __float128 coffer__wide;
#endif

#endif
