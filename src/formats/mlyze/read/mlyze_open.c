#include "formats/mlyze/mlyze_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdio.h>

coffer_status coffer__mlyze_open_events(coffer_mlyze **out, coffer_source *src,
                                        const coffer__mlyze_header *header, const coffer_limits *limits,
                                        const char *index_path, coffer_error *err)
{
    coffer_mlyze *trace = coffer__calloc(1, sizeof *trace);
    uint64_t size = coffer_source_size(src), end;
    coffer_status status;
    if (!trace)
        return coffer__fail_no_memory(err, sizeof *trace);
    trace->source = src;
    trace->limits = *limits;
    trace->header = *header;
    trace->area = COFFER__MLYZE_HEADER_SIZE + (uint64_t)header->metadata_len;
    trace->area_end = size;
    if (header->event_length > 0 && coffer__add_u64(&end, trace->area, header->event_length) && end < size)
        trace->area_end = end;
    if (index_path && !(trace->index_path = coffer__strdup(index_path))) {
        status = coffer__fail_no_memory(err, strlen(index_path) + 1);
        goto out;
    }
    status = coffer__mlyze_blocks_new(&trace->blocks, err);
    if (!status)
        status = coffer__mlyze_built_new(&trace->built, err);
    if (status)
        goto out;
    *out = trace;
    return COFFER_OK;
out:
    coffer_mlyze_close(trace);
    return status;
}

coffer_status coffer_mlyze_open(coffer_mlyze **out, coffer_source *src, const coffer_mlyze_open_opts *opts,
                                coffer_error *err)
{
    coffer_mlyze_open_opts options = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer__mlyze_header header;
    coffer_mlyze *trace = NULL;
    coffer_limits limits;
    char *text = NULL;

    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    limits = coffer__limits(options.limits);
    status = coffer__mlyze_read_header(&header, src, err);
    if (!status)
        status = coffer__mlyze_check_header_sum(&header, err);
    if (!status)
        status = coffer__mlyze_open_events(&trace, src, &header, &limits, options.index_path, err);
    if (!status)
        status = coffer__mlyze_read_metadata(&text, src, &header, &limits, err);
    if (!status)
        status = coffer__mlyze_check_metadata_sum(&header, text, err);
    if (status)
        goto out;
    status = coffer__mlyze_metadata_load(&trace->metadata, text, header.metadata_len, &limits, NULL, err);
    text = NULL;
    if (!status)
        coffer__mlyze_settle_order(&trace->metadata, header.flags, options.stack_order, NULL);
out:
    coffer__free(text);
    if (status)
        coffer_mlyze_close(trace);
    else
        *out = trace;
    return status;
}

coffer_status coffer_mlyze_open_path(coffer_mlyze **out, const char *path, const coffer_mlyze_open_opts *opts,
                                     coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mlyze_open(&trace, src, opts, err);
    if (status) {
        coffer_source_close(src);
        return status;
    }
    trace->own_source = src;
    *out = trace;
    return COFFER_OK;
}

COFFER__INIT_FUNCTION(coffer_mlyze_open_opts, COFFER_MLYZE_OPEN_OPTS_INIT)

char *coffer__mlyze_index_path(const coffer_source *src)
{
    const char *path = coffer__source_path(src);
    size_t len = path ? strlen(path) : 0;
    char *out = path ? coffer__malloc(len + sizeof COFFER__MLYZE_INDEX_SUFFIX) : NULL;
    if (out) {
        memcpy(out, path, len);
        memcpy(out + len, COFFER__MLYZE_INDEX_SUFFIX, sizeof COFFER__MLYZE_INDEX_SUFFIX);
    }
    return out;
}

coffer_status coffer__mlyze_open_beside_index(coffer_mlyze **out, coffer_source *src,
                                              const coffer_limits *limits, coffer_error *err)
{
    coffer_mlyze_open_opts options = COFFER_MLYZE_OPEN_OPTS_INIT;
    char *index_path = coffer__mlyze_index_path(src);
    coffer_status status;
    options.index_path = index_path;
    options.limits = limits;
    status = coffer_mlyze_open(out, src, &options, err);
    coffer__free(index_path);
    return status;
}

void coffer_mlyze_close(coffer_mlyze *trace)
{
    if (!trace)
        return;
    coffer__mlyze_built_free(trace->built);
    coffer__mlyze_blocks_free(trace->blocks);
    coffer__mlyze_metadata_free(&trace->metadata);
    coffer__free(trace->index_path);
    coffer_source_close(trace->own_source);
    coffer__free(trace);
}

/* ---- Header ---- */

uint32_t coffer_mlyze_version(const coffer_mlyze *trace)
{
    return trace->header.version;
}

uint32_t coffer_mlyze_flags(const coffer_mlyze *trace)
{
    return trace->header.flags;
}

uint64_t coffer_mlyze_start_time(const coffer_mlyze *trace)
{
    return trace->header.start_time;
}

