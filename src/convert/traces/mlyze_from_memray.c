/* Converts captures of memray: its allocations and releases with the stacks of Python. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/sorted.h"
#include "base/table.h"
#include "convert/traces/mlyze_import.h"
#include "outside/profiles/memray.h"

#include <inttypes.h>
#include <string.h>

#define UNRESOLVED (UINT64_MAX - 1)
#define MAPPINGS_MAX ((size_t)1 << 16) /* Linux allows a process this many */

typedef struct python_code {
    uint64_t id, function, file; /* function and file : in the trace */
    int64_t first_line;
    size_t table_at, table_len;
} python_code;

typedef struct pushed_frame {
    uint64_t code, stack; /* stack : id in the trace, UNRESOLVED until a block is allocated there */
    int64_t instruction;
} pushed_frame;

typedef struct python_thread {
    uint64_t id;
    pushed_frame *frames; /* outermost first */
    size_t depth, capacity;
} python_thread;

typedef struct mapping {
    uint64_t begin, end, stack;
    uint16_t thread;
} mapping;

typedef struct memray_import {
    const coffer__convert_job *job;
    coffer__mlyze_import import;
    coffer__memray capture;
    python_code *codes;
    size_t code_count, code_capacity;
    coffer__table code_table, thread_table;
    coffer__buffer tables; /* line tables */
    python_thread *threads;
    size_t thread_count, thread_capacity, current; /* current : SIZE_MAX = none */
    mapping *mappings;                             /* by address */
    size_t mapping_count, mapping_capacity;
    uint64_t time, frames; /* frames : on all stacks */
    uint64_t no_stack;     /* id; UNRESOLVED */
} memray_import;

static coffer_status fail(coffer_error *err, const char *what)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "memray capture: %s", what);
}

/* ---- Code and threads ---- */

static size_t find_code(const memray_import *from, uint64_t id)
{
    coffer__table_probe probe =
        coffer__table_begin(&from->code_table, coffer__table_hash(&from->code_table, &id, sizeof id));
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE && from->codes[found].id != id)
        ;
    return found == COFFER__TABLE_NONE ? SIZE_MAX : found;
}

static coffer_status take_code(memray_import *from, const coffer__memray_record *record, coffer_error *err)
{
    coffer__memray *capture = &from->capture;
    python_code code = { .id = record->id,
                         .first_line = record->instruction,
                         .table_at = from->tables.len,
                         .table_len = capture->table.len };
    if (from->code_count >= from->job->limits.entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %" PRIu64 " code objects",
                            from->job->limits.entries);
    coffer__buffer_append(&from->tables, coffer__buffer_text(&capture->table), capture->table.len);
    if (from->tables.failed)
        return coffer__fail_no_memory(err, from->tables.len);
    coffer_status status =
        coffer__mlyze_import_function(&code.function, &from->import, coffer__buffer_text(&capture->text),
                                      capture->text.len, err);
    if (!status)
        status = coffer__mlyze_import_file(&code.file, &from->import, coffer__buffer_text(&capture->file),
                                           capture->file.len, err);
    size_t known = status ? SIZE_MAX : find_code(from, code.id);
    if (!status && known != SIZE_MAX) {
        from->codes[known] = code;
        return COFFER_OK;
    }
    if (!status)
        status = coffer__array_reserve_one(&from->codes, &from->code_capacity, from->code_count,
                                           sizeof *from->codes, err);
    if (!status)
        status = coffer__table_add(&from->code_table,
                                   coffer__table_hash(&from->code_table, &code.id, sizeof code.id),
                                   from->code_count, err);
    if (!status)
        from->codes[from->code_count++] = code;
    return status;
}

static coffer_status switch_thread(memray_import *from, uint64_t id, coffer_error *err)
{
    uint64_t hash = coffer__table_hash(&from->thread_table, &id, sizeof id);
    coffer__table_probe probe = coffer__table_begin(&from->thread_table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE && from->threads[found].id != id)
        ;
    if (found != COFFER__TABLE_NONE) {
        from->current = found;
        return COFFER_OK;
    }
    if (from->thread_count > UINT16_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "a trace has at most 65536 threads");
    coffer_status status = coffer__array_reserve_one(&from->threads, &from->thread_capacity,
                                                     from->thread_count, sizeof *from->threads, err);
    if (!status)
        status = coffer__table_add(&from->thread_table, hash, from->thread_count, err);
    if (status)
        return status;
    from->current = from->thread_count;
    from->threads[from->thread_count++] = (python_thread){ .id = id };
    return COFFER_OK;
}

/* ---- Stacks ---- */

static coffer_status push(memray_import *from, const coffer__memray_record *record, coffer_error *err)
{
    python_thread *thread = &from->threads[from->current];
    if (++from->frames > from->job->limits.entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "stacks of more than %" PRIu64 " frames",
                            from->job->limits.entries);
    coffer_status status = coffer__array_reserve_one(&thread->frames, &thread->capacity, thread->depth,
                                                     sizeof *thread->frames, err);
    if (!status)
        thread->frames[thread->depth++] =
            (pushed_frame){ .code = record->id, .stack = UNRESOLVED, .instruction = record->instruction };
    return status;
}

