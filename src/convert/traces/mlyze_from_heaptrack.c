/* Converts heaptrack's recordings event by event. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define ADDRESS_STEP 16
#define NO_BLOCK UINT32_MAX

/* A kind of allocation, "a SIZE TRACE", and the live ones of it. */
typedef struct alloc_kind {
    uint64_t size, stack;
    uint32_t newest; /* block, or NO_BLOCK */
} alloc_kind;

typedef struct recording {
    coffer__packed_lines lines;
    coffer__mlyze_import import;
    coffer__heaptrack_stacks stacks;
    uint64_t format, page_size, time;
    bool raw;
    bool in_command; /* the next line may continue a command of several lines */
    bool created;    /* the trace is created: metadata records come before the first record with a name */
    coffer__buffer command, program;
    alloc_kind *kinds;
    size_t kind_count, kind_capacity;
    /* Interpreted files have no addresses, so a block gets one: its number. Blocks of one kind are a list,
     * freed ones are another. */
    uint32_t *next_block;
    size_t block_count, block_capacity;
    uint32_t free_block;
} recording;

static coffer_status fail_line(const recording *from, coffer_error *err)
{
    return coffer__packed_lines_fail(&from->lines, err, COFFER_E_BAD_VALUE,
                                     "a record '%c' whose numbers cannot be read", from->lines.text[0]);
}

/* ---- The head ---- */

static coffer_status take_version(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    const uint64_t first_version = 0x10200; /* wrote format 1 without naming it */
    uint64_t version = 0;
    if (!coffer__heaptrack_hex(&version, &line))
        return fail_line(from, err);
    if (!coffer__heaptrack_hex(&from->format, &line))
        from->format = version == first_version;
    if (from->format > COFFER__HEAPTRACK_NEWEST)
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_UNSUPPORTED_VERSION,
                                         "format %" PRIu64 ", only formats up to %d are supported",
                                         from->format, COFFER__HEAPTRACK_NEWEST);
    return COFFER_OK;
}

static coffer_status take_module(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    const char *name;
    size_t len;
    uint64_t base = 0, segment, size, begin = UINT64_MAX, end = 0;
    from->raw = true;
    if (!coffer__heaptrack_text(&name, &len, &line, from->format >= 3))
        return fail_line(from, err);
    if (len == 1 && name[0] == '-') {
        coffer__heaptrack_modules_clear(&from->stacks.modules);
        return COFFER_OK;
    }
    if (!coffer__heaptrack_hex(&base, &line))
        return fail_line(from, err);
    while (coffer__heaptrack_hex(&segment, &line) && coffer__heaptrack_hex(&size, &line)) {
        uint64_t from_here, to_here;
        if (!coffer__add_u64(&from_here, base, segment) || !coffer__add_u64(&to_here, from_here, size))
            return coffer__packed_lines_fail(&from->lines, err, COFFER_E_OUT_OF_BOUNDS,
                                             "a segment ends past 2^64");
        begin = from_here < begin ? from_here : begin;
        end = to_here > end ? to_here : end;
    }
    if (begin >= end)
        return COFFER_OK;
    if (len == 1 && name[0] == 'x') {
        name = coffer__buffer_text(&from->program);
        len = from->program.len;
    }
    return coffer__heaptrack_modules_add(&from->stacks.modules, name, len, base, begin, end, err);
}

static coffer_status keep_text(coffer__buffer *out, const char *text, const char *end, coffer_error *err)
{
    out->len = 0;
    coffer__buffer_append(out, text, (size_t)(end - text));
    return out->failed ? coffer__fail_no_memory(err, (size_t)(end - text)) : COFFER_OK;
}

/* Records after the command are a letter, a space and a number, a module or a suppression. Any other line
 * belongs to the command: python3 -c takes whole programs. */
static bool goes_on_with_command(const recording *from)
{
    const char *text = from->lines.text;
    if (!from->in_command)
        return false;
    if (from->lines.len < 3 || !strchr("ISmsita+-cR", text[0]) || text[1] != ' ')
        return true;
    bool is_module = text[0] == 'm' && strchr("x-/", text[2]);
    return !is_module && text[0] != 'S' && !isxdigit((unsigned char)text[2]);
}

static coffer_status add_to_command(recording *from, coffer_error *err)
{
    coffer__buffer_append(&from->command, "\n", 1);
    coffer__buffer_append(&from->command, from->lines.text, from->lines.len);
    return from->command.failed ? coffer__fail_no_memory(err, from->lines.len) : COFFER_OK;
}

static coffer_status take_program(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    const char *text;
    size_t len;
    from->raw = true;
    if (!coffer__heaptrack_text(&text, &len, &line, from->format >= 3))
        return fail_line(from, err);
    return keep_text(&from->program, text, text + len, err);
}

