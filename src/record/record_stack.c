/* Call stacks. A frame is unwound by a rule of .eh_frame, which is computed once for each return address, or
 * else by the frame pointer. Frames that the stack before had too are recognized by their place and are only
 * compared. */
#include "record/record_eh.h"
#include "record/record_thread.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Rules by return address ---- */

enum { CACHE_BITS = 17, RULES = 4096, RULE_NUMBERS = 1 << 16 };

/* Each entry is one word, so that threads need no lock: address << 16 | number of the rule. */
static _Atomic uint64_t cache[1 << CACHE_BITS];
static coffer__record_rule
    rules[RULE_NUMBERS]; /* as many as the cache can number, so that no check is needed */
static _Atomic uint32_t rule_count;

void coffer__record_forget_modules(void)
{
    for (size_t i = 0; i < (size_t)1 << CACHE_BITS; i++)
        atomic_store_explicit(&cache[i], 0, memory_order_relaxed);
    coffer__record_reset_modules();
}

static bool same_rule(const coffer__record_rule *a, const coffer__record_rule *b)
{
    return a->kind == b->kind && a->saves_bp == b->saves_bp && a->bp_by_bp == b->bp_by_bp &&
           a->cfa_offset == b->cfa_offset && a->bp_offset == b->bp_offset;
}

/* Two threads may add the same rule; that costs an entry and nothing else. RULES: the table is full. */
static uint32_t number_of(const coffer__record_rule *rule)
{
    uint32_t count = atomic_load_explicit(&rule_count, memory_order_acquire);
    for (uint32_t i = 0; i < count && i < RULES; i++)
        if (same_rule(&rules[i], rule))
            return i;
    uint32_t number = atomic_fetch_add(&rule_count, 1);
    if (number >= RULES) {
        atomic_store(&rule_count, RULES);
        return RULES;
    }
    rules[number] = *rule;
    return number;
}

static coffer__record_rule make_rule(coffer__record_thread *thread, uintptr_t pc, _Atomic uint64_t *entry)
{
    coffer__record_rule rule = { .kind = COFFER__RECORD_RULE_NONE };
    const uint8_t *hdr = coffer__record_module(thread, pc);
#if defined __x86_64__
    /* A return address may be the first byte of the next function. */
    if (hdr) {
        rule = coffer__record_eh_rule(hdr, pc - 1);
        coffer__record_rule here = coffer__record_eh_rule(hdr, pc);
        if (here.kind == COFFER__RECORD_RULE_SIGNAL)
            rule = here;
    }
#else
    (void)hdr;
#endif
    uint32_t number = number_of(&rule);
    if (number < RULES)
        atomic_store_explicit(entry, pc << 16 | number, memory_order_release);
    return rule;
}

static coffer__record_rule rule_of(coffer__record_thread *thread, uintptr_t pc)
{
    _Atomic uint64_t *entry = &cache[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - CACHE_BITS)];
    uint64_t word = atomic_load_explicit(entry, memory_order_acquire);
    if (COFFER__RECORD_LIKELY(word >> 16 == pc))
        return rules[word & 0xffff];
    return make_rule(thread, pc, entry);
}

/* ---- Reading the stack ---- */

/* The kernel reads the address to answer EINVAL (readable) or EFAULT. */
static bool probe(uintptr_t address)
{
    int saved = errno;
    bool readable = syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) == 0 || errno != EFAULT;
    errno = saved;
    return readable;
}

static bool check_page(coffer__record_thread *thread, uintptr_t address)
{
    enum { PAGE = 4096 };
    uintptr_t page = address & ~(uintptr_t)(PAGE - 1);
    if (address < PAGE || !probe(page))
        return false;
    if (page == thread->readable_high)
        thread->readable_high += PAGE;
    else if (page + PAGE == thread->readable_low)
        thread->readable_low = page;
    else {
        thread->readable_low = page;
        thread->readable_high = page + PAGE;
    }
    return true;
}