static coffer_status pop(memray_import *from, uint64_t count, coffer_error *err)
{
    python_thread *thread = &from->threads[from->current];
    if (count > thread->depth)
        return fail(err, "it leaves more functions than it entered");
    thread->depth -= (size_t)count;
    from->frames -= count;
    return COFFER_OK;
}

static coffer_status resolve(pushed_frame *frame, memray_import *from, uint64_t caller, coffer_error *err)
{
    size_t index = find_code(from, frame->code);
    if (index == SIZE_MAX)
        return fail(err, "a function without a code object");
    const python_code *code = &from->codes[index];
    coffer_mlyze_frame made = { .file_id = code->file, .func_id = code->function };
    made.line = coffer__memray_line(from->capture.python, from->tables.data + code->table_at, code->table_len,
                                    code->first_line, frame->instruction);
    coffer_status status =
        coffer_mlyze_writer_add_call(&frame->stack, from->import.writer, caller, &made, err);
    if (!status && frame->stack >= from->job->limits.entries)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %" PRIu64 " stacks",
                              from->job->limits.entries);
    return status;
}

/* The stack of the current thread, without the frames of memray itself. */
static coffer_status current_stack(uint64_t *out, memray_import *from, coffer_error *err)
{
    python_thread *thread = &from->threads[from->current];
    size_t first = thread->id == from->capture.main_thread && from->capture.skipped_frames < thread->depth
                       ? (size_t)from->capture.skipped_frames
                       : 0;
    size_t known = thread->depth;
    coffer_status status = COFFER_OK;
    while (known > first && thread->frames[known - 1].stack == UNRESOLVED)
        known--;
    uint64_t stack = known > first ? thread->frames[known - 1].stack : COFFER_MLYZE_NO_STACK;
    for (; !status && known < thread->depth; known++) {
        status = resolve(&thread->frames[known], from, stack, err);
        stack = thread->frames[known].stack;
    }
    if (!status && thread->depth == first && from->no_stack == UNRESOLVED)
        status = coffer__mlyze_import_stack(&from->no_stack, &from->import, NULL, 0, err);
    *out = thread->depth == first ? from->no_stack : stack;
    return status;
}

/* ---- Mappings ---- */

/* The first mapping that ends after the address. */
static size_t find_mapping(const memray_import *from, uint64_t address)
{
    return COFFER__COUNT_UP_TO(from->mappings, from->mapping_count, mapping, end, address);
}