bool coffer_mlyze_compressed(const coffer_mlyze *trace)
{
    return coffer__mlyze_has_blocks(&trace->header);
}

/* ---- Metadata ---- */

const char *coffer_mlyze_metadata(const coffer_mlyze *trace, size_t *len)
{
    if (len)
        *len = trace->metadata.text_len;
    return trace->metadata.text;
}

const char *coffer_mlyze_metadata_text(const coffer_mlyze *trace, const char *key)
{
    const coffer__json_value *value = coffer__json_find(coffer__json_root(trace->metadata.json), key);
    return value && value->kind == COFFER__JSON_STRING ? value->as.string : NULL;
}

const char *coffer_mlyze_file_name(const coffer_mlyze *trace, uint64_t id)
{
    return coffer__mlyze_name(&trace->metadata.files, id, NULL);
}

const char *coffer_mlyze_function_name(const coffer_mlyze *trace, uint64_t id)
{
    return coffer__mlyze_name(&trace->metadata.functions, id, NULL);
}

const char *coffer_mlyze_thread_name(const coffer_mlyze *trace, uint16_t thread)
{
    return coffer__mlyze_name(&trace->metadata.threads, thread, NULL);
}

coffer_mlyze_order coffer_mlyze_stack_order(const coffer_mlyze *trace, bool *known)
{
    if (known)
        *known = trace->metadata.order_is_known;
    return trace->metadata.order;
}

size_t coffer_mlyze_stack_count(const coffer_mlyze *trace)
{
    return trace->metadata.stacks.ids.count;
}

uint64_t coffer_mlyze_stack_id(const coffer_mlyze *trace, size_t index)
{
    const coffer__mlyze_ids *ids = &trace->metadata.stacks.ids;
    return index < ids->count ? ids->items[index] : COFFER_MLYZE_NO_STACK;
}

size_t coffer_mlyze_find_stack(const coffer_mlyze *trace, uint64_t id)
{
    return coffer__mlyze_ids_find(&trace->metadata.stacks.ids, id);
}

const coffer_mlyze_frame *coffer_mlyze_frames(size_t *depth, const coffer_mlyze *trace, size_t index)
{
    const coffer__mlyze_stack_table *stacks = &trace->metadata.stacks;
    *depth = 0;
    if (index >= stacks->ids.count)
        return NULL;
    size_t begin = index > 0 ? stacks->ends[index - 1] : 0;
    *depth = stacks->ends[index] - begin;
    return stacks->frames ? stacks->frames + begin : NULL;
}

/* ---- Frames as text ---- */

static bool is_named(const char *name)
{
    return name && *name;
}

/* "grow.c:9" or "grow.c". */
static int print_place(char *out, size_t size, const char *file, uint64_t line)
{
    return line ? snprintf(out, size, "%s:%" PRIu64, file, line) : snprintf(out, size, "%s", file);
}

size_t coffer_mlyze_frame_text(char *out, size_t size, const coffer_mlyze *trace,
                               const coffer_mlyze_frame *frame, bool place)
{
    const char *function = coffer_mlyze_function_name(trace, frame->func_id);
    const char *file = coffer_mlyze_file_name(trace, frame->file_id);
    int len;
    if (!is_named(function))
        len = is_named(file) ? print_place(out, size, file, frame->line) : snprintf(out, size, "?");
    else if (!place || !is_named(file))
        len = snprintf(out, size, "%s", function);
    else if (frame->line)
        len = snprintf(out, size, "%s (%s:%" PRIu64 ")", function, file, frame->line);
    else
        len = snprintf(out, size, "%s (%s)", function, file);
    return len > 0 ? (size_t)len : 0;
}

/* ---- Known writers ---- */

/* The Python program memlyze writes its metadata once, at the start, when it is empty; it does not know
 * addresses. */
bool coffer__mlyze_has_empty_tables(const coffer_mlyze *trace)
{
    const coffer__mlyze_metadata *metadata = &trace->metadata;
    return metadata->stacks.ids.count == 0 && metadata->files.ids.count == 0 &&
           metadata->functions.ids.count == 0;
}

const char *coffer_mlyze_profile_name(const coffer_mlyze *trace)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    uint64_t nowhere = 0, somewhere = 0;
    size_t blocks = 0;
    if (coffer__mlyze_has_empty_tables(trace) && trace->header.flags == 0 &&
        coffer_mlyze_block_count(&blocks, trace, NULL) == COFFER_OK && blocks > 0 &&
        coffer_mlyze_read_block(&events, trace, 0, NULL) == COFFER_OK) {
        for (size_t i = 0; i < events.count; i++) {
            nowhere += events.type[i] == COFFER_MLYZE_ALLOC && events.address[i] == 0;
            somewhere += events.type[i] == COFFER_MLYZE_ALLOC && events.address[i] != 0;
        }
    }
    coffer_mlyze_events_free(&events);
    return nowhere > 0 && somewhere == 0 ? "memlyze" : NULL;
}
