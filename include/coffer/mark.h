#ifndef COFFER_MARK_H
#define COFFER_MARK_H

/* Markers in a recording of `coffer record`: coffer_mark("epoch 3"). This header needs no library: without
 * the recorder a call does nothing. */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && defined(__ELF__)
/* Defined by the library that `coffer record` preloads. */
extern void coffer_record_mark(const char *name) __attribute__((weak, visibility("default")));

/* name : UTF-8, copied; at most 4096 bytes of it are kept. Thread safety: may run concurrently. */
static inline void coffer_mark(const char *name)
{
    if (coffer_record_mark)
        coffer_record_mark(name);
}
#else
static inline void coffer_mark(const char *name)
{
    (void)name;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