static coffer_status put_mapping(memray_import *from, size_t at, mapping made, coffer_error *err)
{
    if (from->mapping_count >= MAPPINGS_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %zu mappings", MAPPINGS_MAX);
    coffer_status status = coffer__array_reserve_one(&from->mappings, &from->mapping_capacity,
                                                     from->mapping_count, sizeof *from->mappings, err);
    if (!status)
        status = coffer_mlyze_writer_put_alloc(from->import.writer, from->time, made.begin,
                                               made.end - made.begin, made.stack, made.thread, err);
    if (status)
        return status;
    memmove(from->mappings + at + 1, from->mappings + at, (from->mapping_count - at) * sizeof made);
    from->mappings[at] = made;
    from->mapping_count++;
    return COFFER_OK;
}

/* Releases what is mapped in the range; the rest of a mapping that is cut becomes a block of its own. */
static coffer_status unmap(memray_import *from, uint64_t begin, uint64_t end, coffer_error *err)
{
    size_t at = find_mapping(from, begin);
    coffer_status status = COFFER_OK;
    while (!status && at < from->mapping_count && from->mappings[at].begin < end) {
        mapping old = from->mappings[at], left = old, right = old;
        status = coffer_mlyze_writer_put_free(from->import.writer, from->time, old.begin, err);
        memmove(from->mappings + at, from->mappings + at + 1,
                (from->mapping_count - at - 1) * sizeof *from->mappings);
        from->mapping_count--;
        left.end = begin;
        right.begin = end;
        if (!status && old.begin < begin)
            status = put_mapping(from, at++, left, err);
        if (!status && old.end > end)
            status = put_mapping(from, at++, right, err);
    }
    return status;
}

static coffer_status take_mapping(memray_import *from, const coffer__memray_record *record, coffer_error *err)
{
    uint64_t end, stack = 0;
    if (record->size == 0 || record->address == 0 ||
        __builtin_add_overflow(record->address, record->size, &end))
        return COFFER_OK;
    coffer_status status = unmap(from, record->address, end, err);
    if (status || record->type == COFFER__MEMRAY_UNMAP)
        return status;
    status = current_stack(&stack, from, err);
    mapping made = { record->address, end, stack, (uint16_t)from->current };
    return status ? status : put_mapping(from, find_mapping(from, record->address), made, err);
}

/* ---- Records ---- */

static coffer_status put_other(memray_import *from, uint8_t type, uint64_t size, uint64_t id,
                               coffer_error *err)
{
    uint64_t address = 0;
    uint16_t thread = from->current == SIZE_MAX ? 0 : (uint16_t)from->current;
    coffer_mlyze_events one = COFFER_MLYZE_EVENTS_INIT;
    one.count = 1;
    one.time = &from->time;
    one.address = &address;
    one.size = &size;
    one.id = &id;
    one.thread = &thread;
    one.type = &type;
    return coffer_mlyze_writer_put_events(from->import.writer, &one, err);
}

static coffer_status take_in_thread(memray_import *from, const coffer__memray_record *record,
                                    coffer_error *err)
{
    uint64_t id = 0;
    coffer_status status;
    if (from->current == SIZE_MAX)
        return fail(err, "an event before the first thread");
    switch (record->type) {
    case COFFER__MEMRAY_ALLOC:
        status = current_stack(&id, from, err);
        return status ? status
                      : coffer_mlyze_writer_put_alloc(from->import.writer, from->time, record->address,
                                                      record->size, id, (uint16_t)from->current, err);
    case COFFER__MEMRAY_FREE:
        return coffer_mlyze_writer_put_free(from->import.writer, from->time, record->address, err);
    case COFFER__MEMRAY_MAP:
    case COFFER__MEMRAY_UNMAP:
        return take_mapping(from, record, err);
    case COFFER__MEMRAY_PUSH:
        return push(from, record, err);
    case COFFER__MEMRAY_POP:
        return pop(from, record->id, err);
    default: /* a name */
        status = coffer__mlyze_import_function(&id, &from->import, coffer__buffer_text(&from->capture.text),
                                               from->capture.text.len, err);
        return status ? status : put_other(from, COFFER_MLYZE_THREAD, 0, id, err);
    }
}

static coffer_status take_record(memray_import *from, const coffer__memray_record *record, coffer_error *err)
{
    switch (record->type) {
    case COFFER__MEMRAY_CODE:
        return take_code(from, record, err);
    case COFFER__MEMRAY_SWITCH:
        return switch_thread(from, record->id, err);
    case COFFER__MEMRAY_RSS:
        if (record->id < UINT64_MAX / 1000 / 1000 && record->id * 1000 > from->time)
            from->time = record->id * 1000;
        return put_other(from, COFFER_MLYZE_RSS, record->size, 0, err);
    default:
        return take_in_thread(from, record, err);
    }
}

static void add_notes(const memray_import *from, bool partial)
{
    if (from->job->notes && from->capture.left_out)
        coffer__report_add(from->job->notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "records of native frames and objects that were left out: %" PRIu64,
                           from->capture.left_out);
    if (from->job->notes && partial)
        coffer__report_add(from->job->notes, COFFER_E_TRUNCATED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the capture has no end: the last events are missing");
}

static coffer_status take_records(memray_import *from, coffer_error *err)
{
    coffer__memray *capture = &from->capture;
    coffer__memray_record record = { .type = COFFER__MEMRAY_RSS };
    coffer_status status = coffer__mlyze_import_create(
        &from->import, coffer__buffer_text(&capture->command), capture->command.len,
        capture->start_ms < UINT64_MAX / 1000 ? capture->start_ms * 1000 : 0, err);
    while (!status) {
        status = coffer__memray_next(&record, &from->capture, err);
        bool ends = !status && record.type == COFFER__MEMRAY_END;
        if (status == COFFER_E_TRUNCATED && coffer__job_has(from->job, "partial")) {
            status = COFFER_OK;
            ends = true;
        }
        if (ends)
            break;
        if (!status)
            status = take_record(from, &record, err);
    }
    if (!status)
        add_notes(from, !capture->complete);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_memray(const coffer__convert_job *job, coffer_error *err)
{
    memray_import from = {
        .job = job, .tables = COFFER__BUFFER_INIT, .current = SIZE_MAX, .no_stack = UNRESOLVED
    };
    coffer__table_init_keyed(&from.code_table);
    coffer__table_init_keyed(&from.thread_table);
    coffer__mlyze_import_open(&from.import, job, false);
    coffer_status status = coffer__memray_open(&from.capture, job->in, err);
    if (!status)
        status = take_records(&from, err);
    coffer__mlyze_import_close(&from.import);
    coffer__memray_close(&from.capture);
    for (size_t i = 0; i < from.thread_count; i++)
        coffer__free(from.threads[i].frames);
    coffer__free(from.threads);
    coffer__free(from.codes);
    coffer__free(from.mappings);
    coffer__buffer_free(&from.tables);
    coffer__table_free(&from.code_table);
    coffer__table_free(&from.thread_table);
    return status;
}
