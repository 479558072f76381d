#include "outside/profiles/pickle.h"

#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_NONE = 'N',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_TUPLE = ')',
    OP_PROTO = 0x80,
    OP_NEWOBJ = 0x81,
    OP_TUPLE1 = 0x85,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95
};
enum { PROTOCOL_MIN = 2, PROTOCOL_MAX = 5 };

typedef struct machine {
    coffer__pickle *out;
    coffer__cursor cursor;
    uint64_t op_at; /* offset of the opcode */
    uint8_t op;
    coffer_error *err;
} machine;

static coffer_status fail(const machine *run, const char *what)
{
    return coffer__fail(run->err, COFFER_E_BAD_VALUE, run->op_at,
                        "opcode 0x%02x at offset %" PRIu64 " of the pickle: %s", run->op, run->op_at, what);
}

/* ---- Values and the stack ---- */

static coffer_status push(machine *run, uint32_t value)
{
    coffer__pickle *out = run->out;
    coffer_status status = coffer__array_reserve_one(&out->stack, &out->stack_capacity, out->depth,
                                                     sizeof *out->stack, run->err);
    if (!status)
        out->stack[out->depth++] = value;
    return status;
}

static coffer_status push_new(machine *run, coffer__pickle_value value)
{
    coffer__pickle *out = run->out;
    coffer_status status = coffer__array_reserve_one(&out->values, &out->value_capacity, out->value_count,
                                                     sizeof *out->values, run->err);
    if (status)
        return status;
    out->values[out->value_count++] = value;
    return push(run, (uint32_t)(out->value_count - 1));
}

/* The first item above the last mark; items below a mark cannot be taken. */
static size_t floor_of(const coffer__pickle *out)
{
    return out->mark_count ? out->marks[out->mark_count - 1] : 0;
}

static bool has(const coffer__pickle *out, size_t count)
{
    return out->depth - floor_of(out) >= count;
}

static bool take_mark(size_t *first, coffer__pickle *out)
{
    *first = floor_of(out);
    return out->mark_count > 0 && out->mark_count-- > 0;
}

/* Moves the stack from `first` on into the items; *at is where they begin. */
static coffer_status take_items(uint32_t *at, machine *run, size_t first)
{
    coffer__pickle *out = run->out;
    coffer_status status = COFFER_OK;
    *at = (uint32_t)out->item_count;
    for (size_t i = first; i < out->depth && !status; i++) {
        status = coffer__array_reserve_one(&out->items, &out->item_capacity, out->item_count,
                                           sizeof *out->items, run->err);
        if (!status)
            out->items[out->item_count++] = out->stack[i];
    }
    out->depth = first;
    return status;
}

static coffer_status make_tuple(machine *run, size_t first)
{
    uint32_t at, count = (uint32_t)(run->out->depth - first);
    coffer_status status = take_items(&at, run, first);
    return status ? status
                  : push_new(run, (coffer__pickle_value){
                                      .kind = COFFER__PICKLE_TUPLE, .first = at, .count = count });
}

/* Adds the items from `first` on to the container below them. */
static coffer_status add_run(machine *run, size_t first, coffer__pickle_kind kind)
{
    coffer__pickle *out = run->out;
    uint32_t at, count = (uint32_t)(out->depth - first);
    if (first == 0 || first - 1 < floor_of(out) || out->values[out->stack[first - 1]].kind != kind ||
        (kind == COFFER__PICKLE_DICT && count % 2 != 0))
        return fail(run, "it adds to something else than a container of its kind");
    coffer__pickle_value *to = &out->values[out->stack[first - 1]];
    coffer_status status = take_items(&at, run, first);
    if (!status)
        status = coffer__array_reserve_one(&out->runs, &out->run_capacity, out->run_count, sizeof *out->runs,
                                           run->err);
    if (status)
        return status;
    out->runs[out->run_count++] = (coffer__pickle_run){ at, count, 0 };
    if (to->count)
        out->runs[to->count - 1].next = (uint32_t)out->run_count;
    else
        to->first = (uint32_t)out->run_count;
    to->count = (uint32_t)out->run_count;
    to->number += count;
    return COFFER_OK;
}

