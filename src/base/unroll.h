/* Loops of a known, small count that the compiler should unroll, so that sums stay in registers. */
#ifndef COFFER_BASE_UNROLL_H
#define COFFER_BASE_UNROLL_H

#define COFFER__PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define COFFER__UNROLL(count) COFFER__PRAGMA(unroll count)
#elif defined(__GNUC__)
#define COFFER__UNROLL(count) COFFER__PRAGMA(GCC unroll count)
#else
#define COFFER__UNROLL(count)
#endif

#endif