static coffer_status create(recording *from, coffer_error *err)
{
    if (from->created)
        return COFFER_OK;
    from->created = true;
    coffer__json_key(&from->import.json, "version");
    coffer__json_write_u64(&from->import.json, from->format);
    coffer__json_key(&from->import.json, "interpreted");
    coffer__json_write_bool(&from->import.json, !from->raw);
    return coffer__mlyze_import_create(&from->import, coffer__buffer_text(&from->command), from->command.len,
                                       0, err);
}

/* ---- Events ---- */

static coffer_status take_kind(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    alloc_kind kind = { 0, 0, NO_BLOCK };
    uint64_t trace;
    if (!coffer__heaptrack_hex(&kind.size, &line) || !coffer__heaptrack_hex(&trace, &line))
        return fail_line(from, err);
    coffer_status status = coffer__heaptrack_stack(&kind.stack, &from->stacks, trace, err);
    if (!status)
        status = coffer__array_reserve_one(&from->kinds, &from->kind_capacity, from->kind_count,
                                           sizeof *from->kinds, err);
    if (!status)
        from->kinds[from->kind_count++] = kind;
    return status;
}

static coffer_status find_kind(alloc_kind **out, recording *from, coffer__heaptrack_line line,
                               coffer_error *err)
{
    uint64_t number;
    if (!coffer__heaptrack_hex(&number, &line))
        return fail_line(from, err);
    if (number >= from->kind_count)
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_DANGLING_REFERENCE,
                                         "kind of allocation %" PRIu64 ", there are %zu so far", number,
                                         from->kind_count);
    *out = &from->kinds[number];
    return COFFER_OK;
}

static coffer_status new_block(uint32_t *out, recording *from, coffer_error *err)
{
    if (from->free_block != NO_BLOCK) {
        *out = from->free_block;
        from->free_block = from->next_block[*out];
        return COFFER_OK;
    }
    if (from->block_count == NO_BLOCK)
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_LIMIT, "%zu blocks are live at once",
                                         from->block_count);
    coffer_status status = coffer__array_reserve_one(&from->next_block, &from->block_capacity,
                                                     from->block_count, sizeof *from->next_block, err);
    if (!status)
        *out = (uint32_t)from->block_count++;
    return status;
}

static uint64_t address_of(uint32_t block)
{
    return ((uint64_t)block + 1) * ADDRESS_STEP;
}

static coffer_status take_alloc(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    uint64_t size, trace, address, stack;
    uint32_t block = NO_BLOCK;
    alloc_kind *kind = NULL;
    coffer_status status;
    if (from->raw || from->format == 0) {
        if (!coffer__heaptrack_hex(&size, &line) || !coffer__heaptrack_hex(&trace, &line) ||
            !coffer__heaptrack_hex(&address, &line))
            return fail_line(from, err);
        status = coffer__heaptrack_stack(&stack, &from->stacks, trace, err);
        return status ? status
                      : coffer_mlyze_writer_put_alloc(from->import.writer, from->time, address, size, stack,
                                                      0, err);
    }
    status = find_kind(&kind, from, line, err);
    if (!status)
        status = new_block(&block, from, err);
    if (status)
        return status;
    from->next_block[block] = kind->newest;
    kind->newest = block;
    return coffer_mlyze_writer_put_alloc(from->import.writer, from->time, address_of(block), kind->size,
                                         kind->stack, 0, err);
}

/* The file does not say which block of a kind is freed. The newest one, so that temporary allocations match
 * heaptrack's. */
static coffer_status take_free(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    uint64_t address;
    alloc_kind *kind = NULL;
    if (from->raw || from->format == 0) {
        if (!coffer__heaptrack_hex(&address, &line))
            return fail_line(from, err);
        return coffer_mlyze_writer_put_free(from->import.writer, from->time, address, err);
    }
    coffer_status status = find_kind(&kind, from, line, err);
    if (status)
        return status;
    if (kind->newest == NO_BLOCK)
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_INCONSISTENT,
                                         "a release of a kind of which no block is live");
    uint32_t block = kind->newest;
    kind->newest = from->next_block[block];
    from->next_block[block] = from->free_block;
    from->free_block = block;
    return coffer_mlyze_writer_put_free(from->import.writer, from->time, address_of(block), err);
}

static coffer_status take_time(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    uint64_t time;
    if (!coffer__heaptrack_hex(&time, &line))
        return fail_line(from, err);
    if (!coffer__mul_u64(&time, time, 1000))
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_OUT_OF_BOUNDS,
                                         "a time that does not fit 64 bits in microseconds");
    if (time > from->time)
        from->time = time;
    return COFFER_OK;
}

