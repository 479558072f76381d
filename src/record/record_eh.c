#include "record/record_eh.h"

#include <stddef.h>
#include <string.h>

/* Encodings of pointers (DW_EH_PE). */
enum {
    PE_FORM = 0x0f,
    PE_APPLY = 0x70,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_OMIT = 0xff,
    PE_ABSPTR = 0x00,
    PE_ULEB = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c
};

/* Instructions of call frames (DW_CFA). The first three have an operand in their low six bits. */
enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_ARGS_SIZE = 0x2e
};

enum { OP_DEREF = 0x06, OP_BREG_BP = 0x76 };
enum { REG_BP = 6, REG_SP = 7, REG_RA = 16, REMEMBERED = 8 };

typedef struct reader {
    const uint8_t *at, *end;
    bool failed;
} reader;

static uint64_t take(reader *in, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(in->end - in->at) < size) {
        in->failed = true;
        in->at = in->end;
        return 0;
    }
    memcpy(&value, in->at, size);
    in->at += size;
    return value;
}

static uint64_t take_uleb(reader *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(in, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    in->failed = true;
    return 0;
}

static int64_t take_sleb(reader *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint64_t byte = take(in, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if ((byte & 0x40) && shift < 64)
            value |= ~UINT64_C(0) << shift;
        return (int64_t)value;
    }
    in->failed = true;
    return 0;
}

static uint64_t take_encoded(reader *in, uint8_t encoding, uintptr_t data)
{
    uintptr_t here = (uintptr_t)in->at;
    uint64_t value;
    switch (encoding & PE_FORM) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        value = take(in, 8);
        break;
    case PE_UDATA4:
        value = take(in, 4);
        break;
    case PE_SDATA4:
        value = (uint64_t)(int64_t)(int32_t)(uint32_t)take(in, 4);
        break;
    case PE_UDATA2:
        value = take(in, 2);
        break;
    case PE_SDATA2:
        value = (uint64_t)(int64_t)(int16_t)(uint16_t)take(in, 2);
        break;
    case PE_ULEB:
        value = take_uleb(in);
        break;
    case PE_SLEB:
        value = (uint64_t)take_sleb(in);
        break;
    default:
        in->failed = true;
        return 0;
    }
    if ((encoding & PE_APPLY) == PE_PCREL)
        value += here;
    else if ((encoding & PE_APPLY) == PE_DATAREL)
        value += data;
    return value;
}

/* ---- Entries ---- */

typedef struct entry {
    const uint8_t *start, *end; /* of the instructions */
    uint64_t begin, size;       /* the code */
    uint64_t code_align;
    int64_t data_align;
    uint8_t encoding;
    bool has_augmentation, is_signal;
    const uint8_t *cie_start, *cie_end; /* the initial instructions */
} entry;

static bool open_record(reader *out, const uint8_t **id_at, const uint8_t *record)
{
    reader in = { record, record + 12, false };
    uint64_t len = take(&in, 4);
    if (len == 0xffffffff)
        len = take(&in, 8);
    if (len < 4)
        return false;
    *id_at = in.at;
    *out = (reader){ in.at, in.at + len, false };
    return true;
}

static bool read_cie(entry *out, const uint8_t *record)
{
    reader in;
    const uint8_t *id_at;
    if (!open_record(&in, &id_at, record) || take(&in, 4) != 0)
        return false;
    uint64_t version = take(&in, 1);
    const char *augmentation = (const char *)in.at;
    while (take(&in, 1) != 0)
        if (in.failed)
            return false;
    if (version == 4)
        take(&in, 2);
    out->code_align = take_uleb(&in);
    out->data_align = take_sleb(&in);
    uint64_t return_register = version == 1 ? take(&in, 1) : take_uleb(&in);
    out->encoding = PE_ABSPTR;
    out->has_augmentation = augmentation[0] == 'z';
    if (out->has_augmentation) {
        uint64_t len = take_uleb(&in);
        const uint8_t *after = in.at + len;
        for (const char *c = augmentation + 1; *c; c++) {
            if (*c == 'R')
                out->encoding = (uint8_t)take(&in, 1);
            else if (*c == 'L')
                take(&in, 1);
            else if (*c == 'P')
                take_encoded(&in, (uint8_t)take(&in, 1), 0);
            else if (*c == 'S')
                out->is_signal = true;
        }
        in.at = after;
    }
    out->cie_start = in.at;
    out->cie_end = in.end;
    return !in.failed && return_register == REG_RA && in.at <= in.end;
}

