/* Strings, instructions and traces of a heaptrack file, and the stacks that they make. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"

#include <inttypes.h>
#include <string.h>

#define NOT_USED UINT64_MAX

void coffer__heaptrack_stacks_free(coffer__heaptrack_stacks *stacks)
{
    coffer__heaptrack_modules_free(&stacks->modules);
    coffer__buffer_free(&stacks->texts);
    coffer__free(stacks->strings);
    coffer__free(stacks->frames);
    coffer__free(stacks->ips);
    coffer__free(stacks->traces);
    coffer__free(stacks->stack);
}

coffer_status coffer__heaptrack_take_string(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                            bool sized, coffer_error *err)
{
    const char *text = line.at;
    size_t len = (size_t)(line.end - line.at), at = stacks->texts.len;
    if (sized && !coffer__heaptrack_text(&text, &len, &line, true))
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_BAD_VALUE,
                                         "the length of the string does not fit its line");
    coffer_status status = coffer__array_reserve_one(&stacks->strings, &stacks->string_capacity,
                                                     stacks->string_count, sizeof *stacks->strings, err);
    if (status)
        return status;
    if (!coffer__buffer_append(&stacks->texts, text, len))
        return coffer__fail_no_memory(err, len);
    stacks->strings[stacks->string_count++] = (coffer__heaptrack_string){ at, len, NOT_USED, NOT_USED };
    return COFFER_OK;
}

/* ---- Frames ---- */

static coffer_status add_frame(coffer__heaptrack_stacks *stacks, const coffer_mlyze_frame *frame,
                               coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&stacks->frames, &stacks->frame_capacity,
                                                     stacks->frame_count, sizeof *stacks->frames, err);
    if (!status)
        stacks->frames[stacks->frame_count++] = *frame;
    return status;
}

/* The string with a number; 0 is the empty string. */
static coffer_status find_string(coffer__heaptrack_string **out, coffer__heaptrack_stacks *stacks,
                                 uint64_t number, coffer_error *err)
{
    if (number > stacks->string_count)
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_DANGLING_REFERENCE,
                                         "string %" PRIu64 ", there are %zu so far", number,
                                         stacks->string_count);
    *out = number ? &stacks->strings[number - 1] : NULL;
    return COFFER_OK;
}

static coffer_status function_of(uint64_t *id, coffer__heaptrack_stacks *stacks, uint64_t number,
                                 coffer_error *err)
{
    coffer__heaptrack_string *string = NULL;
    coffer_status status = find_string(&string, stacks, number, err);
    if (status)
        return status;
    if (!string)
        return coffer__mlyze_import_function(id, stacks->import, "", 0, err);
    if (string->function == NOT_USED)
        status =
            coffer__mlyze_import_function(&string->function, stacks->import,
                                          (const char *)stacks->texts.data + string->at, string->len, err);
    *id = string->function;
    return status;
}

static coffer_status file_of(uint64_t *id, coffer__heaptrack_stacks *stacks, uint64_t number,
                             coffer_error *err)
{
    coffer__heaptrack_string *string = NULL;
    coffer_status status = find_string(&string, stacks, number, err);
    if (status)
        return status;
    if (!string)
        return coffer__mlyze_import_file(id, stacks->import, "", 0, err);
    if (string->file == NOT_USED)
        status = coffer__mlyze_import_file(&string->file, stacks->import,
                                           (const char *)stacks->texts.data + string->at, string->len, err);
    *id = string->file;
    return status;
}

/* "/usr/lib/libx.so+0x1190": the name of an instruction without symbols. Without the base of the module it is
 * "0x7f0de190 in /usr/lib/libx.so". */
static coffer_status add_bare_frame(coffer__heaptrack_stacks *stacks, uint64_t address, bool is_offset,
                                    const char *module, size_t module_len, coffer_error *err)
{
    coffer_mlyze_frame frame = { 0, 0, 0 };
    coffer__buffer name = COFFER__BUFFER_INIT;
    if (is_offset && module_len) {
        coffer__buffer_append(&name, module, module_len);
        coffer__buffer_printf(&name, "+0x%" PRIx64, address);
    } else {
        coffer__buffer_printf(&name, "0x%" PRIx64 "%s", address, module_len ? " in " : "");
        coffer__buffer_append(&name, module, module_len);
    }
    coffer_status status = name.failed
                               ? coffer__fail_no_memory(err, module_len)
                               : coffer__mlyze_import_function(&frame.func_id, stacks->import,
                                                               coffer__buffer_text(&name), name.len, err);
    coffer__buffer_free(&name);
    if (!status)
        status = coffer__mlyze_import_file(&frame.file_id, stacks->import, "", 0, err);
    return status ? status : add_frame(stacks, &frame, err);
}

static coffer_status add_raw_frame(coffer__heaptrack_stacks *stacks, uint64_t address, coffer_error *err)
{
    const coffer__heaptrack_module *module = coffer__heaptrack_modules_find(&stacks->modules, address);
    if (!module)
        return add_bare_frame(stacks, address, false, "", 0, err);
    return add_bare_frame(stacks, address - module->base, true,
                          (const char *)stacks->modules.names.data + module->name_at, module->name_len, err);
}

