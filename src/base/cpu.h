/* Which instruction set the kernels may use: what CPU and operating system support, or less when COFFER_CPU
 * says so. */
#ifndef COFFER_BASE_CPU_H
#define COFFER_BASE_CPU_H

typedef enum coffer__cpu_level {
    COFFER__CPU_GENERIC = 0,
    COFFER__CPU_AVX2,
    COFFER__CPU_AVX512,
    COFFER__CPU_NEON,
    COFFER__CPU_NEON_DOT /* with the dot product of bytes: most ARMv8.2 and later */
} coffer__cpu_level;

/* The best level of this machine. */
coffer__cpu_level coffer__cpu_best(void);
/* The level to use. COFFER_CPU=generic|avx2|avx512|neon|neon-dot asks for one; an
 * unsupported or unknown level is ignored. */
coffer__cpu_level coffer__cpu(void);
const char *coffer__cpu_name(coffer__cpu_level level);

/* Loops of a known, small count that the compiler should unroll, so that sums stay in registers. */

#define COFFER__PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define COFFER__UNROLL(count) COFFER__PRAGMA(unroll count)
#elif defined(__GNUC__)
#define COFFER__UNROLL(count) COFFER__PRAGMA(GCC unroll count)
#else
#define COFFER__UNROLL(count)
#endif

#endif
