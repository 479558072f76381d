#include "base/cpu.h"

#include "coffer/coffer.h"

#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static const char *const names[] = { "generic", "avx2", "avx512", "neon", "neon-dot" };

coffer__cpu_level coffer__cpu_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* These ask for the operating system's support as well: it must save the wide registers. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return COFFER__CPU_GENERIC;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni"))
        return COFFER__CPU_AVX512;
    return COFFER__CPU_AVX2;
#elif defined(__aarch64__)
#if defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? COFFER__CPU_NEON_DOT : COFFER__CPU_NEON;
#elif defined(__ARM_FEATURE_DOTPROD)
    return COFFER__CPU_NEON_DOT;
#else
    return COFFER__CPU_NEON;
#endif
#else
    return COFFER__CPU_GENERIC;
#endif
}

static bool runs_on(coffer__cpu_level level, coffer__cpu_level best)
{
    return level == COFFER__CPU_GENERIC || level == best ||
           (level == COFFER__CPU_AVX2 && best == COFFER__CPU_AVX512) ||
           (level == COFFER__CPU_NEON && best == COFFER__CPU_NEON_DOT);
}

coffer__cpu_level coffer__cpu(void)
{
    coffer__cpu_level best = coffer__cpu_best();
    const char *wanted = getenv("COFFER_CPU");
    if (!wanted)
        return best;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strcmp(wanted, names[i]) && runs_on((coffer__cpu_level)i, best))
            return (coffer__cpu_level)i;
    }
    return best;
}

const char *coffer__cpu_name(coffer__cpu_level level)
{
    return names[level];
}

const char *coffer_cpu(void)
{
    return coffer__cpu_name(coffer__cpu());
}
