/* Unwind rules of x86-64 from .eh_frame, reduced to the few shapes that call sites have. */
#ifndef COFFER_RECORD_EH_H
#define COFFER_RECORD_EH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    COFFER__RECORD_RULE_NONE = 0,   /* no unwind information: try the frame pointer */
    COFFER__RECORD_RULE_SP = 1,     /* CFA = stack pointer + offset */
    COFFER__RECORD_RULE_BP = 2,     /* CFA = frame pointer + offset */
    COFFER__RECORD_RULE_BP_AT = 3,  /* CFA = the word at frame pointer + offset (a realigned stack) */
    COFFER__RECORD_RULE_SIGNAL = 4, /* the kernel's frame of a signal handler */
    COFFER__RECORD_RULE_END = 5     /* the outermost frame */
};

typedef struct coffer__record_rule {
    uint8_t kind;
    bool saves_bp;
    bool bp_by_bp; /* bp_offset counts from the frame pointer instead of the CFA */
    int32_t cfa_offset;
    int32_t bp_offset; /* the caller's frame pointer is at CFA + this, when saves_bp */
} coffer__record_rule;

/* The rule at an address of a loaded module. hdr : its .eh_frame_hdr. Reads mapped memory only, and allocates
 * nothing. */
coffer__record_rule coffer__record_eh_rule(const uint8_t *hdr, uintptr_t pc);

#endif