static bool read_fde(entry *out, const uint8_t *record)
{
    reader in;
    const uint8_t *id_at;
    if (!open_record(&in, &id_at, record))
        return false;
    uint64_t id = take(&in, 4);
    if (id == 0 || !read_cie(out, id_at - id))
        return false;
    out->begin = take_encoded(&in, out->encoding, 0);
    out->size = take_encoded(&in, out->encoding & PE_FORM, 0);
    if (out->has_augmentation) {
        uint64_t len = take_uleb(&in);
        in.at += len;
    }
    out->start = in.at;
    out->end = in.end;
    return !in.failed && in.at <= in.end;
}

/* The entry whose code contains pc, by bisection of the sorted table that linkers write. */
static bool find_entry(entry *out, const uint8_t *hdr, uintptr_t pc)
{
    enum { SORTED_TABLE = PE_DATAREL | PE_SDATA4, ROW = 8 };
    reader in = { hdr, hdr + 64, false };
    uint64_t version = take(&in, 1);
    uint8_t frame_encoding = (uint8_t)take(&in, 1), count_encoding = (uint8_t)take(&in, 1);
    uint8_t table_encoding = (uint8_t)take(&in, 1);
    if (version != 1 || count_encoding == PE_OMIT || table_encoding != SORTED_TABLE)
        return false;
    take_encoded(&in, frame_encoding, (uintptr_t)hdr);
    uint64_t count = take_encoded(&in, count_encoding, (uintptr_t)hdr);
    const uint8_t *table = in.at;
    uint64_t low = 0, high = count;
    int64_t wanted = (int64_t)(pc - (uintptr_t)hdr);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int32_t begin;
        memcpy(&begin, table + middle * ROW, sizeof begin);
        if (begin <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (in.failed || low == 0)
        return false;
    int32_t offset;
    memcpy(&offset, table + (low - 1) * ROW + 4, sizeof offset);
    *out = (entry){ 0 };
    return read_fde(out, hdr + offset) && pc >= out->begin && pc - out->begin < out->size;
}

/* ---- Instructions ---- */

typedef struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    bool cfa_is_word, cfa_unknown; /* the word at the frame pointer + offset; anything else */
    bool bp_saved, bp_unknown, bp_by_bp, ra_undefined, ra_moved;
    int64_t bp_offset;
} row;

typedef struct machine {
    row now, initial, remembered[REMEMBERED];
    unsigned depth;
    uint64_t pc;
    bool failed;
} machine;

static void set_offset(machine *m, uint64_t reg, int64_t offset)
{
    if (reg == REG_BP) {
        m->now.bp_saved = true;
        m->now.bp_unknown = m->now.bp_by_bp = false;
        m->now.bp_offset = offset;
    } else if (reg == REG_RA) {
        m->now.ra_undefined = false;
        m->now.ra_moved = offset != -8;
    }
}

static void restore(machine *m, uint64_t reg)
{
    if (reg == REG_BP) {
        m->now.bp_saved = m->initial.bp_saved;
        m->now.bp_unknown = m->initial.bp_unknown;
        m->now.bp_by_bp = m->initial.bp_by_bp;
        m->now.bp_offset = m->initial.bp_offset;
    } else if (reg == REG_RA) {
        m->now.ra_undefined = m->initial.ra_undefined;
        m->now.ra_moved = m->initial.ra_moved;
    }
}