static bool load(coffer__record_thread *thread, uintptr_t *out, uintptr_t address)
{
    if (!COFFER__RECORD_LIKELY(address >= thread->readable_low && address < thread->readable_high) &&
        !check_page(thread, address))
        return false;
    if (address & (sizeof(uintptr_t) - 1))
        return false;
    memcpy(out, (const void *)address, sizeof *out);
    return true;
}

/* ---- One step ---- */

static bool step_signal(coffer__record_thread *thread, coffer__record_step *next, coffer__record_step *from)
{
    /* struct ucontext of x86-64: flags, link, stack (3 words), then the registers r8 … */
    enum { REGISTERS = 40, BP = 10, SP = 15, IP = 16 };
    from->bp_at = 1;
    return load(thread, &next->bp, from->sp + REGISTERS + 8 * BP) &&
           load(thread, &next->sp, from->sp + REGISTERS + 8 * SP) &&
           load(thread, &next->pc, from->sp + REGISTERS + 8 * IP);
}

static bool step_by_pointer(coffer__record_thread *thread, coffer__record_step *next,
                            coffer__record_step *from)
{
    enum { FRAME_MAX = 1 << 20 };
    if (from->bp < from->sp || from->bp - from->sp > FRAME_MAX)
        return false;
    from->bp_at = from->bp;
    next->sp = from->bp + 16;
    return load(thread, &next->bp, from->bp) && load(thread, &next->pc, from->bp + 8);
}

static inline bool is_readable(const coffer__record_thread *thread, uintptr_t address)
{
    return address >= thread->readable_low && address < thread->readable_high &&
           (address & (sizeof(uintptr_t) - 1)) == 0;
}