/* ---- Opcodes ---- */

static coffer_status push_int(machine *run, uint64_t number)
{
    return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_INT, .number = number });
}

/* A little-endian integer of any length; at most 8 bytes are read. */
static coffer_status push_long(machine *run)
{
    uint8_t len = coffer__cursor_u8(&run->cursor);
    const uint8_t *bytes = coffer__cursor_bytes(&run->cursor, len);
    uint64_t number = bytes && len > 0 && bytes[len - 1] & 0x80 ? UINT64_MAX : 0;
    if (len > sizeof number)
        return fail(run, "an integer of more than 64 bits");
    for (size_t i = len; bytes && i-- > 0;)
        number = number << 8 | bytes[i];
    return push_int(run, number);
}

static coffer_status push_text(machine *run, uint64_t len)
{
    uint64_t at = coffer__cursor_offset(&run->cursor);
    if (len > UINT32_MAX || len > coffer__cursor_left(&run->cursor))
        return fail(run, "a text that passes the end of the file");
    coffer__cursor_skip(&run->cursor, (size_t)len);
    return push_new(run, (coffer__pickle_value){
                             .kind = COFFER__PICKLE_TEXT, .number = at, .count = (uint32_t)len });
}

/* The line up to the next end of line, as a text. */
static coffer_status push_line(machine *run)
{
    const uint8_t *end = memchr(run->cursor.at, '\n', coffer__cursor_left(&run->cursor));
    coffer_status status =
        end ? push_text(run, (uint64_t)(end - run->cursor.at)) : fail(run, "a name without an end");
    coffer__cursor_skip(&run->cursor, 1);
    return status;
}

static coffer_status make_class(machine *run)
{
    coffer__pickle *out = run->out;
    if (!has(out, 2))
        return fail(run, "a class without a name");
    uint32_t module = out->stack[out->depth - 2], name = out->stack[out->depth - 1];
    if (out->values[module].kind != COFFER__PICKLE_TEXT || out->values[name].kind != COFFER__PICKLE_TEXT)
        return fail(run, "a class whose name is not a text");
    out->depth -= 2;
    return push_new(run,
                    (coffer__pickle_value){ .kind = COFFER__PICKLE_CLASS, .first = module, .count = name });
}

static coffer_status make_object(machine *run)
{
    coffer__pickle *out = run->out;
    if (!has(out, 2) || out->values[out->stack[out->depth - 2]].kind != COFFER__PICKLE_CLASS ||
        out->values[out->stack[out->depth - 1]].kind != COFFER__PICKLE_TUPLE)
        return fail(run, "an object without a class");
    uint32_t class = out->stack[out->depth - 2];
    out->depth -= 2;
    return push_new(run, (coffer__pickle_value){
                             .kind = COFFER__PICKLE_OBJECT, .first = class, .count = COFFER__PICKLE_NONE });
}

static coffer_status set_state(machine *run)
{
    coffer__pickle *out = run->out;
    if (!has(out, 2) || out->values[out->stack[out->depth - 2]].kind != COFFER__PICKLE_OBJECT)
        return fail(run, "a state without an object");
    out->values[out->stack[out->depth - 2]].count = out->stack[out->depth - 1];
    out->depth--;
    return COFFER_OK;
}

/* Picklers number what they remember in sequence. */
static coffer_status remember(machine *run, uint64_t number)
{
    coffer__pickle *out = run->out;
    if (!has(out, 1) || number > out->memo_count)
        return fail(run, "the number of what it remembers is not the next one");
    coffer_status status = coffer__array_reserve_one(&out->memo, &out->memo_capacity, out->memo_count,
                                                     sizeof *out->memo, run->err);
    if (status)
        return status;
    out->memo[number] = out->stack[out->depth - 1];
    out->memo_count += number == out->memo_count;
    return COFFER_OK;
}