static void set_unknown(machine *m, uint64_t reg)
{
    if (reg == REG_BP)
        m->now.bp_unknown = true;
    else if (reg == REG_RA)
        m->now.ra_moved = true;
}

/* gcc realigns a stack with "the CFA is the word at the frame pointer − n". */
static void define_by_expression(machine *m, reader *in)
{
    uint64_t len = take_uleb(in);
    if (in->failed || len > (uint64_t)(in->end - in->at)) {
        in->failed = true;
        return;
    }
    reader body = { in->at, in->at + len, false };
    in->at += len;
    bool known = take(&body, 1) == OP_BREG_BP;
    int64_t offset = take_sleb(&body);
    known = known && take(&body, 1) == OP_DEREF && body.at == body.end && !body.failed;
    m->now.cfa_is_word = known;
    m->now.cfa_unknown = !known;
    m->now.cfa_offset = offset;
}

static void define(machine *m, uint64_t reg, int64_t offset)
{
    m->now.cfa_register = reg;
    m->now.cfa_offset = offset;
    m->now.cfa_is_word = m->now.cfa_unknown = false;
}

static void skip_block(reader *in)
{
    uint64_t len = take_uleb(in);
    if (len > (uint64_t)(in->end - in->at))
        in->failed = true;
    else
        in->at += len;
}

/* In a realigned frame the caller's frame pointer is where the frame pointer points to. */
static void save_by_expression(machine *m, reader *in, uint64_t reg)
{
    reader body = *in;
    skip_block(in);
    uint64_t len = take_uleb(&body);
    bool known = reg == REG_BP && !in->failed && len > 0 && take(&body, 1) == OP_BREG_BP;
    int64_t offset = take_sleb(&body);
    if (!known || body.at != in->at) {
        set_unknown(m, reg);
        return;
    }
    set_offset(m, reg, offset);
    m->now.bp_by_bp = true;
}

static void push_or_pop(machine *m, bool push)
{
    if (push && m->depth < REMEMBERED)
        m->remembered[m->depth++] = m->now;
    else if (!push && m->depth > 0)
        m->now = m->remembered[--m->depth];
    else
        m->failed = true;
}

static void step_register(machine *m, reader *in, const entry *code, uint8_t op)
{
    uint64_t reg = take_uleb(in);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_offset(m, reg, (int64_t)take_uleb(in) * code->data_align);
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set_offset(m, reg, take_sleb(in) * code->data_align);
        break;
    case CFA_RESTORE_EXTENDED:
        restore(m, reg);
        break;
    case CFA_UNDEFINED:
        if (reg == REG_RA)
            m->now.ra_undefined = true;
        set_unknown(m, reg == REG_RA ? 0 : reg);
        break;
    case CFA_SAME_VALUE:
        if (reg == REG_BP)
            m->now.bp_saved = m->now.bp_unknown = false;
        break;
    case CFA_REGISTER:
        take_uleb(in);
        set_unknown(m, reg);
        break;
    case CFA_EXPRESSION:
        save_by_expression(m, in, reg);
        break;
    case CFA_VAL_EXPRESSION:
        skip_block(in);
        set_unknown(m, reg);
        break;
    case CFA_DEF_CFA:
        define(m, reg, (int64_t)take_uleb(in));
        break;
    case CFA_DEF_CFA_SF:
        define(m, reg, take_sleb(in) * code->data_align);
        break;
    default: /* CFA_DEF_CFA_REGISTER */
        define(m, reg, m->now.cfa_offset);
        break;
    }
}