static inline uintptr_t word_at(uintptr_t address)
{
    uintptr_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

/* The caller of a frame; false at the outermost frame and where the stack cannot be followed. */
__attribute__((noinline)) static bool step_slowly(coffer__record_thread *thread, coffer__record_step *next,
                                                  coffer__record_step *from)
{
    coffer__record_rule rule = rule_of(thread, from->pc);
    uintptr_t cfa;
    switch (rule.kind) {
    case COFFER__RECORD_RULE_SP:
        cfa = from->sp + (uintptr_t)(intptr_t)rule.cfa_offset;
        break;
    case COFFER__RECORD_RULE_BP:
        cfa = from->bp + (uintptr_t)(intptr_t)rule.cfa_offset;
        break;
    case COFFER__RECORD_RULE_BP_AT:
        if (!load(thread, &cfa, from->bp + (uintptr_t)(intptr_t)rule.cfa_offset))
            return false;
        break;
    case COFFER__RECORD_RULE_SIGNAL:
        return step_signal(thread, next, from) && next->pc != 0;
    case COFFER__RECORD_RULE_NONE:
        return step_by_pointer(thread, next, from) && next->pc != 0;
    default:
        return false;
    }
    if (cfa <= from->sp || !load(thread, &next->pc, cfa - 8))
        return false;
    next->sp = cfa;
    next->bp = from->bp;
    from->bp_at = 0;
    if (rule.saves_bp) {
        from->bp_at = (rule.bp_by_bp ? from->bp : cfa) + (uintptr_t)(intptr_t)rule.bp_offset;
        if (!load(thread, &next->bp, from->bp_at))
            return false;
    }
    if (rule.kind == COFFER__RECORD_RULE_BP_AT)
        from->bp_at = 1;
    return next->pc != 0;
}

/* The same for frames whose rule is known and simple, which almost all are. */
static inline bool step(coffer__record_thread *thread, coffer__record_step *next, coffer__record_step *from)
{
    _Atomic uint64_t *entry = &cache[(from->pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - CACHE_BITS)];
    uint64_t word = atomic_load_explicit(entry, memory_order_acquire);
    const coffer__record_rule *rule = &rules[word & 0xffff];
    if (word >> 16 != from->pc || rule->kind - 1u > COFFER__RECORD_RULE_BP - 1u || rule->bp_by_bp)
        return step_slowly(thread, next, from);
    uintptr_t base = rule->kind == COFFER__RECORD_RULE_SP ? from->sp : from->bp;
    uintptr_t cfa = base + (uintptr_t)(intptr_t)rule->cfa_offset;
    uintptr_t bp_at = cfa + (uintptr_t)(intptr_t)rule->bp_offset;
    if (cfa <= from->sp || !is_readable(thread, cfa - 8) || (rule->saves_bp && !is_readable(thread, bp_at)))
        return step_slowly(thread, next, from);
    uintptr_t bp = from->bp, pc = word_at(cfa - 8);
    from->bp_at = 0;
    if (rule->saves_bp) {
        from->bp_at = bp_at;
        bp = word_at(bp_at);
    }
    next->pc = pc;
    next->sp = cfa;
    next->bp = bp;
    return pc != 0;
}

/* ---- The stack before ---- */

/* Whether the caller of `from` still is what was found there the last time. */
static bool still(const coffer__record_step *from, const coffer__record_step *caller)
{
    uintptr_t pc, bp;
    if (from->bp_at == 1)
        return false;
    memcpy(&pc, (const void *)(caller->sp - 8), sizeof pc);
    if (pc != caller->pc)
        return false;
    if (from->bp_at == 0)
        return caller->bp == from->bp;
    memcpy(&bp, (const void *)from->bp_at, sizeof bp);
    return bp == caller->bp;
}

/* Moves the steps from `kept` on so that `inner` more fit before them, and room is left after them. */
static void make_room(coffer__record_walk *walk, uint32_t kept, uint32_t inner)
{
    enum { CAPACITY = 2 * COFFER__RECORD_DEPTH_MAX };
    uint32_t from = walk->first + kept, count = walk->count - kept;
    if (from >= inner && from + COFFER__RECORD_DEPTH_MAX - inner <= CAPACITY) {
        walk->first = from - inner;
    } else {
        uint32_t to = inner + (COFFER__RECORD_DEPTH_MAX - inner) / 2;
        memmove(&walk->steps[to], &walk->steps[from], count * sizeof walk->steps[0]);
        walk->first = to - inner;
    }
    memcpy(&walk->steps[walk->first], walk->inner, inner * sizeof walk->steps[0]);
    walk->count = inner + count;
}

static void hash_from(coffer__record_walk *walk, uint32_t last)
{
    coffer__record_step *steps = &walk->steps[walk->first];
    uint64_t hash = last < walk->count ? steps[last].hash : UINT64_C(0x243f6a8885a308d3);
    for (uint32_t i = last; i-- > 0;) {
        hash = (hash ^ steps[i].pc) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        steps[i].hash = hash;
    }
}

/* Walks from the innermost frame, which is in walk->inner[0]; the stack is left in thread->walk. */
static void walk_stack(coffer__record_thread *thread, uint32_t depth)
{
    coffer__record_walk *walk = thread->walk;
    const coffer__record_step *before = &walk->steps[walk->first];
    coffer__record_step *at = walk->inner;
    uint32_t inner = 0, match = 0;
    bool more = true;
    while (more && inner < depth) {
        while (match < walk->count && before[match].sp < at->sp)
            match++;
        if (match < walk->count && before[match].sp == at->sp && before[match].pc == at->pc &&
            before[match].bp == at->bp)
            break;
        more = step(thread, at + 1, at);
        at++;
        inner++;
    }
    uint32_t kept = 0;
    bool reuses = more && inner < depth;
    if (reuses) {
        uint32_t rest = walk->count - match;
        for (kept = 1; kept < rest && inner + kept < depth; kept++)
            if (!still(&before[match + kept - 1], &before[match + kept]))
                break;
    }
    bool whole = reuses && walk->complete && match + kept == walk->count;
    walk->count = reuses ? match + kept : walk->count;
    make_room(walk, reuses ? match : walk->count, inner);
    if (whole) {
        hash_from(walk, inner);
        return;
    }
    coffer__record_step *steps = &walk->steps[walk->first];
    while (more && walk->count < depth) {
        more = step(thread, &steps[walk->count], &steps[walk->count - 1]);
        walk->count += more;
    }
    walk->complete = !more;
    hash_from(walk, walk->count);
}

/* ---- The number of a stack ---- */

/* words : NULL = the frames of thread->walk. */
static bool tell(coffer__record_thread *thread, uint32_t number, uint64_t hash, const uint64_t *words,
                 uint32_t count)
{
    coffer__record_walk *walk = thread->walk;
    const coffer__record_step *steps = &walk->steps[walk->first];
    uint32_t kept = 0, told = walk->told_count;
    while (kept < count && kept < told &&
           walk->told[told - 1 - kept] == (words ? words[count - 1 - kept] : steps[count - 1 - kept].pc))
        kept++;
    uint32_t other = count - kept;
    if (!coffer__record_reserve(thread, 3 + other))
        return false;
    coffer__record_put(thread, (uint64_t)other << 8 | COFFER__RECORD_STACK);
    coffer__record_put(thread, number | (uint64_t)kept << 32);
    coffer__record_put(thread, hash);
    memmove(walk->told + other, walk->told + told - kept, kept * sizeof walk->told[0]);
    for (uint32_t i = 0; i < other; i++) {
        walk->told[i] = words ? words[i] : steps[i].pc;
        coffer__record_put(thread, walk->told[i]);
    }
    walk->told_count = count;
    coffer__record_publish(thread);
    return true;
}

static uint32_t number_stack(coffer__record_thread *thread, uint64_t hash, const uint64_t *words,
                             uint32_t count)
{
    enum { WAYS = 2 };
    uint32_t set = (uint32_t)(hash >> 40) & thread->stack_mask & ~(uint32_t)(WAYS - 1);
    for (uint32_t i = 0; i < WAYS; i++)
        if (COFFER__RECORD_LIKELY(thread->stacks[set + i] == hash))
            return set + i + 1;
    uint32_t number = set + ((uint32_t)hash & (WAYS - 1));
    for (uint32_t i = 0; i < WAYS; i++)
        if (thread->stacks[set + i] == 0)
            number = set + i;
    if (!tell(thread, number + 1, hash, words, count))
        return 0;
    thread->stacks[number] = hash;
    return number + 1;
}

static void walk_from(coffer__record_thread *thread, const void *frame)
{
    coffer__record_step *innermost = thread->walk->inner;
    uintptr_t place = (uintptr_t)frame;
    innermost->bp = word_at(place);
    innermost->pc = word_at(place + 8);
    innermost->sp = place + 16;
    walk_stack(thread, coffer__record_shared->control.depth);
}

/* The native frames up to the innermost Python function; 0 when that cannot be found. */
static uint32_t native_part(coffer__record_thread *thread, const void *frame, uint64_t *out)
{
    walk_from(thread, frame);
    const coffer__record_step *steps = &thread->walk->steps[thread->walk->first];
    for (uint32_t i = 0; i < thread->walk->count; i++) {
        if (coffer__record_python_is_evaluator(steps[i].pc))
            return i;
        out[i] = steps[i].pc;
    }
    return 0;
}

/* Python frames instead of those of the interpreter. 0 = the thread runs no Python. */
static uint32_t python_stack(coffer__record_thread *thread, const void *frame)
{
    const coffer__record_control *control = &coffer__record_shared->control;
    uint64_t python[COFFER__RECORD_DEPTH_MAX], *words = thread->walk->words;
    uint32_t count = 0, frames = coffer__record_python(thread, python, control->depth);
    if (frames == 0)
        return 0;
    if (control->flags & COFFER__RECORD_NATIVE)
        count = native_part(thread, frame, words);
    uint64_t hash = UINT64_C(0x13198a2e03707344);
    memcpy(words + count, python, frames * sizeof *words);
    count += frames;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return number_stack(thread, hash, words, count);
}

uint32_t coffer__record_stack(coffer__record_thread *thread, const void *frame)
{
    if (!thread->stacks || !thread->walk)
        return 0;
    if (coffer__record_shared->control.flags & COFFER__RECORD_PYTHON) {
        uint32_t number = python_stack(thread, frame);
        if (number)
            return number;
    }
    walk_from(thread, frame);
    return number_stack(thread, thread->walk->steps[thread->walk->first].hash, NULL, thread->walk->count);
}