static coffer_status recall(machine *run, uint64_t number)
{
    return number < run->out->memo_count ? push(run, run->out->memo[number])
                                         : fail(run, "it recalls what was not remembered");
}

static coffer_status set_mark(machine *run)
{
    coffer__pickle *out = run->out;
    coffer_status status = coffer__array_reserve_one(&out->marks, &out->mark_capacity, out->mark_count,
                                                     sizeof *out->marks, run->err);
    if (!status)
        out->marks[out->mark_count++] = (uint32_t)out->depth;
    return status;
}

static coffer_status run_marked(machine *run)
{
    size_t first;
    if (!take_mark(&first, run->out))
        return fail(run, "it needs a mark");
    if (run->op == OP_TUPLE)
        return make_tuple(run, first);
    return add_run(run, first, run->op == OP_APPENDS ? COFFER__PICKLE_LIST : COFFER__PICKLE_DICT);
}

static coffer_status run_single(machine *run, size_t items, coffer__pickle_kind kind)
{
    return has(run->out, items) ? add_run(run, run->out->depth - items, kind)
                                : fail(run, "the stack has too few items");
}

static coffer_status run_other(machine *run)
{
    coffer__cursor *cursor = &run->cursor;
    size_t items = (size_t)run->op - OP_TUPLE1 + 1;
    coffer_status status;
    if (run->op >= OP_TUPLE1 && run->op <= OP_TUPLE3)
        return has(run->out, items) ? make_tuple(run, run->out->depth - items)
                                    : fail(run, "the stack has too few items");
    switch (run->op) {
    case OP_PROTO:
        items = coffer__cursor_u8(cursor);
        return items >= PROTOCOL_MIN && items <= PROTOCOL_MAX ? COFFER_OK : fail(run, "an unknown protocol");
    case OP_FRAME:
        coffer__cursor_skip(cursor, sizeof(uint64_t));
        return COFFER_OK;
    case OP_GLOBAL:
        status = push_line(run);
        if (!status)
            status = push_line(run);
        return status ? status : make_class(run);
    case OP_STACK_GLOBAL:
        return make_class(run);
    case OP_NEWOBJ:
        return make_object(run);
    case OP_BUILD:
        return set_state(run);
    case OP_MARK:
        return set_mark(run);
    default:
        return fail(run, "a snapshot of data does not have it, and Coffer does not execute pickles");
    }
}

static coffer_status run_value(machine *run)
{
    coffer__cursor *cursor = &run->cursor;
    switch (run->op) {
    case OP_NONE:
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_NULL });
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_BOOL,
                                                     .number = run->op == OP_NEWTRUE });
    case OP_BININT:
        return push_int(run, (uint64_t)(int64_t)(int32_t)coffer__cursor_u32(cursor));
    case OP_BININT1:
        return push_int(run, coffer__cursor_u8(cursor));
    case OP_BININT2:
        return push_int(run, coffer__cursor_u16(cursor));
    case OP_LONG1:
        return push_long(run);
    case OP_BINFLOAT:
        coffer__cursor_skip(cursor, sizeof(double));
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_FLOAT });
    case OP_SHORT_BINUNICODE:
        return push_text(run, coffer__cursor_u8(cursor));
    case OP_BINUNICODE:
        return push_text(run, coffer__cursor_u32(cursor));
    case OP_BINUNICODE8:
        return push_text(run, coffer__cursor_u64(cursor));
    case OP_EMPTY_TUPLE:
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_TUPLE });
    case OP_EMPTY_LIST:
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_LIST });
    case OP_EMPTY_DICT:
        return push_new(run, (coffer__pickle_value){ .kind = COFFER__PICKLE_DICT });
    case OP_MEMOIZE:
        return remember(run, run->out->memo_count);
    case OP_BINPUT:
        return remember(run, coffer__cursor_u8(cursor));
    case OP_LONG_BINPUT:
        return remember(run, coffer__cursor_u32(cursor));
    case OP_BINGET:
        return recall(run, coffer__cursor_u8(cursor));
    case OP_LONG_BINGET:
        return recall(run, coffer__cursor_u32(cursor));
    case OP_TUPLE:
    case OP_APPENDS:
    case OP_SETITEMS:
        return run_marked(run);
    case OP_APPEND:
        return run_single(run, 1, COFFER__PICKLE_LIST);
    case OP_SETITEM:
        return run_single(run, 2, COFFER__PICKLE_DICT);
    default:
        return run_other(run);
    }
}