/* A plain trace has no such event. */
static coffer_status take_resident(recording *from, coffer__heaptrack_line line, coffer_error *err)
{
    uint64_t pages, bytes, nothing = 0;
    uint16_t no_thread = 0;
    uint8_t type = COFFER_MLYZE_RSS;
    if (!coffer__heaptrack_hex(&pages, &line))
        return fail_line(from, err);
    if (coffer__job_has(from->import.job, "plain") || !coffer__mul_u64(&bytes, pages, from->page_size))
        return COFFER_OK;
    coffer_mlyze_events event = { 0, 1, &from->time, &nothing, &bytes, &nothing, &no_thread, &type, 0 };
    return coffer_mlyze_writer_put_events(from->import.writer, &event, err);
}

static coffer_status mark_attached(recording *from, coffer_error *err)
{
    static const char name[] = "heaptrack attached";
    uint64_t id;
    coffer_status status = coffer__mlyze_import_function(&id, &from->import, name, sizeof name - 1, err);
    return status ? status : coffer_mlyze_writer_put_marker(from->import.writer, from->time, id, err);
}

/* ---- All records ---- */

static coffer_status take_head(bool *taken, recording *from, char type, coffer__heaptrack_line line,
                               coffer_error *err)
{
    uint64_t pages;
    *taken = true;
    switch (type) {
    case '#':
    case 'S': /* suppressions, for heaptrack's own list of leaks */
        return COFFER_OK;
    case 'v':
        return take_version(from, line, err);
    case 'X':
        from->in_command = true;
        return keep_text(&from->command, line.at, line.end, err);
    case 'x':
        return take_program(from, line, err);
    case 'm':
        return take_module(from, line, err);
    case 'I':
        return coffer__heaptrack_hex(&from->page_size, &line) && coffer__heaptrack_hex(&pages, &line)
                   ? COFFER_OK
                   : fail_line(from, err);
    default:
        *taken = false;
        return COFFER_OK;
    }
}

static coffer_status take_record(recording *from, char type, coffer__heaptrack_line line, coffer_error *err)
{
    switch (type) {
    case 's':
        return coffer__heaptrack_take_string(&from->stacks, line, from->format >= 3, err);
    case 'i':
        return coffer__heaptrack_take_ip(&from->stacks, line, err);
    case 't':
        return coffer__heaptrack_take_trace(&from->stacks, line, from->raw, err);
    case 'a':
        return take_kind(from, line, err);
    case '+':
        return take_alloc(from, line, err);
    case '-':
        return take_free(from, line, err);
    case 'c':
        return take_time(from, line, err);
    case 'R':
        return take_resident(from, line, err);
    case 'A':
        return mark_attached(from, err);
    default:
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_BAD_VALUE, "unknown record '%c'", type);
    }
}

static coffer_status take_line(recording *from, coffer_error *err)
{
    coffer__heaptrack_line line = coffer__heaptrack_fields(&from->lines);
    char type = from->lines.len ? from->lines.text[0] : '#';
    bool taken;
    if (from->lines.number == 1 && type != 'v')
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_BAD_MAGIC,
                                         "a heaptrack file begins with its version, \"v 10400 3\"");
    if (goes_on_with_command(from))
        return add_to_command(from, err);
    from->in_command = false;
    coffer_status status = take_head(&taken, from, type, line, err);
    if (status || taken)
        return status;
    status = create(from, err);
    return status ? status : take_record(from, type, line, err);
}

static coffer_status take_all(recording *from, coffer_error *err)
{
    for (;;) {
        coffer_status status = coffer__packed_lines_next(&from->lines, err);
        if (status)
            return status;
        if (!from->lines.text)
            break;
        if (!from->lines.whole && coffer__job_has(from->import.job, "partial"))
            break;
        if (!from->lines.whole)
            return coffer__packed_lines_fail(
                &from->lines, err, COFFER_E_TRUNCATED,
                "the file is truncated here (\"partial\" takes the part before)");
        status = take_line(from, err);
        if (status)
            return status;
    }
    if (from->lines.number == 0)
        return coffer__packed_lines_fail(&from->lines, err, COFFER_E_TRUNCATED, "the version is missing");
    coffer_status status = create(from, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_heaptrack(const coffer__convert_job *job, coffer_error *err)
{
    recording from = { .page_size = 4096, .free_block = NO_BLOCK };
    coffer__buffer_init(&from.command, SIZE_MAX);
    coffer__buffer_init(&from.program, SIZE_MAX);
    coffer__buffer_init(&from.stacks.texts, SIZE_MAX);
    coffer__buffer_init(&from.stacks.modules.names, SIZE_MAX);
    from.stacks.import = &from.import;
    from.stacks.lines = &from.lines;
    coffer__mlyze_import_open(&from.import, job, false);
    coffer_status status = coffer__mlyze_import_lines(&from.lines, job, err);
    if (!status) {
        status = take_all(&from, err);
        coffer__packed_lines_close(&from.lines);
    }
    coffer__mlyze_import_close(&from.import);
    coffer__heaptrack_stacks_free(&from.stacks);
    coffer__buffer_free(&from.command);
    coffer__buffer_free(&from.program);
    coffer__free(from.kinds);
    coffer__free(from.next_block);
    return status;
}