static coffer_status add_named_frames(coffer__heaptrack_stacks *stacks, uint64_t address, uint64_t module,
                                      coffer__heaptrack_line line, coffer_error *err)
{
    size_t first = stacks->frame_count;
    uint64_t function, file;
    while (coffer__heaptrack_hex(&function, &line)) {
        coffer_mlyze_frame frame = { 0, 0, 0 };
        coffer_status status = COFFER_OK;
        if (!coffer__heaptrack_hex(&file, &line))
            file = 0; /* only a function: the line is not known */
        else if (!coffer__heaptrack_hex(&frame.line, &line))
            return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_BAD_VALUE,
                                             "a frame without a line");
        if (function == 0 && file == 0)
            continue;
        status = function_of(&frame.func_id, stacks, function, err);
        if (!status)
            status = file_of(&frame.file_id, stacks, file, err);
        if (!status)
            status = add_frame(stacks, &frame, err);
        if (status)
            return status;
    }
    if (line.at < line.end)
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_BAD_VALUE,
                                         "expected hexadecimal numbers");
    if (stacks->frame_count > first)
        return COFFER_OK;
    coffer__heaptrack_string *name = NULL;
    coffer_status status = find_string(&name, stacks, module, err);
    if (status)
        return status;
    return add_bare_frame(stacks, address, false, name ? (const char *)stacks->texts.data + name->at : "",
                          name ? name->len : 0, err);
}

coffer_status coffer__heaptrack_take_ip(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                        coffer_error *err)
{
    uint64_t address, module = 0;
    size_t first = stacks->frame_count;
    if (!coffer__heaptrack_hex(&address, &line))
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_BAD_VALUE,
                                         "expected an address and the numbers of strings");
    coffer__heaptrack_hex(&module, &line);
    coffer_status status = coffer__array_reserve_one(&stacks->ips, &stacks->ip_capacity, stacks->ip_count,
                                                     sizeof *stacks->ips, err);
    if (!status)
        status = add_named_frames(stacks, address, module, line, err);
    if (!status)
        stacks->ips[stacks->ip_count++] =
            (coffer__heaptrack_ip){ first, (uint32_t)(stacks->frame_count - first) };
    return status;
}

/* ---- Traces ---- */

coffer_status coffer__heaptrack_take_trace(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                           bool raw, coffer_error *err)
{
    coffer__heaptrack_trace trace = { .stack = NOT_USED, .frame_at = stacks->frame_count, .frame_count = 1 };
    uint64_t ip;
    if (!coffer__heaptrack_hex(&ip, &line) || !coffer__heaptrack_hex(&trace.parent, &line))
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_BAD_VALUE,
                                         "expected an instruction and a trace");
    /* Parents come first, so cycles are impossible. */
    if (trace.parent > stacks->trace_count)
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_DANGLING_REFERENCE,
                                         "trace %" PRIu64 ", there are %zu so far", trace.parent,
                                         stacks->trace_count);
    if (!raw && (ip == 0 || ip > stacks->ip_count))
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_DANGLING_REFERENCE,
                                         "instruction %" PRIu64 ", there are %zu so far", ip,
                                         stacks->ip_count);
    coffer_status status = coffer__array_reserve_one(&stacks->traces, &stacks->trace_capacity,
                                                     stacks->trace_count, sizeof *stacks->traces, err);
    if (!status && raw)
        status = add_raw_frame(stacks, ip, err);
    if (status)
        return status;
    if (!raw) {
        trace.frame_at = stacks->ips[ip - 1].frame_at;
        trace.frame_count = stacks->ips[ip - 1].frame_count;
    }
    trace.depth = trace.frame_count + (trace.parent ? stacks->traces[trace.parent - 1].depth : 0);
    stacks->traces[stacks->trace_count++] = trace;
    return COFFER_OK;
}

static coffer_status reserve_stack(coffer__heaptrack_stacks *stacks, uint64_t depth, coffer_error *err)
{
    size_t bytes;
    if (depth <= stacks->stack_capacity)
        return COFFER_OK;
    if (depth > stacks->import->job->limits.entries)
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_LIMIT,
                                         "a stack of %" PRIu64 " frames, the limit is %" PRIu64, depth,
                                         stacks->import->job->limits.entries);
    if (!coffer__mul_size(&bytes, (size_t)depth, 2 * sizeof *stacks->stack))
        return coffer__fail_no_memory(err, depth);
    coffer__free(stacks->stack);
    stacks->stack = coffer__malloc(bytes);
    stacks->stack_capacity = stacks->stack ? 2 * (size_t)depth : 0;
    return stacks->stack ? COFFER_OK : coffer__fail_no_memory(err, bytes);
}

coffer_status coffer__heaptrack_stack(uint64_t *id, coffer__heaptrack_stacks *stacks, uint64_t trace,
                                      coffer_error *err)
{
    size_t depth = 0;
    if (trace > stacks->trace_count)
        return coffer__packed_lines_fail(stacks->lines, err, COFFER_E_DANGLING_REFERENCE,
                                         "trace %" PRIu64 ", there are %zu so far", trace,
                                         stacks->trace_count);
    if (trace == 0)
        return coffer__mlyze_import_stack(id, stacks->import, NULL, 0, err);
    coffer__heaptrack_trace *wanted = &stacks->traces[trace - 1];
    if (wanted->stack == NOT_USED) {
        coffer_status status = reserve_stack(stacks, wanted->depth, err);
        if (status)
            return status;
        for (uint64_t at = trace; at; at = stacks->traces[at - 1].parent) {
            const coffer__heaptrack_trace *step = &stacks->traces[at - 1];
            memcpy(stacks->stack + depth, stacks->frames + step->frame_at,
                   step->frame_count * sizeof *stacks->stack);
            depth += step->frame_count;
        }
        status = coffer__mlyze_import_stack(&wanted->stack, stacks->import, stacks->stack, depth, err);
        if (status)
            return status;
    }
    *id = wanted->stack;
    return COFFER_OK;
}