/* ---- Public ---- */

bool coffer__pickle_probe(const uint8_t *head, size_t len)
{
    return len > 2 && head[0] == OP_PROTO && head[1] >= PROTOCOL_MIN && head[1] <= PROTOCOL_MAX;
}

coffer_status coffer__pickle_read(coffer__pickle *out, const void *bytes, size_t len, coffer_error *err)
{
    machine run = { .out = out, .cursor = coffer__cursor_over(bytes, len, 0), .err = err };
    *out = (coffer__pickle){ .bytes = bytes, .len = len, .root = COFFER__PICKLE_NONE };
    if (len >= UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, 0, "a pickle of %zu bytes", len);
    coffer_status status = COFFER_OK;
    while (!status) {
        run.op_at = coffer__cursor_offset(&run.cursor);
        run.op = coffer__cursor_u8(&run.cursor);
        if (!run.cursor.failed && run.op == OP_STOP)
            break;
        status = run_value(&run);
        if (run.cursor.failed)
            status = coffer__fail(err, COFFER_E_TRUNCATED, run.op_at,
                                  "the pickle ends at offset %zu, within opcode 0x%02x", len, run.op);
    }
    if (!status && out->depth != 1)
        status = fail(&run, "it ends with a stack that does not have one value");
    if (!status)
        out->root = out->stack[0];
    return status;
}

void coffer__pickle_free(coffer__pickle *pickle)
{
    coffer__free(pickle->values);
    coffer__free(pickle->items);
    coffer__free(pickle->runs);
    coffer__free(pickle->stack);
    coffer__free(pickle->memo);
    coffer__free(pickle->marks);
    *pickle = (coffer__pickle){ .bytes = NULL };
}

bool coffer__pickle_is(const coffer__pickle *pickle, uint32_t value, const char *text)
{
    const coffer__pickle_value *found = coffer__pickle_at(pickle, value);
    size_t len = strlen(text);
    return found->kind == COFFER__PICKLE_TEXT && found->count == len &&
           memcmp(pickle->bytes + found->number, text, len) == 0;
}

uint32_t coffer__pickle_get(const coffer__pickle *pickle, uint32_t dict, const char *key)
{
    if (dict == COFFER__PICKLE_NONE || coffer__pickle_at(pickle, dict)->kind != COFFER__PICKLE_DICT)
        return COFFER__PICKLE_NONE;
    for (uint32_t at = coffer__pickle_at(pickle, dict)->first; at != 0; at = pickle->runs[at - 1].next) {
        const coffer__pickle_run *run = &pickle->runs[at - 1];
        for (uint32_t i = 0; i + 1 < run->count; i += 2) {
            if (coffer__pickle_is(pickle, pickle->items[run->first + i], key))
                return pickle->items[run->first + i + 1];
        }
    }
    return COFFER__PICKLE_NONE;
}

bool coffer__pickle_object(uint32_t *state, const coffer__pickle *pickle, uint32_t value, const char *module,
                           const char *name)
{
    if (value == COFFER__PICKLE_NONE || coffer__pickle_at(pickle, value)->kind != COFFER__PICKLE_OBJECT)
        return false;
    const coffer__pickle_value *object = coffer__pickle_at(pickle, value);
    const coffer__pickle_value *class = coffer__pickle_at(pickle, object->first);
    *state = object->count;
    return coffer__pickle_is(pickle, class->first, module) && coffer__pickle_is(pickle, class->count, name);
}
