/* Adds names and stacks to a trace that is being written. */
#include "formats/mlyze/write/mlyze_write.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

static coffer_status check_name(const coffer_mlyze_writer *writer, const char *what, const char *text,
                                coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    size_t len = strlen(text), valid = coffer__utf8_valid_prefix(text, len);
    if (status || valid == len)
        return status;
    return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                        "the name of a %s is not UTF-8 from byte %zu on", what, valid);
}

coffer_status coffer_mlyze_writer_add_file(uint64_t *id, coffer_mlyze_writer *writer, const char *path,
                                           coffer_error *err)
{
    coffer_status status = check_name(writer, "file", path, err);
    return status ? status : coffer__mlyze_name_pool_add(id, &writer->pools.files, path, strlen(path), err);
}

coffer_status coffer_mlyze_writer_add_function(uint64_t *id, coffer_mlyze_writer *writer, const char *name,
                                               coffer_error *err)
{
    coffer_status status = check_name(writer, "function", name, err);
    return status ? status
                  : coffer__mlyze_name_pool_add(id, &writer->pools.functions, name, strlen(name), err);
}

coffer_status coffer_mlyze_writer_add_file_id(coffer_mlyze_writer *writer, uint64_t id, const char *path,
                                              coffer_error *err)
{
    coffer_status status = check_name(writer, "file", path, err);
    return status ? status
                  : coffer__mlyze_name_pool_add_id(&writer->pools.files, id, path, strlen(path), "file", err);
}

coffer_status coffer_mlyze_writer_add_function_id(coffer_mlyze_writer *writer, uint64_t id, const char *name,
                                                  coffer_error *err)
{
    coffer_status status = check_name(writer, "function", name, err);
    return status ? status
                  : coffer__mlyze_name_pool_add_id(&writer->pools.functions, id, name, strlen(name),
                                                   "function", err);
}

coffer_status coffer_mlyze_writer_add_call(uint64_t *id, coffer_mlyze_writer *writer, uint64_t caller,
                                           const coffer_mlyze_frame *frame, coffer_error *err)
{
    coffer__mlyze_stack_pool *stacks = &writer->pools.stacks;
    uint32_t from = 0, call;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (caller != COFFER_MLYZE_NO_STACK) {
        const coffer__mlyze_pool_stack *stack = coffer__mlyze_stack_pool_find(stacks, caller);
        if (!stack)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "the calling stack %" PRIu64 " was not added", caller);
        from = stack->call;
    }
    status = coffer__mlyze_stack_pool_call(&call, stacks, from, frame, err);
    return status ? status : coffer__mlyze_stack_pool_id(id, stacks, call, false, err);
}

coffer_status coffer_mlyze_writer_add_stack(uint64_t *id, coffer_mlyze_writer *writer,
                                            const coffer_mlyze_frame *frames, size_t depth, coffer_error *err)
{
    uint32_t call;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status)
        status = coffer__mlyze_stack_pool_path(&call, &writer->pools.stacks, frames, depth, err);
    return status ? status : coffer__mlyze_stack_pool_id(id, &writer->pools.stacks, call, true, err);
}

coffer_status coffer_mlyze_writer_add_stack_id(coffer_mlyze_writer *writer, uint64_t id,
                                               const coffer_mlyze_frame *frames, size_t depth,
                                               coffer_error *err)
{
    uint32_t call;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status)
        status = coffer__mlyze_stack_pool_path(&call, &writer->pools.stacks, frames, depth, err);
    return status ? status : coffer__mlyze_stack_pool_add_id(&writer->pools.stacks, id, call, true, err);
}
