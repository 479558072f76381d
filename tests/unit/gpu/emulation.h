/* The emulated module of emulation.cc; a program that contains it does not look for coffer-cuda.so. */
#ifndef COFFER_TESTS_EMULATION_H
#define COFFER_TESTS_EMULATION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Lets an allocation or a copy fail, after as many that succeed; -1 = none. */
extern int emulation_fails_after;

#ifdef __cplusplus
}
#endif

#endif