static void step(machine *m, reader *in, const entry *code, uint8_t op)
{
    switch (op) {
    case CFA_NOP:
        break;
    case CFA_SET_LOC:
        m->pc = take_encoded(in, code->encoding, 0);
        break;
    case CFA_ADVANCE1:
        m->pc += take(in, 1) * code->code_align;
        break;
    case CFA_ADVANCE2:
        m->pc += take(in, 2) * code->code_align;
        break;
    case CFA_ADVANCE4:
        m->pc += take(in, 4) * code->code_align;
        break;
    case CFA_REMEMBER:
    case CFA_RESTORE_STATE:
        push_or_pop(m, op == CFA_REMEMBER);
        break;
    case CFA_DEF_CFA_OFFSET:
        m->now.cfa_offset = (int64_t)take_uleb(in);
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        m->now.cfa_offset = take_sleb(in) * code->data_align;
        break;
    case CFA_DEF_CFA_EXPRESSION:
        define_by_expression(m, in);
        break;
    case CFA_ARGS_SIZE:
        take_uleb(in);
        break;
    default:
        if ((op >= CFA_OFFSET_EXTENDED && op <= CFA_REGISTER) ||
            (op >= CFA_DEF_CFA && op <= CFA_DEF_CFA_REGISTER) ||
            (op >= CFA_EXPRESSION && op <= CFA_DEF_CFA_SF) || op == CFA_VAL_EXPRESSION)
            step_register(m, in, code, op);
        else
            m->failed = true;
    }
}

/* Runs instructions up to the address; the row that holds there is left in m->now. */
static void execute(machine *m, const uint8_t *start, const uint8_t *end, const entry *code, uintptr_t pc)
{
    enum { OPERAND = 0x3f };
    reader in = { start, end, false };
    while (in.at < in.end && !in.failed && !m->failed) {
        row before = m->now;
        uint8_t op = (uint8_t)take(&in, 1);
        uint64_t operand = op & OPERAND;
        switch (op & ~OPERAND) {
        case CFA_ADVANCE:
            m->pc += operand * code->code_align;
            break;
        case CFA_OFFSET:
            set_offset(m, operand, (int64_t)take_uleb(&in) * code->data_align);
            break;
        case CFA_RESTORE:
            restore(m, operand);
            break;
        default:
            step(m, &in, code, op);
        }
        if (m->pc > pc) {
            m->now = before;
            return;
        }
    }
    m->failed |= in.failed;
}

static bool fits(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

coffer__record_rule coffer__record_eh_rule(const uint8_t *hdr, uintptr_t pc)
{
    coffer__record_rule rule = { .kind = COFFER__RECORD_RULE_NONE };
    machine m;
    entry code;
    if (!find_entry(&code, hdr, pc))
        return rule;
    memset(&m, 0, sizeof m);
    m.pc = code.begin;
    execute(&m, code.cie_start, code.cie_end, &code, UINTPTR_MAX);
    m.initial = m.now;
    execute(&m, code.start, code.end, &code, pc);
    const row *now = &m.now;
    if (code.is_signal) {
        rule.kind = COFFER__RECORD_RULE_SIGNAL;
        return rule;
    }
    if (m.failed || now->cfa_unknown || now->ra_moved || !fits(now->cfa_offset) || !fits(now->bp_offset))
        return rule;
    if (now->ra_undefined) {
        rule.kind = COFFER__RECORD_RULE_END;
        return rule;
    }
    if (now->cfa_is_word)
        rule.kind = COFFER__RECORD_RULE_BP_AT;
    else if (now->cfa_register == REG_SP)
        rule.kind = COFFER__RECORD_RULE_SP;
    else if (now->cfa_register == REG_BP)
        rule.kind = COFFER__RECORD_RULE_BP;
    /* A frame pointer that cannot be restored is kept: most callers do not need it. */
    rule.saves_bp = now->bp_saved && !now->bp_unknown;
    rule.bp_by_bp = now->bp_by_bp;
    rule.cfa_offset = (int32_t)now->cfa_offset;
    rule.bp_offset = (int32_t)now->bp_offset;
    return rule;
}
